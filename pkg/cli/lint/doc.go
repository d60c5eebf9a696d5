// Package lint is `fleet lint`: what is wrong or doubtful in a repository's folder, with file and line, before
// anybody pushes it. It finds what the hub would refuse or warn about (unknown keys with a suggestion, broken
// files, bases and values files that are missing), and what no hub can know is not meant: values files that
// nobody uses, names that get a digest. With clusters it also finds what fails for some of them only.
//
// Output is for people, for programs (JSON, SARIF) and for pull requests on GitHub. Start reading with Command.
package lint
