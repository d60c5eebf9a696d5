// Package values renders a bundle's Helm values for one cluster: references to cluster labels, ${ }
// templates, and templateValues.
//
// Every string is rendered by itself, in the order of sorted keys, so an error names its key and a broken
// string does not spoil its neighbours. What a template yields is read as YAML, as upstream's users rely
// on (a rendered 3 is a number), but only where nothing is lost: text that a number or boolean would
// not print again (1.10, 0123, yes) stays text.
//
// Templates cannot read the environment, the network, the clock or random numbers: equal input gives
// equal values and so equal deployment ids. Output, repetitions and list sizes are bounded.
//
// Start reading with Compile and Template.Render.
package values
