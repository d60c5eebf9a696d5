package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

func TestDriftIsSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := map[string]string{"a.yaml": configMap("tide", "level", "1") + "---\n" + configMap("moon", "phase", "full")}
	w.put("drift", bundle{files: files})
	w.until("drift", fleet.Ready)

	// A field that the bundle does not set is nobody's business.
	w.patchConfigMap("tide", `{"data":{"other":"x"},"metadata":{"labels":{"theirs":"y"}}}`)
	w.patchConfigMap("tide", `{"data":{"level":"9"}}`)
	modified := w.until("drift", fleet.Modified)
	if len(modified.Status.ModifiedStatus) != 1 || modified.Status.ModifiedStatus[0].Patch != `{"data":{"level":"1"}}` {
		t.Errorf("modified: %+v", modified.Status.ModifiedStatus)
	}
	// The entry that is offered makes it Ready, without a new deployment.
	w.put("drift", bundle{files: files, options: fleet.BundleDeploymentOptions{Diff: &fleet.DiffOptions{ComparePatches: modified.Status.ComparePatches}}})
	if accepted := w.until("drift", fleet.Ready); accepted.Status.Release != modified.Status.Release {
		t.Errorf("deployed anew: %s", accepted.Status.Release)
	}
	w.put("drift", bundle{files: files})
	w.until("drift", fleet.Modified)
	w.patchConfigMap("tide", `{"data":{"level":"1"}}`)
	w.until("drift", fleet.Ready)

	if err := w.memberClients().CoreV1().ConfigMaps(w.target).Delete(t.Context(), "moon", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	missing := w.untilTrue("drift", "lacks an object", func(d *fleet.BundleDeployment) bool { return d.Status.ResourceCounts.Missing == 1 })
	if len(missing.Status.ModifiedStatus) != 1 || !missing.Status.ModifiedStatus[0].Create {
		t.Errorf("modified: %+v", missing.Status.ModifiedStatus)
	}
}

func TestDriftIsExcepted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("except", bundle{
		files: map[string]string{"a.yaml": configMap("tide", "level", "1")},
		options: fleet.BundleDeploymentOptions{Diff: &fleet.DiffOptions{ComparePatches: []fleet.ComparePatch{{
			APIVersion: "v1", Kind: "ConfigMap", Name: "tide", Namespace: w.target,
			Operations: []fleet.Operation{{Op: "remove", Path: "/data/level"}},
		}}}},
	})
	before := w.until("except", fleet.Ready)
	w.patchConfigMap("tide", `{"data":{"level":"9"}}`)
	// Something that is reported comes after the patch, so that the patch has been looked at.
	w.patchConfigMap("tide", `{"metadata":{"annotations":{"meta.helm.sh/release-name":"other"}}}`)
	seen := w.untilTrue("except", "saw both changes", func(d *fleet.BundleDeployment) bool { return len(d.Status.ModifiedStatus) == 1 })
	if patch := seen.Status.ModifiedStatus[0].Patch; strings.Contains(patch, "level") {
		t.Errorf("reported what is excepted: %s", patch)
	}
	if seen.Status.AppliedDeploymentID != before.Status.AppliedDeploymentID {
		t.Error("deployed anew")
	}
}

func TestDriftIsCorrected(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("correct", bundle{
		files:   map[string]string{"a.yaml": configMap("tide", "level", "1") + "---\n" + configMap("moon", "phase", "full") + "---\n" + configMap("mark", "a", "1")},
		options: fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true}},
	})
	w.until("correct", fleet.Ready)
	w.patchConfigMap("tide", `{"data":{"level":"9","theirs":"x"}}`)
	w.untilData("tide", "level", "1")
	if tide, err := w.configMap("tide"); err != nil || tide.Data["theirs"] != "x" {
		t.Errorf("data %v, %v", tide.Data, err)
	}
	if err := w.memberClients().CoreV1().ConfigMaps(w.target).Delete(t.Context(), "moon", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the object is restored", func(context.Context) error {
		_, err := w.configMap("moon")
		return err
	})
	// The label that names the owner is a field as any other: who really takes over changes more than that.
	w.patchConfigMap("mark", `{"metadata":{"labels":{"`+fleet.SetHashLabel+`":"somebody"}}}`)
	kubetest.Eventually(t, "the owner's label is restored", func(context.Context) error {
		mark, err := w.configMap("mark")
		if err == nil && mark.Labels[fleet.SetHashLabel] == "somebody" {
			err = fmt.Errorf("labels %v", mark.Labels)
		}
		return err
	})
	w.until("correct", fleet.Ready)
	if got := w.revisions("correct"); len(got) != 1 {
		t.Errorf("corrections made revisions: %v", got)
	}
}

// What cannot be changed in place is an error, tried a few times; with force it is replaced.
func TestDriftIsForced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	files := map[string]string{"a.yaml": configMap("stone", "a", "1") + "---\n" + configMap("sand", "a", "1")}
	corrected := func(force bool) fleet.BundleDeploymentOptions {
		return fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true, Force: force}}
	}
	w.put("forced", bundle{files: files, options: corrected(false)})
	w.until("forced", fleet.Ready)
	before, err := w.configMap("stone")
	if err != nil {
		t.Fatal(err)
	}
	// Nobody can set the field back once the object is immutable, so both change at once.
	w.patchConfigMap("stone", `{"data":{"a":"9"},"immutable":true}`)
	w.untilTrue("forced", "tells that it cannot correct", func(d *fleet.BundleDeployment) bool {
		monitored := status.Find(d.Status.Conditions, fleet.ConditionMonitored)
		return monitored != nil && strings.Contains(monitored.Message, "immutable") && len(d.Status.ModifiedStatus) == 1
	})
	// A sibling is corrected all the same.
	w.patchConfigMap("sand", `{"data":{"a":"9"}}`)
	w.untilData("sand", "a", "1")
	w.put("forced", bundle{files: files, options: corrected(true)})
	kubetest.Eventually(t, "the object is replaced", func(context.Context) error {
		after, err := w.configMap("stone")
		if err == nil && (after.UID == before.UID || after.Data["a"] != "1") {
			err = fmt.Errorf("uid %s, data %v", after.UID, after.Data)
		}
		return err
	})
	w.until("forced", fleet.Ready)
	if got := w.revisions("forced"); len(got) != 1 {
		t.Errorf("corrections made revisions: %v", got)
	}
}

// A correction is one write, of the object alone.
func TestCorrectionIsOneWrite(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("once", bundle{
		files:   map[string]string{"a.yaml": configMap("tide", "level", "1")},
		options: fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true, KeepFailHistory: true}},
	})
	w.until("once", fleet.Ready)
	before := len(w.memberWrites())
	w.patchConfigMap("tide", `{"data":{"level":"9"}}`)
	w.untilData("tide", "level", "1")
	settle := time.NewTimer(2 * time.Second)
	<-settle.C
	if written := w.memberWrites()[before:]; len(written) != 2 && !anyGivenUp(written) { // somebody's and ours
		t.Errorf("writes: %v", written)
	}
	if got := w.revisions("once"); len(got) != 1 {
		t.Errorf("the correction made revisions: %v", got)
	}
}

func TestNotReadyIsReported(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("slow", bundle{files: map[string]string{"a.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {nowhere: "true"}
      containers: [{name: web, image: none}]
`}})
	slow := w.until("slow", fleet.NotReady)
	if len(slow.Status.NonReadyStatus) != 1 || slow.Status.NonReadyStatus[0].Name != "web" || len(slow.Status.NonReadyStatus[0].Summary.Message) == 0 {
		t.Errorf("not ready: %+v", slow.Status.NonReadyStatus)
	}
	// Scaled to nothing by somebody else: that is drift, and ready.
	_, err := w.memberClients().AppsV1().Deployments(w.target).Patch(t.Context(), "web", types.MergePatchType, []byte(`{"spec":{"replicas":0}}`), metav1.PatchOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w.until("slow", fleet.Modified)
}

// A failed upgrade leaves what runs and its id alone, says why, and mends itself.
func TestFailedUpgrade(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	first := w.put("fails", bundle{files: map[string]string{"a.yaml": configMap("good", "a", "1")}})
	w.until("fails", fleet.Ready)
	w.put("fails", bundle{files: map[string]string{"a.yaml": configMap("good", "a", "2"), "b.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: bad}\nspec: {ports: [{port: 99999}]}\n"}})
	failed := w.until("fails", fleet.ErrApplied)
	if failed.Status.AppliedDeploymentID != first {
		t.Errorf("applied id %q, want the first, %q", failed.Status.AppliedDeploymentID, first)
	}
	if message := status.MessageOf(failed); !strings.Contains(message, "bad") || !strings.Contains(message, "99999") {
		t.Errorf("message: %s", message)
	}
	w.put("fails", bundle{files: map[string]string{"a.yaml": configMap("good", "a", "3")}})
	w.until("fails", fleet.Ready)
	if got := w.revisions("fails"); len(got) > 2 {
		t.Errorf("history: %v", got)
	}
}

func TestDependencies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	after := func(name string) func(*fleet.BundleDeployment) {
		return func(d *fleet.BundleDeployment) { d.Spec.DependsOn = []fleet.BundleRef{{Name: name}} }
	}
	w.put("roof", bundle{files: map[string]string{"a.yaml": configMap("roof", "a", "1")}, change: after("walls")})
	waiting := w.until("roof", fleet.WaitApplied)
	if message := status.MessageOf(waiting); !strings.Contains(message, "walls") {
		t.Errorf("message does not name what is waited for: %q", message)
	}
	w.put("walls", bundle{files: map[string]string{"a.yaml": configMap("walls", "a", "1")}})
	w.until("roof", fleet.Ready)

	w.put("hen", bundle{files: map[string]string{"a.yaml": configMap("hen", "a", "1")}, change: after("egg")})
	w.put("egg", bundle{files: map[string]string{"a.yaml": configMap("egg", "a", "1")}, change: after("hen")})
	circle := w.until("egg", fleet.ErrApplied)
	if message := status.MessageOf(circle); !strings.Contains(message, "egg → hen → egg") {
		t.Errorf("message does not name the circle: %q", message)
	}
	w.put("egg", bundle{files: map[string]string{"a.yaml": configMap("egg", "a", "1")}})
	w.until("hen", fleet.Ready)
}

func TestPausedAndValues(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("still", bundle{files: map[string]string{"a.yaml": configMap("still", "a", "1")}, change: func(d *fleet.BundleDeployment) { d.Spec.Paused = true }})
	w.put("wrong", bundle{files: map[string]string{"a.yaml": configMap("wrong", "a", "1")}, values: map[string]any{"a": "b"},
		change: func(d *fleet.BundleDeployment) { d.Spec.ValuesHash = "0000" }})
	waiting := w.until("wrong", fleet.WaitApplied)
	if message := status.MessageOf(waiting); !strings.Contains(message, "values") {
		t.Errorf("message %q", message)
	}
	w.putValues("wrong", map[string]any{"a": "b"})
	w.put("wrong", bundle{files: map[string]string{"a.yaml": configMap("wrong", "a", "1")}, values: map[string]any{"a": "b"}})
	w.until("wrong", fleet.Ready)
	if _, err := w.configMap("still"); err == nil {
		t.Error("a paused deployment was deployed")
	}
}

// The same look again writes nothing: an idle agent is silent on both sides.
func TestIdleWritesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"one", "two", "three"} {
		w.put(name, bundle{files: map[string]string{"a.yaml": configMap(name, "a", "1")}})
	}
	for _, name := range []string{"one", "two", "three"} {
		w.until(name, fleet.Ready)
	}
	count := func() int {
		all, err := w.hub.Writes()
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, write := range all {
			if write.Namespace == w.namespace && write.Subresource == "status" && write.Resource == "bundledeployments" && writes.CarriedOut(write.Request) {
				n++
			}
		}
		return n
	}
	settle, before := time.NewTimer(time.Hour), 0
	kubetest.Eventually(t, "the agent has nothing more to say", func(context.Context) error {
		last := count()
		settle.Reset(2 * time.Second)
		<-settle.C
		if before = count(); before != last {
			return fmt.Errorf("%d status writes became %d", last, before)
		}
		return nil
	})
	if before > 3*2 {
		t.Errorf("%d status writes to create three bundles, want at most two each", before)
	}
	w.stop()
	w.start()
	settle.Reset(3 * time.Second)
	<-settle.C
	if after := count(); after != before {
		t.Errorf("%d status writes by a restarted agent that has nothing to do", after-before)
	}
	for _, name := range []string{"one", "two", "three"} {
		if got := w.revisions(name); len(got) != 1 {
			t.Errorf("%s was deployed again: %v", name, got)
		}
	}
}

// What went while the agent was away is removed; a list that is empty removes nothing.
func TestRemovedWhileAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.put("leaves", bundle{files: map[string]string{"a.yaml": configMap("leaves", "a", "1")}})
	w.put("stays", bundle{files: map[string]string{"a.yaml": configMap("stays", "a", "1")}})
	// How a bundle goes is what its options said, though they are gone with it.
	group, made := strings.ReplaceAll(w.target, "-", "")+".example.com", w.target+"-made"
	w.put("keeps", bundle{
		files:   map[string]string{"a.yaml": configMap("kept", "a", "1")},
		options: fleet.BundleDeploymentOptions{KeepResources: true},
	})
	w.put("sweeps", bundle{
		files:   map[string]string{"a.yaml": definition(group) + "---\n" + configMap("swept", "a", "1")},
		options: fleet.BundleDeploymentOptions{DefaultNamespace: made, DeleteCRDResources: true, DeleteNamespace: true},
	})
	gone := []string{"leaves", "keeps", "sweeps"}
	for _, name := range append(gone, "stays") {
		w.until(name, fleet.Ready)
	}
	w.stop()
	for _, name := range gone {
		w.delete(name)
	}
	w.put("also-stays", bundle{files: map[string]string{"a.yaml": configMap("also-stays", "a", "1")}})
	w.put("stays-too", bundle{files: map[string]string{"a.yaml": configMap("stays-too", "a", "1")}})
	w.start()
	w.untilGone("leaves")
	w.untilNoRecords("leaves")
	w.untilNoRecords("keeps")
	if _, err := w.configMap("kept"); err != nil {
		t.Errorf("keepResources: %v", err)
	}
	kubetest.Eventually(t, "definition and namespace are gone", func(ctx context.Context) error {
		left, err := w.member.Kubectl(ctx, nil, "get", "--ignore-not-found", "-o", "name", "crd/jars."+group, "namespace/"+made)
		if err == nil && left != "" {
			err = fmt.Errorf("left: %s", left)
		}
		return err
	})
	for _, name := range []string{"also-stays", "stays-too"} {
		w.until(name, fleet.Ready)
	}

	w.stop()
	for _, name := range []string{"stays", "also-stays", "stays-too"} {
		w.delete(name)
	}
	w.start()
	pause := time.NewTimer(5 * time.Second)
	<-pause.C
	if _, err := w.configMap("stays"); err != nil {
		t.Errorf("an empty list removed an object: %v", err)
	}
}
