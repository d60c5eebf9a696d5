// Package store keeps the objects of one git repository on disk, as packs, and shows commits of it as
// read-only file trees (io/fs) without checking anything out.
//
// Packs come from servers that anybody may write to: their size, the size of the objects in them, and
// the size of a file that is read are limited before memory is spent. A tree never shows a name that
// leaves its folder, and never follows a symbolic link out of the commit.
//
// Start reading at Store for what is on disk and at Tree for reading.
package store
