// Package records keeps the revisions of Helm releases in Secrets, as Helm does, for one operation at a time: a
// history is read once, a record holds nothing that only rendering needs, hooks are recorded where the bundle's
// options want them, and there are no more revisions than were asked for.
//
// It refuses records that do not fit into a Secret, with an error of class fault.Stalled. It decides nothing about
// releases.
//
// Start reading with For.
package records
