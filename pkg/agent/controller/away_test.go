package controller_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// While the hub is away the agent goes on: what runs stays, drift is corrected. When the hub is back,
// what it wants then is deployed.
func TestHubAway(t *testing.T) {
	w := newWorld(t)
	options := fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true}}
	w.put("alone", bundle{files: map[string]string{"a.yaml": configMap("alone", "a", "1")}, options: options})
	w.until("alone", fleet.Ready)

	if err := w.hub.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	w.patchConfigMap("alone", `{"data":{"a":"9"}}`)
	w.untilData("alone", "a", "1")
	if err := w.hub.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the hub answers", func(ctx context.Context) error {
		return w.client.Get().Namespace(w.namespace).Resource("bundledeployments").Name("alone").Do(ctx).Error()
	})
	w.put("alone", bundle{files: map[string]string{"a.yaml": configMap("alone", "a", "2")}, options: options})
	w.until("alone", fleet.Ready)
	if live, err := w.configMap("alone"); err != nil || live.Data["a"] != "2" {
		t.Errorf("after the hub's return: %v, %v", live, err)
	}
	if got := w.revisions("alone"); len(got) != 2 {
		t.Errorf("revisions %v, want two", got)
	}
}

// What the hub wanted while the agent could not hear it is not made up for: only the newest counts, once.
func TestOnlyTheNewestAfterAbsence(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := func(value string) map[string]string {
		return map[string]string{"a.yaml": configMap("late", "a", value)}
	}
	w.put("late", bundle{files: files("1")})
	w.until("late", fleet.Ready)
	w.stop()
	for _, value := range []string{"2", "3", "4"} {
		w.put("late", bundle{files: files(value)})
	}
	w.start()
	ready := w.untilTrue("late", "has the newest", func(d *fleet.BundleDeployment) bool {
		return d.Status.AppliedDeploymentID == d.Spec.DeploymentID && d.Status.Ready
	})
	if live, err := w.configMap("late"); err != nil || live.Data["a"] != "4" {
		t.Errorf("data %v, %v", live.Data, err)
	}
	if want := w.target + "/late:2"; ready.Status.Release != want {
		t.Errorf("release %s, want %s", ready.Status.Release, want)
	}
}

// A list that lacks more than half of what is deployed is not believed; deployments that come back to it go on.
func TestListsThatLackMuchRemoveNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := func(i int) string { return fmt.Sprintf("kept-%d", i) }
	const all = 8
	for i := range all {
		w.put(name(i), bundle{files: map[string]string{"a.yaml": configMap(name(i), "a", "1")}})
	}
	for i := range all {
		w.until(name(i), fleet.Ready)
	}
	w.stop()
	for i := 1; i < all; i++ {
		w.delete(name(i))
	}
	w.start()
	// The one that is left is deployed anew: the agent has the list.
	id := w.put(name(0), bundle{files: map[string]string{"a.yaml": configMap(name(0), "a", "2")}})
	w.untilTrue(name(0), "is deployed anew", func(d *fleet.BundleDeployment) bool { return d.Status.AppliedDeploymentID == id })
	settle := time.NewTimer(5 * time.Second) // several times as long as a removal takes to be confirmed
	<-settle.C
	for i := range all {
		if _, err := w.configMap(name(i)); err != nil {
			t.Errorf("a list that lacks seven of eight removed an object: %v", err)
		}
	}
}
