// Package hub tests the program fleet-controller on a real API server with the identity its chart
// creates: what a push becomes, how many writes that takes, and what people see of bad input.
package hub
