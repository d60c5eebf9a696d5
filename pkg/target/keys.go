package target

import (
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/target/match"
	"github.com/fairlead-dev/fairlead/pkg/target/values"
)

// LabelKeys returns, sorted, the keys of cluster labels that a bundle's plan depends on: those its selectors
// look at, by themselves or through cluster groups. all is true when any label may count, because values
// look at the cluster or are not in the bundle but in its Secret. A change of labels that are not among the
// keys changes no plan. The error is that of an invalid selector.
func LabelKeys(bundle *fleet.Bundle, groups []fleet.ClusterGroup) (keys []string, all bool, err error) {
	matcher, err := match.Compile(&bundle.Spec)
	if err != nil {
		return nil, false, err
	}
	prepared, _ := match.Groups(groups)
	all = bundle.Spec.ValuesHash != "" || !values.Compile(bundle.Spec.Helm).Static()
	for i := range bundle.Spec.Targets {
		all = all || !values.Compile(bundle.Spec.Targets[i].Helm).Static()
	}
	return matcher.Keys(prepared), all, nil
}
