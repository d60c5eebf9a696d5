// Package preview shows what bundles become before anything reaches a cluster: `fleet target` says which
// clusters a Bundle goes to and with which options, `fleet deploy --dry-run` what is deployed there, and
// the deprecated `fleet test` both for one folder. Without --dry-run `fleet deploy` is an agent for a single
// bundle: it installs the release on the cluster of the kubeconfig.
//
// All decisions are made by the packages the hub and the agent use. Start reading with Target and Deploy.
package preview
