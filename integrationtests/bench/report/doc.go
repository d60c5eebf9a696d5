// Package report collects the figures of a benchmark and writes them as a table for people and as JSON
// for programs, each next to its floor and its limit where it has them.
//
// It refuses to measure, and to fail: a limit that is not kept is shown as such.
//
// Start reading at Figure and Sheet.
package report
