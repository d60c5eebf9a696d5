package target

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Reach digests what a spec says about which clusters it reaches. As long as it stays the same, no edit of the
// spec explains that a cluster is not reached any more. It is empty when that cannot be told.
func Reach(spec *fleet.BundleSpec) string {
	type entry struct {
		fleet.ClusterTarget
		DoNotDeploy bool
	}
	entryOf := func(target fleet.ClusterTarget, skip bool) entry {
		target.Name = "" // what it is called selects nothing
		return entry{target, skip}
	}
	says := struct {
		Mode                  fleet.TargetCustomizationMode
		Restrictions, Targets []entry
	}{Mode: cmp.Or(spec.TargetCustomizationMode, fleet.FirstMatch)}
	for _, restriction := range spec.TargetRestrictions {
		says.Restrictions = append(says.Restrictions, entryOf(restriction, false))
	}
	for i := range spec.Targets {
		says.Targets = append(says.Targets, entryOf(spec.Targets[i].ClusterTarget, spec.Targets[i].DoNotDeploy))
	}
	text, err := json.Marshal(says)
	if err != nil {
		return ""
	}
	digest := sha256.Sum256(text)
	return hex.EncodeToString(digest[:16])
}
