// Package helm keeps a bundle's life cycle on a member as a Helm release: install, upgrade, hooks,
// history, uninstall, all through Helm's action package, so that `helm list` and `helm history` tell
// the truth. Objects are written behind Helm's own kube.Interface (package kubeclient).
//
// It survives being killed at any moment: a release found half way is resumed forward, never
// uninstalled, and records stay within the history that was asked for. It refuses to delete what is not
// marked as the bundle's own, and, unless told so, definitions and what says helm.sh/resource-policy
// keep. It caches no Secrets: release records (packages records and releases) are read when needed. As whom it acts is
// a matter of package access.
//
// Start reading with Deployer.Deploy.
package helm
