// Package fieldpath names fields of an object the way people write them (JSON pointers and a part of
// JSONPath) and carries their values from one object to another. Members of lists are matched by what they
// are called, so that a list in another order means the same fields.
//
// It refuses JSONPath that selects by anything but names, indexes, [*] and one comparison with a text. It is
// pure.
//
// Start reading with Parse and Path.Carry.
package fieldpath
