// Package stack runs a whole fleet on this machine: a hub and members as real control planes (package
// kube), the charts of this repository installed on them, and fleet-controller and one fleet-agent per
// member as local processes. The demo program and the integration tests share it.
//
// The programs run with the service accounts that the charts create, never as administrators, and
// members join as a person would let them: a ClusterRegistrationToken on the hub, its values given to
// the agent's chart. The pods of the charts' Deployments are kwok's and run nothing.
//
// The package refuses to listen beyond 127.0.0.1, to leave a process behind after Stop, and to fail
// without saying in which step and where the log is.
//
// Start reading at Start. Subpackage sources serves git and Helm repositories, stacktest gives stacks
// to tests.
package stack
