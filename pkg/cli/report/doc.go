// Package report prints what commands report that is no API object: as text for people, and as JSON or YAML
// with a version for programs.
//
// It computes nothing. Start reading with Print.
package report
