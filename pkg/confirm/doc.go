// Package confirm asks the API server itself before anything is believed to be gone.
//
// A cache may be told that objects are gone by a list that merely lacks them: a list served from a cold or
// stale watch cache, or by something in between. Informers made here compare each new list with what they know.
// Where objects are missing, some are read one by one; if one exists unchanged, the list is refused and asked
// for again, with back-off, and the cache stays as it was. A first list has nothing to be compared with:
// whoever deletes because of what a cache lacks confirms that by a read of the object (Gone says which answers
// prove it), and calls Refresh when the cache was wrong.
//
// It refuses to judge by errors: what cannot be read is there.
//
// Start reading at Informers.
package confirm
