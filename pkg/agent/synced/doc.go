// Package synced remembers what objects looked like when they were in sync with what is wanted, so that those
// which still look so cost no request, neither to be compared nor to be applied.
//
// It holds two digests an object and no content. It decides nothing about an object that looks different: that
// has to be compared. What it holds is lost with the process.
//
// Start reading with Memory.Remember and Memory.Knows.
package synced
