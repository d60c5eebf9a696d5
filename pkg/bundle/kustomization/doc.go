// Package kustomization finds the files a Kustomize build reads: it follows resources, components,
// patches, generators and the other references of a kustomization file through the whole repository.
// It builds nothing. It refuses remote bases, paths out of the repository and files that do not exist,
// so that a build that cannot work is known before anything is deployed.
//
// Start reading with Closures.
package kustomization
