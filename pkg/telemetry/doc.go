// Package telemetry registers the metrics of this engine. All are named fleet_… and are listed in
// docs/metrics.md; labels have few values, but for those that name an object.
//
// It decides nothing about what is counted. Start reading with Register.
package telemetry
