// Package kustomize builds a Kustomize folder from a tree of files in memory. Nothing else is read: no
// disk, no network, no environment; and nothing is run: plugins, functions and Helm charts inside a
// kustomization are refused. A kustomization that names a remote base or file is refused before the
// build starts, with the file and the entry that names it.
//
// Start reading with Build.
package kustomize
