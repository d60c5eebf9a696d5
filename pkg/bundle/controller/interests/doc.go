// Package interests says who wakes up whom: which Bundles are looked at again after a change of something else, and which
// changes of Clusters a bundle cares about.
//
// It promises that a bundle which is not woken up has nothing to write and nothing new to tell: what its last plan looked
// at is remembered, and a change that comes while a pass reads is looked at again with what the new plan looks at. What
// cannot be told apart wakes up. Changes that come together are waited for a moment and looked at together.
//
// What the last pass wrote itself is no news. What agents report arrives through the roll-up, but for a bundle whose clusters
// wait for others, and for values that an agent misses. The package reads caches only, and writes nothing.
//
// Start reading with Bundles.Watch; Bundle is what is known of one.
package interests
