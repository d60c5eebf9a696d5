package contents

import (
	"slices"
	"testing"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestContentOf(t *testing.T) {
	for name, test := range map[string]struct {
		now, staged string
		want        []string
	}{
		"nothing":      {"", "", nil},
		"one":          {"s-a:1", "s-a:1", []string{"s-a"}},
		"same content": {"s-a:1", "s-a:2", []string{"s-a"}},
		"staged":       {"s-a:1", "s-b:1", []string{"s-a", "s-b"}},
		"only staged":  {"", "s-b:1", []string{"s-b"}},
		"only now":     {"s-a:1", "", []string{"s-a"}},
		"no options":   {"s-a", "s-a", []string{"s-a"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := &fleet.BundleDeployment{}
			object.Spec.DeploymentID, object.Spec.StagedDeploymentID = test.now, test.staged
			if got := contentOf(object); !slices.Equal(got, test.want) {
				t.Errorf("contents %v, want %v", got, test.want)
			}
		})
	}
	if got := contentOf(&fleet.Bundle{}); got != nil {
		t.Errorf("a Bundle refers to %v", got)
	}
}
