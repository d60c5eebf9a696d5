// Package stream reads and writes the YAML streams that commands pass to each other: Bundles, Contents,
// BundleDeployments, and the Clusters, ClusterGroups, BundleNamespaceMappings and Namespaces that stand in
// for a hub. What the engine fills in (status, creation time) is not written. Lists are taken apart.
//
// It opens no files but one for text that is too long for memory. Start reading with Encode, Writer and Decode.
package stream
