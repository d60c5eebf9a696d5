package interests

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestDeploymentEvents(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fleet.BundleDeployment)
		want   bool
	}{
		"report": {func(d *fleet.BundleDeployment) { d.Status.Ready, d.ResourceVersion = true, "9" }, false},
		"spec":   {func(d *fleet.BundleDeployment) { d.Generation++ }, true},
		"no values": {func(d *fleet.BundleDeployment) {
			d.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: "Unknown", Reason: fleet.ReasonWaitingForValues}}
		}, true},
		"other wait": {func(d *fleet.BundleDeployment) {
			d.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: "Unknown", Reason: "Dependency"}}
		}, false},
		"labels":     {func(d *fleet.BundleDeployment) { d.Labels = map[string]string{"a": "b"} }, true},
		"is deleted": {func(d *fleet.BundleDeployment) { d.DeletionTimestamp = &metav1.Time{Time: start} }, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, after := &fleet.BundleDeployment{}, &fleet.BundleDeployment{}
			test.change(after)
			if got := specTouched(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("let through: %v", got)
			}
		})
	}
	labelled := &fleet.BundleDeployment{}
	labelled.Labels = map[string]string{fleet.BundleLabel: "shop", fleet.BundleNamespaceLabel: "ws"}
	if got := bundleOf(t.Context(), labelled); len(got) != 1 || got[0].NamespacedName != shop {
		t.Errorf("bundle %v", got)
	}
	if got := bundleOf(t.Context(), &fleet.BundleDeployment{}); got != nil {
		t.Errorf("a deployment made by hand belongs to %v", got)
	}
}
