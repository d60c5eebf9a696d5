package hub

import (
	"testing"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Our own last write counts until the cache shows it or something newer, and only for the same object.
func TestNewest(t *testing.T) {
	object := func(other, version, release string) *fleet.BundleDeployment {
		made := &fleet.BundleDeployment{}
		made.UID, made.ResourceVersion, made.Status.Release = "a", version, release
		if other != "" {
			made.UID = "b"
		}
		return made
	}
	for name, test := range map[string]struct {
		latest, cached *fleet.BundleDeployment
		want           string
		wantKept       bool
	}{
		"nothing written":  {nil, object("", "5", "cached"), "cached", false},
		"the cache lags":   {object("", "10", "ours"), object("", "9", "cached"), "ours", true},
		"the cache has it": {object("", "10", "ours"), object("", "10", "cached"), "cached", false},
		"newer":            {object("", "10", "ours"), object("", "11", "cached"), "cached", false},
		"made anew":        {object("", "10", "ours"), object("b", "9", "cached"), "cached", false},
		"no version":       {object("", "10", "ours"), object("", "", "cached"), "cached", false},
	} {
		reported := Reported{latest: test.latest}
		got := reported.Newest(test.cached)
		if got.Status.Release != test.want || got.ResourceVersion != test.cached.ResourceVersion {
			t.Errorf("%s: %s at %s", name, got.Status.Release, got.ResourceVersion)
		}
		if test.cached.Status.Release != "cached" {
			t.Errorf("%s: the cache's object was changed", name)
		}
		if (reported.latest != nil) != test.wantKept {
			t.Errorf("%s: kept %t", name, reported.latest != nil)
		}
	}
}
