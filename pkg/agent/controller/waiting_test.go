package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

func stuck(label string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: stuck, labels: {step: "` + label + `"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: stuck}}
  template:
    metadata: {labels: {app: stuck}}
    spec: {nodeSelector: {nowhere: "true"}, containers: [{name: a, image: none}]}
`
}

// An atomic upgrade that does not become ready goes back to what ran before; the id stays the old one's.
func TestAtomicUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	options := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Atomic: true, TimeoutSeconds: 20}}
	first := w.put("atom", bundle{files: map[string]string{"a.yaml": configMap("atom", "a", "1")}, options: options})
	w.until("atom", fleet.Ready)
	options = fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Atomic: true, TimeoutSeconds: 5}}
	w.put("atom", bundle{files: map[string]string{"a.yaml": configMap("atom", "a", "2") + "---\n" + stuck("1")}, options: options})
	failed := w.until("atom", fleet.ErrApplied)
	if failed.Status.AppliedDeploymentID != first {
		t.Errorf("applied %q, want the first, %q", failed.Status.AppliedDeploymentID, first)
	}
	if message := status.MessageOf(failed); !strings.Contains(message, "stuck") {
		t.Errorf("message does not name what was waited for: %q", message)
	}
	kubetest.Eventually(t, "what ran before runs again", func(ctx context.Context) error {
		live, err := w.configMap("atom")
		if err == nil && live.Data["a"] != "1" {
			err = fmt.Errorf("data %v", live.Data)
		}
		if err != nil {
			return err
		}
		if _, err := w.memberClients().AppsV1().Deployments(w.target).Get(ctx, "stuck", metav1.GetOptions{}); err == nil {
			return fmt.Errorf("the deployment is still there")
		}
		return nil
	})
	if got := w.revisions("atom"); len(got) > 2 {
		t.Errorf("history %v", got)
	}
	w.put("atom", bundle{files: map[string]string{"a.yaml": configMap("atom", "a", "3")}})
	w.until("atom", fleet.Ready)
}

// What cannot be changed in place is replaced with helm.force, and refused without.
func TestImmutableFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	job := func(image string) map[string]string {
		return map[string]string{"a.yaml": "apiVersion: batch/v1\nkind: Job\nmetadata: {name: once}\nspec:\n  template:\n    spec: {restartPolicy: Never, containers: [{name: a, image: " + image + "}]}\n"}
	}
	w.put("once", bundle{files: job("one")})
	w.until("once", fleet.Ready)
	w.put("once", bundle{files: job("two")})
	refused := w.until("once", fleet.ErrApplied)
	if message := status.MessageOf(refused); !strings.Contains(message, "immutable") {
		t.Errorf("message %q", message)
	}
	w.put("once", bundle{files: job("two"), options: fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Force: true}}})
	w.until("once", fleet.Ready)
	live, err := w.memberClients().BatchV1().Jobs(w.target).Get(t.Context(), "once", metav1.GetOptions{})
	if err != nil || live.Spec.Template.Spec.Containers[0].Image != "two" {
		t.Errorf("job %v, %v", live, err)
	}

	// What is wrong by itself is no reason to delete what runs, and a volume is never deleted to be changed.
	service := func(port string) string {
		return "apiVersion: v1\nkind: Service\nmetadata: {name: door}\nspec: {ports: [{port: " + port + "}]}\n"
	}
	uids := func() string {
		t.Helper()
		out, err := w.member.Kubectl(t.Context(), nil, "get", "-n", w.target, "service/door", "pvc/data", "-o", "jsonpath={.items[*].metadata.uid}")
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	forced := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Force: true}}
	w.put("kept", bundle{files: map[string]string{"a.yaml": service("80") + "---\n" + volume}, options: forced})
	w.untilTrue("kept", "is applied", func(d *fleet.BundleDeployment) bool { return d.Status.AppliedDeploymentID != "" })
	before := uids()
	w.put("kept", bundle{files: map[string]string{"a.yaml": service("99999") + "---\n" + strings.Replace(volume, "ReadWriteOnce", "ReadWriteMany", 1)}, options: forced})
	refused = w.until("kept", fleet.ErrApplied)
	for _, want := range []string{"99999", "not replaced by force"} {
		if message := status.MessageOf(refused); !strings.Contains(message, want) {
			t.Errorf("message %q lacks %q", message, want)
		}
	}
	if after := uids(); after != before {
		t.Errorf("objects %s, before %s", after, before)
	}
}

// What is still being deleted is waited for, by the names of what holds it, and then made again.
func TestTerminating(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	held := func(data string) map[string]string {
		return map[string]string{"a.yaml": configMap("other", "a", data) + "---\n" +
			strings.Replace(configMap("held", "a", data), "name: held", "name: held\n  finalizers: [example.com/hold]", 1)}
	}
	w.put("again", bundle{files: held("1")})
	w.until("again", fleet.Ready)
	w.put("again", bundle{files: map[string]string{"a.yaml": configMap("other", "a", "1")}})
	w.until("again", fleet.Ready)
	w.put("again", bundle{files: held("2")})
	w.untilTrue("again", "tells what it waits for", func(d *fleet.BundleDeployment) bool {
		deployed := status.Find(d.Status.Conditions, fleet.ConditionDeployed)
		return status.Of(d) == fleet.WaitApplied && deployed != nil && deployed.Reason == "Terminating" &&
			strings.Contains(deployed.Message, w.target+"/held") && strings.Contains(deployed.Message, "example.com/hold")
	})
	w.patchConfigMap("held", `{"metadata":{"finalizers":null}}`)
	w.until("again", fleet.Ready)
	w.patchConfigMap("held", `{"metadata":{"finalizers":null}}`)
}
