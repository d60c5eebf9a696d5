package controller_test

import (
	"strings"
	"testing"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// A bundle's own rules decide about readiness on top of the kind's, at once and without a new revision; one that
// cannot be compiled is named.
func TestReadinessRules(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := map[string]string{"a.yaml": configMap("ruled", "phase", "early")}
	rule := func(expression string) fleet.BundleDeploymentOptions {
		return fleet.BundleDeploymentOptions{ManifestConfigs: []fleet.ManifestConfig{{
			Resource:       fleet.ResourceSelector{Kind: "ConfigMap"},
			ConditionRules: []fleet.ConditionRule{{Name: "phase", Expression: expression}},
		}}, Diff: &fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{{APIVersion: "v1", Kind: "ConfigMap", JsonPointers: []string{"/data"}}}}}
	}
	w.put("ruled", bundle{files: files, options: rule(`object.data.phase == "done"`)})
	waiting := w.until("ruled", fleet.NotReady)
	if message := readyMessage(waiting); !strings.Contains(message, "rule phase does not hold") {
		t.Errorf("message %q", message)
	}
	w.patchConfigMap("ruled", `{"data":{"phase":"done"}}`)
	ready := w.until("ruled", fleet.Ready)

	w.put("ruled", bundle{files: files, options: rule(`object.`)})
	wrong := w.until("ruled", fleet.NotReady)
	if message := readyMessage(wrong); !strings.Contains(message, "conditionRules[0] (phase): the expression cannot be compiled") {
		t.Errorf("message %q", message)
	}
	w.put("ruled", bundle{files: files, options: rule(`has(object.data)`)})
	again := w.until("ruled", fleet.Ready)
	if again.Status.Release != ready.Status.Release {
		t.Errorf("a rule made revision %s after %s", again.Status.Release, ready.Status.Release)
	}

	// With rules that are wrong nothing new is deployed.
	w.put("ruled", bundle{files: map[string]string{"a.yaml": configMap("ruled", "phase", "late")}, options: rule(`object.`)})
	stalled := w.until("ruled", fleet.ErrApplied)
	if message := status.MessageOf(stalled); !strings.Contains(message, "conditionRules[0] (phase)") {
		t.Errorf("message %q", message)
	}
}

func readyMessage(deployment *fleet.BundleDeployment) string {
	if ready := status.Find(deployment.Status.Conditions, fleet.ConditionReady); ready != nil {
		return ready.Message
	}
	return ""
}

// Why pods do not run reaches the status, and goes with the trouble.
func TestWhyNotReady(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deployment := func(name, labels, spec string) string {
		return `apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `}
spec:
  replicas: 1
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + labels + `}}
    spec: {` + spec + `containers: [{name: main, image: none}]}
`
	}
	w.put("nowhere", bundle{files: map[string]string{"a.yaml": deployment("nowhere", "", "nodeSelector: {nowhere: 'true'}, ")}})
	w.put("crash", bundle{files: map[string]string{"a.yaml": deployment("crash", ", kube.fairlead.dev/simulate: crash", "")}})
	says := func(words string) func(*fleet.BundleDeployment) bool {
		return func(d *fleet.BundleDeployment) bool {
			return len(d.Status.NonReadyStatus) == 1 && strings.Contains(strings.Join(d.Status.NonReadyStatus[0].Summary.Message, " "), words) &&
				strings.Contains(readyMessage(d), words)
		}
	}
	w.untilTrue("nowhere", "says why", says("Unschedulable: "))
	w.untilTrue("crash", "says why", says("container main: CrashLoopBackOff"))
	w.put("crash", bundle{files: map[string]string{"a.yaml": deployment("crash", "", "")}})
	w.until("crash", fleet.Ready)
}
