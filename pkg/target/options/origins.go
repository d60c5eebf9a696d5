package options

import (
	"encoding/json"
	"fmt"
	"reflect"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Root is the layer of what comes from the bundle itself.
const Root = -1

// Origins returns, for every value in the result of Resolve, the layer it comes from: the index of the last
// layer that changed it, or Root. Keys are paths as in "helm.values.replicas" and "yaml.overlays[1]".
func Origins(root fleet.BundleDeploymentOptions, layers ...fleet.BundleDeploymentOptions) (map[string]int, error) {
	origins := map[string]int{}
	var before map[string]any
	for n := 0; n <= len(layers); n++ {
		leaves, err := flatten(Resolve(root, layers[:n]...))
		if err != nil {
			return nil, err
		}
		for path := range origins {
			if _, there := leaves[path]; !there {
				delete(origins, path)
			}
		}
		for path, value := range leaves {
			if old, there := before[path]; !there || !reflect.DeepEqual(old, value) {
				origins[path] = n - 1
			}
		}
		before = leaves
	}
	return origins, nil
}

// flatten returns the values in options by path; an empty map or list is a value.
func flatten(options fleet.BundleDeploymentOptions) (map[string]any, error) {
	data, err := json.Marshal(options)
	if err != nil {
		return nil, fmt.Errorf("encode options: %w", err)
	}
	var tree map[string]any
	if err := json.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("decode options: %w", err)
	}
	leaves := map[string]any{}
	for key, value := range tree {
		collect(key, value, leaves)
	}
	return leaves, nil
}

func collect(path string, value any, leaves map[string]any) {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			collect(path+"."+key, below, leaves)
		}
		if len(value) > 0 {
			return
		}
	case []any:
		for i, below := range value {
			collect(fmt.Sprintf("%s[%d]", path, i), below, leaves)
		}
		if len(value) > 0 {
			return
		}
	}
	leaves[path] = value
}
