// Package controller turns Bundles into BundleDeployments: one write for each pair of bundle and cluster
// that changes, none for the others.
//
// A pass over one Bundle is: gather (one snapshot from caches), plan (pure, pkg/target), execute
// (package delivery; siblings go on when one fails), observe (pure, pkg/status/parent), one status patch.
// Bundles come from the cache without their files and values, which packages contents and values keep.
//
// What deployments need and somebody takes away comes back: their values, of which only names are cached. A
// bundle whose own values are gone says so in its Ready condition, with the reason ValuesMissing, and whoever
// made the bundle writes them again. A deployment of the same name that belongs to another bundle is never taken.
//
// The package never deletes because of an error or an empty read: it plans only on synchronised caches,
// and deletes of many deployments at once that no person asked for wait for confirmation.
//
// Which changes bring a bundle back here says package interests. Start reading with Reconciler.Reconcile.
package controller
