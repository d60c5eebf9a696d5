// Package examples deploys each folder of examples/ to real members, with the real programs, and checks
// that what runs there is what the folder's README promises.
package examples
