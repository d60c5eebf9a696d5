package bundle

import (
	"testing"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestOwner(t *testing.T) {
	for name, test := range map[string]struct {
		labels map[string]string
		want   string
	}{
		"repo":   {map[string]string{fleet.RepoLabel: "shop"}, "the GitRepo shop"},
		"helmop": {map[string]string{fleet.HelmOpLabel: "db"}, "the HelmOp db"},
		"nobody": {nil, "nobody known: it was made by hand"},
	} {
		if got := Owner(test.labels); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}

func TestSameLabels(t *testing.T) {
	for name, test := range map[string]struct {
		a, b map[string]string
		want bool
	}{
		"nothing":        {nil, map[string]string{}, true},
		"another commit": {map[string]string{fleet.CommitLabel: "a", "x": "1"}, map[string]string{fleet.CommitLabel: "b", "x": "1"}, true},
		"another label":  {map[string]string{"x": "1"}, map[string]string{"x": "2"}, false},
		"a label more":   {nil, map[string]string{"x": ""}, false},
	} {
		if got := SameLabels(test.a, test.b); got != test.want {
			t.Errorf("%s: %v, want %v", name, got, test.want)
		}
	}
}
