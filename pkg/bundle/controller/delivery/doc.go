// Package delivery carries the plan of a bundle out: values, deployments, moves from object to object, deletions.
//
// It promises that siblings go on when one fails, and that the joined error names those that did; that no agent sees a
// deployment before its contents and its values are there; that an unchanged deployment costs no write; that the ledger
// is told of what it makes, changes and deletes; and that the writes to objects of deployments' own that are under way are
// bounded, for each bundle and for all together. What shares an object is written together with others (pkg/merge/carrier).
//
// It never takes a deployment of the same name that belongs to another bundle, and leaves that one's values alone. It
// decides nothing: which deployments are made, changed and removed is the plan's, and whether deletions may be believed is
// settled before. It writes neither Bundles nor statuses, and changes nothing in caches.
//
// Start reading with Executor.Execute; places.go says which deployments share an object with others.
package delivery
