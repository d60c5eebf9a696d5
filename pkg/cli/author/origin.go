package author

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/target"
	"github.com/fairlead-dev/fairlead/pkg/target/options"
)

// origin says where an option of a deployment comes from.
type origin struct {
	Path  string `json:"path"`
	Value string `json:"value"`
	From  string `json:"from"`
}

const renderedHere = "rendered for the cluster"

// origins returns every option of a cluster with its source: the last layer whose merging changed it.
func origins(spec *fleet.BundleSpec, targeted target.Targeted) []origin {
	indexes := targeted.Match.Options(spec.TargetCustomizationMode)
	from := map[string]string{}
	before := map[string]string{}
	note := func(merged fleet.BundleDeploymentOptions, source string) {
		now := flat(merged)
		for path, value := range now {
			if before[path] != value {
				from[path] = source
			}
		}
		before = now
	}
	note(spec.BundleDeploymentOptions, "bundle")
	var layers []fleet.BundleDeploymentOptions
	for _, index := range indexes {
		layers = append(layers, spec.Targets[index].BundleDeploymentOptions)
		note(options.Resolve(spec.BundleDeploymentOptions, layers...), "target "+quoted(spec, index))
	}
	final := before
	if targeted.Err == nil {
		final = flat(targeted.Options)
	}
	var list []origin
	for _, path := range slices.Sorted(maps.Keys(final)) {
		source := from[path]
		switch {
		case source == "":
			source = renderedHere
		case before[path] != final[path]:
			source += ", " + renderedHere
		}
		list = append(list, origin{Path: path, Value: final[path], From: source})
	}
	return list
}

// flat returns the leaves of options by their path; a list is one leaf.
func flat(options fleet.BundleDeploymentOptions) map[string]string {
	data, err := json.Marshal(options)
	if err != nil {
		return nil
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil
	}
	leaves := map[string]string{}
	flatten(leaves, "", tree)
	return leaves
}

func flatten(leaves map[string]string, path string, value any) {
	inner, ok := value.(map[string]any)
	if !ok {
		text, err := json.Marshal(value)
		if err != nil {
			text = fmt.Append(nil, value)
		}
		leaves[path] = string(text)
		return
	}
	for key, item := range inner {
		name := key
		if path != "" {
			name = path + "." + key
		}
		flatten(leaves, name, item)
	}
}
