// Package diff decides whether an object on a member still is what was applied. It compares the live
// object with what the API server would make of it if it were applied again (a server-side dry run,
// done by the caller): after defaulting and admission, only fields the bundle owns can differ. What
// differs is told as a JSON merge patch that would restore it, without the contents of Secrets.
//
// It is pure. It refuses to guess: what could not be compared is Unknown, never in sync.
//
// Start reading with Compare and Rules.
package diff
