// Package apply writes objects to a member by server-side apply and takes them away again, as one
// identity and for one owner: nothing is written or deleted that the owner's claim (pkg/agent/ownership) does not
// cover. An object that is known to be in sync (pkg/agent/synced) costs no request.
//
// What an old client (kubectl, helm) has written by update is taken over once, so that a field dropped
// in git goes away. Where the API server refuses an apply that an update would pass (duplicate list
// keys), the object is merged three ways instead and the result says so.
//
// Start reading with Writer.Apply; Writer.Compare says what it would change.
package apply
