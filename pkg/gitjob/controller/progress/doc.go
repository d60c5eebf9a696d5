// Package progress keeps what passes over GitRepos learned, and says from it what is due: a look, a read, the
// next pass.
//
// It promises that there is always a next pass, and that it is not at once: what fails is tried again with
// growing pauses, also what only a person can mend. A commit that a webhook announced is looked for until it is
// seen, or for half a minute. What was seen at another address or branch is not read with the paths of this spec.
//
// It looks at nothing and reads nothing itself: it is told what was found out, and when. What it keeps is in
// memory only, and a GitRepo made anew knows nothing of the former one of its name.
//
// Start reading with Entry; Book has the entries of all GitRepos.
package progress
