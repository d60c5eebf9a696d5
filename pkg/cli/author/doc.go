// Package author shows authors, from a working tree and without touching a cluster, what they are about to
// push: `fleet render` (which objects, where), `fleet explain` (why with these options) and `fleet diff` (what
// changes between two commits, or with the changes not committed yet).
//
// Values of Secrets are never printed by diff. Start reading with Render.
package author
