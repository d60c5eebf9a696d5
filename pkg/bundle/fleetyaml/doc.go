// Package fleetyaml reads the file fleet.yaml: the options, targets and metadata of one bundle. It keeps
// text as the author wrote it where a text is wanted (version: 1.10 stays "1.10"), and says with file,
// line and column what it does not know, with the key that was probably meant. Everything else about
// the document is read as upstream reads it, so Helm values keep YAML 1.1's meaning of yes and on.
//
// It refuses what cannot be meant: wrong types, a key twice, selectors and names the API would not
// take, documents that grow without bound through aliases. It opens no files.
//
// Start reading with Parse.
package fleetyaml
