// Package await waits for what becomes of one object on the member: that it is gone, or ready. It watches that
// object alone and asks nothing twice.
//
// It writes nothing and does not know what is waited for; the caller's condition does.
//
// Start reading with Until and Gone.
package await
