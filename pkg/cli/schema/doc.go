// Package schema is `fleet schema`: the JSON schema of fleet.yaml, for editors and checks in pipelines. It is
// made from the types that the file is read into, so it cannot fall behind them. Keys that only the engine
// writes are left out.
//
// It checks nothing itself; `fleet lint` does. Start reading with Of.
package schema
