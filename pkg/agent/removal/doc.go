// Package removal takes away the releases of bundles that are gone, and decides when one is gone.
//
// A deployment is gone when the hub told of its deletion and denies it, or when lists have lacked it for a while and the
// hub denied it before and after. Errors and empty reads prove nothing, nor does a list that lacks more than half of
// what is deployed: those remove nothing. The agent never uninstalls itself, and what another release of the bundle has
// by now stays.
//
// Start reading with Departures.Confirm and Remover.Remove.
package removal
