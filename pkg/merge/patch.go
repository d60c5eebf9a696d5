package merge

import (
	"encoding/json"
	"fmt"

	jsonpatch "github.com/evanphx/json-patch/v5"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// PatchOf returns the merge patch that turns one version of a deployment into another, for the part that it is.
func PatchOf(before, after *fleet.BundleDeployment) (map[string]any, error) {
	was, err := json.Marshal(PartOf(before))
	if err != nil {
		return nil, fmt.Errorf("write part %s: %w", before.Name, err)
	}
	is, err := json.Marshal(PartOf(after))
	if err != nil {
		return nil, fmt.Errorf("write part %s: %w", after.Name, err)
	}
	text, err := jsonpatch.CreateMergePatch(was, is)
	if err != nil {
		return nil, fmt.Errorf("compare part %s: %w", after.Name, err)
	}
	patch := map[string]any{}
	if err := json.Unmarshal(text, &patch); err != nil {
		return nil, fmt.Errorf("compare part %s: %w", after.Name, err)
	}
	return patch, nil
}
