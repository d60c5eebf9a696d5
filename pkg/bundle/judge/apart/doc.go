// Package apart renders bundles in a process of its own, so that templates take neither the hub's memory nor its
// time: a process that has too much of either is ended, and the next bundle gets another one.
//
// Both ends are the same program. They speak JSON over the child's standard input and output: a greeting with
// the protocol's version, then for each bundle a request, the files unless they are those of the request before,
// and the finding. The child ends with its input. Where the system knows no limit for a process's data (only
// Linux is known to), only time is bounded.
//
// It decides nothing about bundles but what it means to need too much memory. Start reading with Renderer.Judge;
// Serve is the child's side.
package apart
