// Package join gets an agent its identity on the hub (pkg/agent/identity) and keeps it: it registers with a token,
// hands in a certificate request, waits for the certificate, and renews it before it ends.
//
// A registration that is interrupted at any moment is taken up again, not repeated. The package
// refuses to go on after a rejection without being told to: the hub's reason is a fault.Stalled error.
//
// Start reading with Joiner.Ensure and Renewer.
package join
