// Package cached reads what informers hold as it is: by pointer, and by indexes with one key an object. A list by
// controller-runtime's client copies every object even when it is asked not to copy what they point to, and its
// field indexes hold every object twice, in sets of its own for each namespace; for kinds of many objects that are
// read as a whole, again and again, that is most of the memory and of the time.
//
// Nobody may change what is returned, or what it points to: it belongs to the cache, and others read it at the same
// time. Copy it before.
//
// Of Secrets it offers caches that know their metadata alone (Secrets).
//
// Start reading at New.
package cached
