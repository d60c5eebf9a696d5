// Package index reads the index of a Helm repository and chooses among versions. It is pure: the caller
// fetches. Of a large index only the lines of the wanted chart are parsed.
//
// Start reading with Versions and Choose.
package index
