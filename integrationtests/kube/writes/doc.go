// Package writes counts and names the requests that ask an API server to change something, so that a
// test can hold that a change causes one write, and an idle system none.
//
// It only reads: an API server's own metrics (ParseMetrics, counts by kind of request) and its audit
// log (ParseAuditLog, who wrote which object). It decides nothing about which requests are too many.
//
// The two differ where the API server does. In its metrics the deletion of a collection is a delete;
// in its audit log an apply is a patch. Dry runs are left out, but for deletes that ask for one in
// their body, as client-go's do: neither source tells those apart.
//
// Start reading at Requests; the functions of type func(Request) bool select among them.
package writes
