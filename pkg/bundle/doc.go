// Package bundle turns a tree of files into Bundles: it finds the folders that are bundles, reads their
// fleet.yaml, collects their files and charts, and writes the objects the hub stores. Equal trees give
// equal Bundles, byte for byte, offline and on the hub.
//
// # What is in a bundle
//
// A bundle has the files below its folder, except hidden ones, fleet.yaml and the file of options,
// values files (by exact path), what .fleetignore names, and every folder that is a bundle of its own.
// To these come, under names that start with a dot and so never clash:
//
//   - .chart/<digest>/<chart>/…: charts from elsewhere, one folder for each combination of chart, repository
//     and version (see charts.Folder). A chart inside the bundle stays where it is.
//   - .kustomize/<path in the repository>/…: when a Kustomize build needs files from outside the bundle's
//     folder, all files of that build, with their paths from the repository's root. kustomize.dir of the
//     bundle or target then names the folder below .kustomize/, so the relative references inside still
//     hold. A file .kustomize/fleet.yaml keeps these copies out of plain rendering. Bundles that need
//     nothing from outside are not touched.
//
// # What it refuses
//
// Links and paths out of the repository, two bundles of one name, values files and bases that do not
// exist, files over 24 MiB. What is wrong with one bundle never hides the others: Result.Failed has the
// error, Result.Bundles has the rest. A path that gives no bundle is reported in Result.UnmatchedPaths;
// as long as Result.Complete is false nothing may be pruned.
//
// The package reads the tree it is given and asks a source of charts; it knows no cluster and no network.
//
// Bundles are made one at a time (Reading.Each), and a large file is compressed while it is read, so that a read
// takes little more memory than its largest bundle.
//
// # Who does what
//
// Package layout says which folders are bundles and which files are in them, fleetyaml reads their options, charts
// and kustomization find what they need from elsewhere, and resources holds the files until they are written. This
// package goes from one to the next, and has the values, targets and labels.
//
// Start reading with Open, or Read where all of them are wanted.
package bundle
