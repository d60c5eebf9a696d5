// Package helmchart does with a chart what Helm does before it talks to a cluster: it loads the chart from
// files in memory and executes its templates. The same files give the same chart and the same output,
// always. It reads nothing from the network: references out of a values.schema.json are not followed,
// lookup finds nothing, and no name is resolved.
//
// Start reading with Load and Template.
package helmchart
