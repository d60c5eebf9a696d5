package delivery

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/contents"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/ledger"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/values"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/merge/carrier"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// server is an API server, and the cache of it that a hub has.
type server struct {
	client.Client
	t      *testing.T
	cached []*fleet.BundleDeployment
}

// read fills the cache anew: every deployment, whatever carries it.
func (s *server) read() {
	s.t.Helper()
	var list fleet.BundleDeploymentList
	if err := s.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	s.cached = nil
	for _, deployment := range merge.ExplodeAll(list.Items) {
		s.cached = append(s.cached, &deployment)
	}
}

// report has the agents apply what they were told.
func (s *server) report() {
	s.t.Helper()
	var list fleet.BundleDeploymentList
	if err := s.List(s.t.Context(), &list); err != nil {
		s.t.Fatal(err)
	}
	for i := range list.Items {
		object := &list.Items[i]
		if merge.IsMerged(object) {
			object.Status.Parts = map[string]fleet.DeploymentPartStatus{}
			for name, part := range object.Spec.Parts {
				object.Status.Parts[name] = fleet.DeploymentPartStatus{AppliedDeploymentID: part.Spec.DeploymentID, Ready: true}
			}
		} else {
			object.Status.AppliedDeploymentID, object.Status.Ready = object.Spec.DeploymentID, true
		}
		if err := s.Status().Update(s.t.Context(), object); err != nil {
			s.t.Fatal(err)
		}
	}
}

// world returns an API server, an Executor for it, and a snapshot with a bundle for six clusters.
func world(t *testing.T) (*server, *Executor, target.Snapshot) {
	t.Helper()
	scheme := kruntime.NewScheme()
	if err := errors.Join(fleet.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	hub := &server{t: t, Client: fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&fleet.BundleDeployment{}).Build()}
	numbers, err := feed.New(nil, nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	executor := New(Options{
		Reader: hub, Deployments: carrier.New(hub, hub), Contents: &contents.Store{},
		Values: values.New(values.Options{Client: hub, Reader: hub, Names: hub}),
		Ledger: ledger.New(ledger.Options{Now: time.Now}), Writing: numbers.Writing, Count: func(string) {},
	})
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "shop", Labels: map[string]string{fleet.RepoLabel: "repo", "team": "a"}}}
	bundle.Spec.ContentsID, bundle.Spec.ContentsStorage = "s-1", fleet.ContentsOnHub
	bundle.Spec.Targets = []fleet.BundleTarget{{ClusterTarget: fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}}}}
	snapshot := target.Snapshot{Bundle: bundle, ManifestID: "s-1", PersonsEdit: true}
	for i := range 6 {
		name := fmt.Sprintf("c%d", i)
		snapshot.Clusters = append(snapshot.Clusters, target.ClusterInfo{Namespace: "ws", Name: name, DeploymentNamespace: "cluster-" + name, Protocol: merge.Protocol})
	}
	return hub, executor, snapshot
}

// What passes read is the cache's own. Whatever they do with it, it stays as it is.
func TestPassesLeaveCachesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, executor, snapshot := world(t)
		bundle := snapshot.Bundle
		bundle.Spec.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{"size": "1"}}}
		pass := func(what string, created, updated, deleted int) {
			t.Helper()
			hub.read()
			var before []*fleet.BundleDeployment
			for _, deployment := range hub.cached {
				before = append(before, deployment.DeepCopy())
			}
			snapshot.Current = hub.cached
			plan, err := target.NewPlan(snapshot)
			if err == nil {
				err = executor.Execute(t.Context(), bundle, snapshot, plan, PlacesOf(bundle, snapshot.Clusters, snapshot.Current))
			}
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if len(plan.Create) != created || len(plan.Update) != updated || len(plan.Delete) != deleted {
				t.Fatalf("%s: %d created, %d updated, %d deleted", what, len(plan.Create), len(plan.Update), len(plan.Delete))
			}
			if diff := cmp.Diff(before, hub.cached); diff != "" {
				t.Errorf("%s changes the cache: %s", what, diff)
			}
			hub.report()
		}
		pass("the first version", 6, 0, 0)
		bundle.Spec.Helm.Values.Data["size"] = "2"
		pass("other values", 0, 6, 0)
		hub.finalize("cluster-c5")
		snapshot.Clusters = snapshot.Clusters[:5]
		pass("a cluster less, with upstream's finalizer", 0, 0, 1)
		bundle.Spec.Merge = &fleet.MergeOptions{Mode: fleet.MergePerRepo}
		pass("merging, its first step", 0, 0, 0)
		pass("merging, its second", 0, 0, 0)
		hub.read()
		if slices.ContainsFunc(hub.cached, func(d *fleet.BundleDeployment) bool { return !merge.InMerged(d) }) || len(hub.cached) != 5 {
			t.Fatal("not all is merged")
		}
		bundle.Labels["team"], snapshot.ManifestID = "b", "s-2"
		pass("another version, merged", 0, 5, 0)
		snapshot.Clusters = snapshot.Clusters[1:]
		pass("another cluster less, merged", 0, 0, 1)
		bundle.Spec.Merge = nil
		pass("apart again", 0, 0, 0)
	})
}

// Deployments that share objects and have nothing beside them wait for nobody's requests: a slow answer to others
// would hold up what could be written together.
func TestNothingToRequestTakesNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, executor, snapshot := world(t)
		snapshot.Bundle.Spec.Merge = &fleet.MergeOptions{Mode: fleet.MergePerRepo}
		for range allWriters {
			executor.slots <- struct{}{} // taken by other bundles, for good
		}
		for _, version := range []string{"s-1", "s-2"} {
			hub.read()
			snapshot.ManifestID, snapshot.Current = version, hub.cached
			plan, err := target.NewPlan(snapshot)
			if err == nil {
				err = executor.Execute(t.Context(), snapshot.Bundle, snapshot, plan, PlacesOf(snapshot.Bundle, snapshot.Clusters, snapshot.Current))
			}
			if err != nil || len(plan.Create)+len(plan.Update) != len(snapshot.Clusters) {
				t.Fatalf("%s: %d created, %d updated, %v", version, len(plan.Create), len(plan.Update), err)
			}
			hub.report()
		}
	})
}

// finalize gives the deployment of a namespace upstream's finalizer.
func (s *server) finalize(namespace string) {
	s.t.Helper()
	var object fleet.BundleDeployment
	err := s.Get(s.t.Context(), client.ObjectKey{Namespace: namespace, Name: "shop"}, &object)
	if err == nil {
		object.Finalizers = []string{fleet.BundleDeploymentFinalizer}
		err = s.Update(s.t.Context(), &object)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}
