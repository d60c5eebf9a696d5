package interests

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// woken keeps what is to be looked at.
type woken struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]
	names map[string]bool
}

func (w *woken) AddAfter(request reconcile.Request, _ time.Duration) { w.names[request.Name] = true }

// A bundle is woken up by what becomes of those that its plan waits for, from the moment it reads about them, and of no others.
func TestFollowers(t *testing.T) {
	named := func(name string) *fleet.Bundle {
		return &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: name}}
	}
	base, other := named("base"), named("other")
	app := client.ObjectKeyFromObject(named("app"))
	bundles := &Bundles{
		options: Options{Count: func(int, int) {}}, bundles: map[types.NamespacedName]*Bundle{},
		followers: map[types.NamespacedName]map[types.NamespacedName]bool{}, awaited: map[types.NamespacedName][]types.NamespacedName{},
	}
	plan := func(first ...target.First) {
		t.Helper()
		cluster := target.ClusterInfo{Namespace: "ws", Name: "c", DeploymentNamespace: "cluster-c"}
		spec := named("app")
		spec.Spec.Targets = []fleet.BundleTarget{{ClusterTarget: fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}}}}
		_, err := bundles.Of(app).Plan(target.Snapshot{Bundle: spec, ManifestID: "s-1", Clusters: []target.ClusterInfo{cluster}, First: first, Now: start})
		if err != nil {
			t.Fatal(err)
		}
	}
	wakes := func(what string, want ...string) {
		t.Helper()
		for _, bundle := range []*fleet.Bundle{base, other} {
			queue := &woken{names: map[string]bool{}}
			bundles.bundleEvents().Update(t.Context(), event.UpdateEvent{ObjectOld: bundle, ObjectNew: bundle}, queue)
			if got := queue.names["app"]; got != (len(want) > 0 && want[0] == bundle.Name) {
				t.Errorf("%s: a change of %s wakes %v", what, bundle.Name, queue.names)
			}
		}
	}
	everywhere := base.DeepCopy()
	everywhere.Spec.Targets = []fleet.BundleTarget{{ClusterTarget: fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}}}}

	wakes("at first")
	bundles.Follow(app, []*fleet.Bundle{base})
	wakes("while it is read", "base")
	plan(target.First{Bundle: everywhere})
	wakes("waiting for it", "base")
	if since := bundles.Of(app).WaitingSince(); !since.Equal(start) {
		t.Errorf("waiting since %s", since)
	}
	deployment := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-c", Name: "base", Labels: map[string]string{
		fleet.BundleLabel: "base", fleet.BundleNamespaceLabel: "ws",
	}}}
	queue := &woken{names: map[string]bool{}}
	bundles.options.IsOwn = func(client.Object) bool { return true }
	bundles.deploymentEvents().Create(t.Context(), event.CreateEvent{Object: deployment}, queue)
	if !queue.names["app"] {
		t.Error("a deployment of what it waits for does not wake it")
	}
	plan()
	wakes("when it has come")
	if since := bundles.Of(app).WaitingSince(); !since.IsZero() {
		t.Errorf("waiting since %s", since)
	}
	bundles.Follow(app, []*fleet.Bundle{base})
	bundles.Forget(app)
	wakes("when it is gone")
}
