// Package bench measures a whole fleet: a hub, three members and the programs of this repository as real
// processes (package stack). Its benchmarks print figures, each next to a floor that the same machine
// reached in the same run for the plain work, as a table and as JSON (package report);
// docs/benchmarks.md says how to run and read them.
//
// It refuses to judge by the clock: nothing fails because it was slow. What is counted can be wrong,
// and is: the test that a plain `go test` runs does one small pass and holds that a change causes the
// writes it must and no more.
//
// Start reading at the benchmarks in bench_test.go, one for each chapter of the table.
package bench
