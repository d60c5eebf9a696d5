// Package bundles makes the Bundles of a GitRepo on the hub what its source says: it plans what to create, update
// and delete, carries that out, and says whether the hub holds it.
//
// It promises that an unchanged Bundle is not written; that a Bundle is never seen without the files and values it
// names; that what others depend on is written first; and that siblings go on when one fails. Nothing is deleted
// unless everything else worked.
//
// It never overwrites or deletes a Bundle or a values Secret of another owner. It reads no source and decides
// neither when to write nor whether a deletion may be believed, and it writes no status.
//
// Start reading with Compare (pure) and Store.Execute.
package bundles
