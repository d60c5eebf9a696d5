// Package archive unpacks chart archives (gzipped tar) into memory. It refuses what no chart needs: more
// than a number of entries, files or totals over a limit, names that lead out of the archive. Sizes are
// counted before anything is kept, so an archive that unpacks to terabytes costs its limit once, in time
// and not in memory. Links and devices inside archives are left out, as Helm does.
//
// Start reading with Unpack.
package archive
