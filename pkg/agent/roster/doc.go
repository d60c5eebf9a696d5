// Package roster is the BundleDeployments of the cluster as the hub's list and watch have them, and whose object sets
// are known on the member.
//
// It keeps what it has while the hub is away, and doubts lists that lack much (package confirm). It never says that a
// deployment is gone for good: that is for package removal to find out. What it returns is the cache's: nobody may
// change it.
//
// Start reading with New.
package roster
