// Package ownership decides whose an object on a member is, from its marks: the label and annotation of a
// bundle's set, and Helm's annotations of a release. Another owner's object is refused by the owner's name; one
// that belongs to nobody is taken only where that is asked for.
//
// It looks at objects that it is given. It reads and writes none, and does not decide what becomes of an object
// that is owned.
//
// Start reading with Claim.Check.
package ownership
