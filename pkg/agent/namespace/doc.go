// Package namespace keeps the namespaces of releases: it makes them, marks them with a bundle's labels and
// annotations beside everybody else's, and deletes those that a bundle has made.
//
// It refuses namespaces that a policy does not allow, waits for none (one that is being deleted is an error of class
// fault.Waiting) and deletes no protected one.
//
// Start reading with Ensure and Delete.
package namespace
