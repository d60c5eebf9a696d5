// Package layout knows how bundles lie in a repository: which folders are bundles, by fleet.yaml, by YAML below a
// path or because they are listed, and which files belong to each (package bundle
// says which).
//
// It refuses paths out of the repository, reads of fleet.yaml no more than that it is there, and does not follow
// what the files name: charts from elsewhere and Kustomize bases come from others. Lines of .fleetignore that it
// cannot honour are warnings.
//
// Start reading with Search and Candidate.Load.
package layout
