package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Healthy manifests are Ready and stay so, whatever defaults, controllers and injectors do to them,
// without any comparePatches.
func TestHealthyManifestsSettle(t *testing.T) {
	w := newWorld(t)
	text, err := os.ReadFile("testdata/settles.yaml")
	if err != nil {
		t.Fatal(err)
	}
	unique := strings.ReplaceAll(w.target, "-", "")
	files := map[string]string{"all.yaml": strings.ReplaceAll(string(text), "NAME", unique)}
	w.put("all", bundle{files: files})
	ready := w.until("all", fleet.Ready)
	if want := w.target + "/all:1"; ready.Status.Release != want {
		t.Errorf("release %s, want %s: not the first attempt", ready.Status.Release, want)
	}

	hooks := w.memberClients().AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = hooks.Patch(t.Context(), unique+"-hook", types.JSONPatchType, []byte(`[{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"QUJD"}]`), metav1.PatchOptions{FieldManager: "injector"})
	if err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the job is removed by its time to live", func(ctx context.Context) error {
		_, err := w.memberClients().BatchV1().Jobs(w.target).Get(ctx, "brief", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	})
	// Without memory, as after a restart, everything is compared anew.
	w.stop()
	w.start()
	w.put("all", bundle{files: files, options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{MaxHistory: 3}}})
	w.untilTrue("all", "is deployed again", func(d *fleet.BundleDeployment) bool { return d.Status.AppliedDeploymentID == d.Spec.DeploymentID })
	settled := w.until("all", fleet.Ready)
	if text, _ := json.Marshal(settled.Status.ModifiedStatus); len(settled.Status.ModifiedStatus) > 0 {
		t.Errorf("modified: %s", text)
	}
	live, err := hooks.Get(t.Context(), unique+"-hook", metav1.GetOptions{})
	if _, err := w.memberClients().BatchV1().Jobs(w.target).Get(t.Context(), "brief", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a job that had run and gone was run again: %v", err)
	}
	if err != nil || string(live.Webhooks[0].ClientConfig.CABundle) != "ABC" {
		t.Errorf("the injected authority was taken away: %v", err)
	}
}
