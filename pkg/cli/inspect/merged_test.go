package inspect

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func mergedObject(version string, ids map[string]string) *fleet.BundleDeployment {
	object := &fleet.BundleDeployment{}
	object.Namespace, object.Name, object.ResourceVersion = "cluster-1", "repo-merged", version
	object.Labels = map[string]string{fleet.MergedLabel: "repo"}
	object.Spec.Parts = map[string]fleet.DeploymentPart{}
	for name, id := range ids {
		object.Spec.Parts[name] = fleet.DeploymentPart{
			Labels: map[string]string{fleet.BundleLabel: name}, Spec: fleet.DeploymentPartSpec{DeploymentID: id},
		}
	}
	return object
}

// Deployments are listed each by itself, whatever carries them; of a change only what differs is printed.
func TestDeploymentsInMergedObjects(t *testing.T) {
	kind, err := resourceNamed("deployments")
	if err != nil {
		t.Fatal(err)
	}
	f := &getFlags{}
	list := &fleet.BundleDeploymentList{Items: []fleet.BundleDeployment{*mergedObject("1", map[string]string{"a": "1", "b": "1"})}}
	f.explode(list)
	chosen, missing, err := f.choose(kind, list, []string{"a", "c"})
	if err != nil || len(chosen) != 1 || chosen[0].GetName() != "a" || !slices.Equal(missing, []string{"c"}) {
		t.Errorf("chosen %v, missing %v, %v", chosen, missing, err)
	}
	changed := f.changed(mergedObject("2", map[string]string{"a": "1", "b": "2", "c": "1"}))
	var names []string
	for _, object := range changed {
		names = append(names, object.GetName())
	}
	if !slices.Equal(names, []string{"b", "c"}) {
		t.Errorf("changed: %v", names)
	}
	if again := f.changed(mergedObject("3", map[string]string{"a": "1", "b": "2", "c": "1"})); len(again) != 0 {
		t.Errorf("changed again: %d", len(again))
	}
}

// A selector is asked for where a merged object has the label too; the rest is looked at afterwards.
func TestSelectorsOfDeployments(t *testing.T) {
	selector, err := labels.Parse("fleet.cattle.io/cluster=prod,app=web")
	if err != nil {
		t.Fatal(err)
	}
	if got := common(selector).String(); got != "fleet.cattle.io/cluster=prod" {
		t.Errorf("asked for %q", got)
	}
	kind, err := resourceNamed("deployments")
	if err != nil {
		t.Fatal(err)
	}
	f := &getFlags{chosen: selector}
	one := &fleet.BundleDeployment{}
	one.Labels = map[string]string{"fleet.cattle.io/cluster": "prod", "app": "web"}
	other := one.DeepCopy()
	other.Labels["app"] = "db"
	if !f.wants(kind, one, nil) || f.wants(kind, other, nil) {
		t.Error("the rest of the selector does not count")
	}
}
