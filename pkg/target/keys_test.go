package target

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestLabelKeys(t *testing.T) {
	for name, test := range map[string]struct {
		spec     string
		wantKeys []string
		wantAll  bool
	}{
		"selectors":        {"targets: [{clusterSelector: {matchLabels: {env: prod}}}]", []string{"env"}, false},
		"plain values":     {"{helm: {values: {a: b}}, targets: [{clusterSelector: {}}]}", nil, false},
		"template":         {"{helm: {values: {a: ['${ .ClusterName }']}}, targets: [{clusterSelector: {}}]}", nil, true},
		"template, off":    {"{helm: {disablePreProcess: true, values: {a: '${ x }'}}, targets: [{clusterSelector: {}}]}", nil, false},
		"template values":  {"{helm: {templateValues: {a: b}}, targets: [{clusterSelector: {}}]}", nil, true},
		"cluster label":    {"targets: [{clusterSelector: {}, helm: {values: {a: global.fleet.clusterLabels.x}}}]", nil, true},
		"values in Secret": {"{valuesHash: x, targets: [{clusterSelector: {}}]}", nil, true},
		"through a group":  {"targets: [{clusterGroup: g}]", []string{"region"}, false},
		"display name":     {"targets: [{clusterName: x}]", []string{fleet.DisplayNameLabel}, false},
	} {
		group := fleet.ClusterGroup{}
		group.Namespace, group.Name = "ws", "g"
		group.Spec.Selector = bundleOf(t, "targets: [{clusterSelector: {matchLabels: {region: eu}}}]").Spec.Targets[0].ClusterSelector
		keys, all, err := LabelKeys(bundleOf(t, test.spec), []fleet.ClusterGroup{group})
		if err != nil || all != test.wantAll {
			t.Errorf("%s: all %v, %v", name, all, err)
		}
		if diff := cmp.Diff(test.wantKeys, keys); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}
