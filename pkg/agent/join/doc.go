// Package join gives an agent its identity on the hub and keeps it: it registers with a token, makes a
// key and a certificate request, waits for the certificate, renews it before it ends and swaps it while
// connections are in use, and tells the hub by a Lease that the agent is there.
//
// The key is made here and leaves neither the process nor the Secrets of the agent's namespace on the
// member. A registration that is interrupted at any moment is taken up again, not repeated. The package
// refuses to go on after a rejection without being told to: the hub's reason is a fault.Stalled error.
//
// Start reading with Joiner.Ensure, Connection and Renewer.
package join
