// Package kube runs real Kubernetes control planes as local processes, without containers and
// without privileges: etcd, kube-apiserver, kube-controller-manager and, where a cluster has nodes,
// kube-scheduler and kwok. Tests and the demo program use it for their hub and members.
//
// A cluster made here authenticates, authorizes, admits, collects garbage, signs certificates and
// issues tokens as any other does. What is not real is the nodes: kwok reports them, and the pods
// on them, as running without running anything (stages.yaml says how a pod can be made to hang or
// to crash).
//
// The package refuses to run anything it did not start itself, to listen beyond 127.0.0.1, and to
// leave a process behind: Stop ends all of them, and on Linux they die with this process however it
// ends. A cluster does not survive its Stop, since etcd runs without syncing to disk.
//
// Start reading at Start; components.go has the command lines. The subpackage process
// runs one child, pki makes keys and certificates, writes counts what is asked of an API server.
// Tests use the subpackage kubetest, which adds sharing, cleaning up and logs on failure.
package kube
