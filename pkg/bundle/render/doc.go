// Package render turns a bundle's files and options into Kubernetes objects. It is the one renderer:
// the agent deploys what Build returns through Helm's actions, the hub and the command line look at
// the same objects offline through Objects.
//
// A bundle has one of four styles (see Style): a Helm chart, a Kustomize folder, a chart whose output
// Kustomize post-processes, or plain manifests with overlays. Whatever the style, the result is a Helm
// release: plain manifests and Kustomize folders travel in the post-renderer of an otherwise empty chart.
//
// The package is pure: the same input gives the same objects in the same order, whatever the order of
// the files. It reads no cluster, clock, environment, disk or network, starts no program, and fetches
// neither Kustomize bases nor schemas. What cannot be rendered is an error of class fault.Stalled with
// reason RenderFailed that names bundle, file and line, and holds no values.
//
// Start reading with Build, then Objects.
package render
