// Package cluster tests the life of clusters on a real API server: the hub's chart is installed and the
// controllers run with the identity it creates, so that a right that is missing fails a test.
package cluster
