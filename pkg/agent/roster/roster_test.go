package roster

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// An update asks for a pass when more than the status changed; whatever changed may be what others wait for.
func TestUpdated(t *testing.T) {
	for name, test := range map[string]struct {
		change             func(*fleet.BundleDeployment)
		wantPass, wantMove bool
	}{
		"nothing":      {func(*fleet.BundleDeployment) {}, false, false},
		"the status":   {func(d *fleet.BundleDeployment) { d.Status.Ready = true }, false, true},
		"the spec":     {func(d *fleet.BundleDeployment) { d.Generation++ }, true, true},
		"made anew":    {func(d *fleet.BundleDeployment) { d.UID = "b" }, true, true},
		"to be gone":   {func(d *fleet.BundleDeployment) { d.DeletionTimestamp = &metav1.Time{} }, true, true},
		"a finalizer":  {func(d *fleet.BundleDeployment) { d.Finalizers = []string{"x"} }, true, true},
		"labels alone": {func(d *fleet.BundleDeployment) { d.Labels = map[string]string{"a": "b"} }, false, true},
	} {
		passes, moves := 0, 0
		handlers := Handlers{Changed: func(string) { passes++ }, Moved: func() { moves++ }}
		old := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d", UID: "a", ResourceVersion: "1", Generation: 1}}
		current := old.DeepCopy()
		test.change(current)
		if test.wantMove {
			current.ResourceVersion = "2"
		}
		handlers.updated(old, current)
		if (passes == 1) != test.wantPass || (moves == 1) != test.wantMove {
			t.Errorf("%s: %d passes, %d moves", name, passes, moves)
		}
	}
}

// Only an event of the hub's makes a deletion certain.
func TestDeleted(t *testing.T) {
	deployment := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: "d"}}
	for name, test := range map[string]struct {
		object      any
		wantCertain bool
		wantTold    int
	}{
		"an event":         {deployment, true, 1},
		"a list lacks it":  {cache.DeletedFinalStateUnknown{Key: "n/d", Obj: deployment}, false, 1},
		"something else":   {cache.DeletedFinalStateUnknown{Key: "n/d"}, false, 0},
		"nothing we watch": {&fleet.Bundle{}, false, 0},
	} {
		told, certain := 0, false
		handlers := Handlers{Moved: func() {}, Gone: func(_ string, sure bool) { told++; certain = sure }}
		handlers.deleted(test.object)
		if told != test.wantTold || certain != test.wantCertain {
			t.Errorf("%s: told %d times, certain %t", name, told, certain)
		}
	}
}

// A deployment that is held in any way is not the agent's to change.
func TestIsFree(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fleet.BundleDeploymentSpec)
		want   bool
	}{
		"free":         {func(*fleet.BundleDeploymentSpec) {}, true},
		"paused":       {func(s *fleet.BundleDeploymentSpec) { s.Paused = true }, false},
		"off schedule": {func(s *fleet.BundleDeploymentSpec) { s.OffSchedule = true }, false},
		"values":       {func(s *fleet.BundleDeploymentSpec) { s.WaitingForValues = true }, false},
		"no id":        {func(s *fleet.BundleDeploymentSpec) { s.DeploymentID = "" }, false},
	} {
		deployment := &fleet.BundleDeployment{}
		deployment.Spec.DeploymentID = "1"
		test.change(&deployment.Spec)
		if got := IsFree(deployment); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
