// Package apply writes objects to a member by server-side apply and takes them away again, as one
// identity and for one owner. It is where ownership is kept: an object that belongs to another bundle
// or another Helm release is refused by its owner's name, one that belongs to nobody is taken only when
// that is asked for, and nothing is deleted that does not carry the owner's mark.
//
// What an old client (kubectl, helm) has written by update is taken over once, so that a field dropped
// in git goes away. Where the API server refuses an apply that an update would pass (duplicate list
// keys), the object is merged three ways instead and the result says so.
//
// Start reading with Writer.Apply and Claim.
package apply
