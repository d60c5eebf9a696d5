// Package releases tells what is installed on a member: the releases of this agent, the objects of their revisions as
// they were applied, and what was noted in them that has to be known when a bundle's options are gone.
//
// It reads only. It caches no Secrets, and lists releases by the metadata of their records. It leaves the records
// themselves to package records and what is to become of a release to package helm.
//
// Start reading with Reader.Current.
package releases
