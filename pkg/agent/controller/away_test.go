package controller_test

import (
	"context"
	"fmt"
	"testing"

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
	kubetest.Eventually(t, "drift is corrected without the hub", func(context.Context) error {
		live, err := w.configMap("alone")
		if err == nil && live.Data["a"] != "1" {
			err = fmt.Errorf("data %v", live.Data)
		}
		return err
	})
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
