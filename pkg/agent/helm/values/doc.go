// Package values reads the values that a bundle takes from its member (helm.valuesFrom), as the bundle's identity.
//
// What is missing is waited for (fault.Waiting); what is no YAML object stalls the bundle. No error quotes a value:
// most of them are secret.
//
// Start reading with Merge.
package values
