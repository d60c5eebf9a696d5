// Package charts brings along the Helm charts that a bundle deploys and does not hold: from elsewhere in the
// repository, or from where they are published (Source), with the dependencies of all of them. A chart among the
// bundle's own files stays where it is; each other one comes into a folder of its own (Folder).
//
// It refuses what Helm's library would deploy without a word: a chart with a dependency that is not there and names
// no repository. Nor does it take paths out of the repository, dependencies that go round in circles, or repositories
// by the name that somebody's machine gives them. It fetches nothing itself and knows no credentials, and it
// renders nothing.
//
// Start reading with Collector.Add.
package charts
