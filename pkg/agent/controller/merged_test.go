package controller_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

const mergedName = "repo-merged"

// putMerged makes or changes the merged object: a deployment for each part, nil to take one out.
func (w *world) putMerged(parts map[string]*fleet.BundleDeployment) {
	w.t.Helper()
	changed := map[string]any{}
	for name, deployment := range parts {
		if changed[name] = nil; deployment != nil {
			changed[name] = merge.PartOf(deployment)
		}
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": fleet.GroupVersion.String(), "kind": "BundleDeployment",
		"metadata": map[string]any{"name": mergedName, "labels": map[string]string{fleet.MergedLabel: "repo"}},
		"spec":     map[string]any{"parts": changed},
	})
	if err != nil {
		w.t.Fatal(err)
	}
	resource := w.client.Get().Namespace(w.namespace).Resource("bundledeployments").Name(mergedName)
	if resource.Do(w.t.Context()).Error() != nil {
		err = w.client.Post().Namespace(w.namespace).Resource("bundledeployments").Body(body).Do(w.t.Context()).Error()
	} else {
		err = w.client.Patch(types.MergePatchType).Namespace(w.namespace).Resource("bundledeployments").Name(mergedName).Body(body).Do(w.t.Context()).Error()
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// untilPart waits until the report of a part holds for its present spec.
func (w *world) untilPart(name string) *fleet.BundleDeployment {
	w.t.Helper()
	var object *fleet.BundleDeployment
	kubetest.Eventually(w.t, "part "+name+" is ready", func(context.Context) error {
		object = w.get(mergedName)
		for _, part := range merge.Explode(object) {
			if part.Name == name && status.Of(part) == fleet.Ready && part.Status.AckedDeploymentID+part.Status.AppliedDeploymentID != "" {
				return nil
			}
		}
		text, _ := json.Marshal(object.Status)
		return fmt.Errorf("status %s", text)
	})
	return object
}

// A deployment that moves into a merged object and out of it stays installed as it is: the same release and the same
// objects, whether the agent sees it happen or starts afterwards. The agent reports in every object that has it.
func TestMovingIntoAMergedObjectAndBack(t *testing.T) {
	w := newWorld(t)
	names := []string{"one", "two"}
	parts, uids := map[string]*fleet.BundleDeployment{}, map[string]types.UID{}
	for _, name := range names {
		w.put(name, bundle{files: map[string]string{"a.yaml": configMap(name, "a", "1")}, values: map[string]any{"size": 1}})
		parts[name] = w.until(name, fleet.Ready)
		live, err := w.configMap(name)
		if err != nil {
			t.Fatal(err)
		}
		uids[name] = live.UID
	}
	check := func(when string) {
		t.Helper()
		for _, name := range names {
			live, err := w.configMap(name)
			if err != nil || live.UID != uids[name] || live.DeletionTimestamp != nil {
				t.Fatalf("%s: %s is another object: %v", when, name, err)
			}
			if got := w.revisions(name); len(got) != 1 {
				t.Errorf("%s: revisions of %s are %v", when, name, got)
			}
		}
	}
	for round := range 2 {
		w.putMerged(parts)
		for _, name := range names {
			w.untilPart(name)
			parts[name] = w.get(name)
		}
		if round == 1 {
			w.stop()
		}
		for _, name := range names {
			w.delete(name)
		}
		if round == 1 {
			w.start()
		}
		w.settles()
		check("merged")
		for _, name := range names {
			err := w.client.Post().Namespace(w.namespace).Resource("bundledeployments").Body(merge.Alone(parts[name])).Do(t.Context()).Error()
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, name := range names {
			w.until(name, fleet.Ready)
		}
		w.delete(mergedName)
		w.settles()
		check("alone again")
	}
}

// settles waits until the agent has seen what was written before: it deploys something new.
func (w *world) settles() {
	w.t.Helper()
	w.put("marker", bundle{files: map[string]string{"a.yaml": configMap("marker", "a", w.get(w.anyName()).ResourceVersion)}})
	w.untilTrue("marker", "is deployed", func(d *fleet.BundleDeployment) bool {
		return status.Of(d) == fleet.Ready && d.Status.AppliedDeploymentID == d.Spec.DeploymentID
	})
}

func (w *world) anyName() string {
	w.t.Helper()
	list := &fleet.BundleDeploymentList{}
	if err := w.client.Get().Namespace(w.namespace).Resource("bundledeployments").Do(w.t.Context()).Into(list); err != nil {
		w.t.Fatal(err)
	}
	return list.Items[0].Name
}

// Parts are deployed, changed and removed as deployments alone are; what is reported of them is gathered, and the
// object tells of all of them.
func TestPartsOfAMergedObject(t *testing.T) {
	w := newWorld(t)
	parts := map[string]*fleet.BundleDeployment{}
	names := []string{"a", "b", "c", "kept"}
	for _, name := range names {
		options := fleet.BundleDeploymentOptions{KeepResources: name == "kept"}
		parts[name] = w.made(name, bundle{files: map[string]string{"a.yaml": configMap(name, "a", "1")}, options: options})
	}
	w.putMerged(parts)
	for _, name := range names {
		w.untilPart(name)
	}
	object := w.get(mergedName)
	if ready := status.Find(object.Status.Conditions, fleet.ConditionReady); object.Status.Display.Deployed != "4/4" || ready == nil || ready.Status != "True" {
		t.Errorf("shown is %+v, %+v", object.Status.Display, object.Status.Conditions)
	}
	before, err := w.configMap("b")
	if err != nil {
		t.Fatal(err)
	}
	changed := w.made("b", bundle{files: map[string]string{"a.yaml": configMap("b", "a", "2")}})
	changed.Generation = 2
	w.putMerged(map[string]*fleet.BundleDeployment{"a": nil, "b": changed, "kept": nil})
	w.untilGone("a")
	w.untilNoRecords("kept")
	kubetest.Eventually(t, "b is changed, and what is gone is told of no more", func(context.Context) error {
		live, err := w.configMap("b")
		if err == nil && (live.Data["a"] != "2" || live.UID != before.UID) {
			err = fmt.Errorf("data %v, uid %s", live.Data, live.UID)
		}
		var told []string
		for name := range w.get(mergedName).Status.Parts {
			told = append(told, name)
		}
		if slices.Sort(told); err == nil && !slices.Equal(told, []string{"b", "c"}) {
			err = fmt.Errorf("told of %v", told)
		}
		return err
	})
	if _, err := w.configMap("kept"); err != nil {
		t.Errorf("resources that were to be kept are gone: %v", err)
	}
	if _, err := w.configMap("c"); err != nil {
		t.Errorf("another part lost its objects: %v", err)
	}
	w.delete(mergedName)
	w.untilGone("b")
	w.untilGone("c")
}

// made stores what a deployment needs and returns it, without storing it itself.
func (w *world) made(name string, b bundle) *fleet.BundleDeployment {
	w.t.Helper()
	var made *fleet.BundleDeployment
	b.change = func(d *fleet.BundleDeployment) {
		made = d.DeepCopy()
		d.Name, d.Spec.Paused = "unused-"+name, true
	}
	w.put(name, b)
	w.delete("unused-" + name)
	made.ObjectMeta = metav1.ObjectMeta{Namespace: made.Namespace, Name: made.Name, Labels: made.Labels}
	return made
}
