package depends

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func deployment(name string, ready bool, refs ...fleet.BundleRef) *fleet.BundleDeployment {
	d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
		fleet.BundleLabel: name, fleet.BundleNamespaceLabel: "ws", "tier": name[:1],
	}}}
	d.Spec.DeploymentID, d.Spec.StagedDeploymentID, d.Status.AppliedDeploymentID = "x", "x", "x"
	d.Status.Ready, d.Status.NonModified = ready, ready
	d.Spec.DependsOn = refs
	return d
}

func TestCheck(t *testing.T) {
	selector := func(tier string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchLabels: map[string]string{"tier": tier}}
	}
	all := []*fleet.BundleDeployment{
		deployment("up", true), deployment("down", false), deployment("alpha", true), deployment("atlas", false),
		deployment("left", true, fleet.BundleRef{Name: "right"}), deployment("right", true, fleet.BundleRef{Name: "left"}),
	}
	for name, test := range map[string]struct {
		refs     []fleet.BundleRef
		want     fault.Class
		wantText string
	}{
		"nothing":                 {nil, "", ""},
		"ready":                   {[]fleet.BundleRef{{Name: "up"}}, "", ""},
		"not ready":               {[]fleet.BundleRef{{Name: "up"}, {Name: "down"}}, fault.Waiting, "down: NotReady"},
		"not ready, but accepted": {[]fleet.BundleRef{{Name: "down", AcceptedStates: []fleet.BundleState{fleet.NotReady}}}, "", ""},
		"ready, but not accepted": {[]fleet.BundleRef{{Name: "up", AcceptedStates: []fleet.BundleState{fleet.Modified}}}, fault.Waiting, "up: Ready"},
		"not there":               {[]fleet.BundleRef{{Name: "nowhere"}}, fault.Waiting, "nowhere"},
		"all selected":            {[]fleet.BundleRef{{Selector: selector("a")}}, fault.Waiting, "atlas: NotReady"},
		"selected and named":      {[]fleet.BundleRef{{Name: "alpha", Selector: selector("a")}}, "", ""},
		"a reference to nothing":  {[]fleet.BundleRef{{}}, "", ""},
		"a broken selector":       {[]fleet.BundleRef{{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"-": "-"}}}}, fault.Stalled, "dependsOn"},
		"itself is not meant":     {[]fleet.BundleRef{{Selector: selector("s")}}, fault.Waiting, "tier=s"},
		"a circle of others":      {[]fleet.BundleRef{{Name: "left"}}, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			self := deployment("self", false, test.refs...)
			err := Check(self, append(all, self))
			if fault.ClassOf(err) != test.want {
				t.Fatalf("got %v (%s), want class %q", err, fault.ClassOf(err), test.want)
			}
			if err != nil && !strings.Contains(err.Error(), test.wantText) {
				t.Errorf("message %q lacks %q", err, test.wantText)
			}
		})
	}
	err := Check(all[4], all)
	if fault.ClassOf(err) != fault.Stalled || !strings.Contains(err.Error(), "left → right → left") {
		t.Errorf("a circle: %v", err)
	}
}
