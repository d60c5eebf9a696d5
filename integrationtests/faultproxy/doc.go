// Package faultproxy stands between a program and a real API server and does to chosen requests what bad days
// do: it answers errors or empty lists, cuts and expires watches, holds events back or delivers them twice,
// and loses the answer to a write that was done.
//
// It invents no objects: what it passes on is the API server's, and what it leaves out exists there. A test
// sets rules while the program runs, and looks at the API server itself for what became of it.
//
// Start reading at Start and Rule.
package faultproxy
