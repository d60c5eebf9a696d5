// Package resources collects the files of one bundle and writes them as the resources of its Bundle: as text
// where that is possible and the Bundle stays small, else compressed. Equal files give equal resources, in
// whatever order they came.
//
// A large file is compressed while it comes in, so that it is never held as it is. What a bundle may have (a
// file of 24 MiB, 128 MiB together, 20,000 files) is checked file by file; the package refuses what is beyond that,
// with reason TooLarge. It reads no tree and does not know which files belong to a bundle.
//
// Start reading with Set.
package resources
