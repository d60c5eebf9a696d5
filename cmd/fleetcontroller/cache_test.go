package main

import (
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Informers transform what a watch begins with twice: once is to be enough.
func TestTransformingTwiceChangesNothing(t *testing.T) {
	meta := metav1.ObjectMeta{Namespace: "a", Name: "b", Labels: map[string]string{"c": "d"}, Annotations: map[string]string{"e": "f"}}
	long := strings.Repeat("x", 5000)
	resources := make([]fleet.BundleDeploymentResource, 5000)
	for i := range resources {
		resources[i] = fleet.BundleDeploymentResource{Kind: "ConfigMap", APIVersion: "v1", Name: long[:200]}
	}
	labels := map[string]string{}
	for i := range 1000 {
		labels[long[:i]] = long[:i%80]
	}
	objects := map[reflect.Type]client.Object{}
	for _, object := range []client.Object{
		&fleet.Bundle{ObjectMeta: meta, Spec: fleet.BundleSpec{Resources: []fleet.BundleResource{{Name: "a.yaml", Content: long}}}},
		&fleet.BundleDeployment{ObjectMeta: meta, Status: fleet.BundleDeploymentStatus{DeploymentPartStatus: fleet.DeploymentPartStatus{
			Resources: resources, ModifiedStatus: []fleet.ModifiedStatus{{Kind: long, Patch: long}}, Release: long,
		}}},
		&fleet.ClusterRegistration{ObjectMeta: meta, Spec: fleet.ClusterRegistrationSpec{ClientID: long, ClusterLabels: labels}},
	} {
		objects[reflect.TypeOf(object)] = object
	}
	for example, options := range cacheOptions().ByObject {
		kind := reflect.TypeOf(example)
		t.Run(kind.String(), func(t *testing.T) {
			object := objects[kind]
			if object == nil {
				t.Fatal("there is no object to try it on")
			}
			once, err := options.Transform(object)
			if err != nil {
				t.Fatal(err)
			}
			want := once.(runtime.Object).DeepCopyObject()
			twice, err := options.Transform(once)
			if err != nil || !reflect.DeepEqual(twice, want) {
				t.Errorf("%v; the second time makes another object", err)
			}
		})
	}
}
