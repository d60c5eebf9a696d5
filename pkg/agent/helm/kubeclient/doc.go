// Package kubeclient is Helm's kube.Interface for one operation on one release: what Helm creates, updates, deletes and
// waits for goes through pkg/agent/apply, as a bundle's identity and in its claim's name.
//
// It writes phase by phase in the order of kinds and deletes in the reverse order; one object that fails does not keep
// its siblings back. It refuses objects that belong to others, all that are in the way at once, and deletes nothing
// without the claim's mark, no namespace that is protected, and no definition unless told so. It remembers nothing
// beyond its operation.
//
// Start reading with Client.Update.
package kubeclient
