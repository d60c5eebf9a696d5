package controller

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/ledger"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

// The pass that gives a bundle its finalizer goes on: with what the cache has of it, and not before it is stored.
func TestEnsureFinalizer(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	stored := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "shop", Finalizers: []string{"example.com/theirs"}}}
	stored.Spec.Resources = []fleet.BundleResource{{Name: "a.yaml", Content: "a: b"}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(stored).Build()
	r := &Reconciler{Client: api, writes: ledger.New(ledger.Options{Now: time.Now})}
	key := client.ObjectKeyFromObject(stored)
	read := func() *fleet.Bundle {
		t.Helper()
		var bundle fleet.Bundle
		if err := api.Get(t.Context(), key, &bundle); err != nil {
			t.Fatal(err)
		}
		return &bundle
	}
	bundle := read()
	if err := content.Trim(bundle); err != nil {
		t.Fatal(err)
	}
	late, want := bundle.DeepCopy(), bundle.DeepCopy()
	if err := r.ensureFinalizer(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	now := read()
	want.Finalizers, want.ResourceVersion = now.Finalizers, now.ResourceVersion
	if diff := cmp.Diff(want, bundle); diff != "" {
		t.Errorf("the pass goes on with something else: %s", diff)
	}
	if diff := cmp.Diff([]string{"example.com/theirs", fleet.BundleFinalizer}, now.Finalizers); diff != "" {
		t.Errorf("finalizers: %s", diff)
	}
	if diff := cmp.Diff(stored.Spec, now.Spec); diff != "" {
		t.Errorf("the files are others: %s", diff)
	}
	if r.writes.ShowsOwn(key, late.ResourceVersion) || !r.writes.ShowsOwn(key, now.ResourceVersion) {
		t.Error("a cache without the finalizer is planned on")
	}
	if err := r.ensureFinalizer(t.Context(), bundle); err != nil || read().ResourceVersion != now.ResourceVersion {
		t.Errorf("a second time: %v, or something is written", err)
	}
	if err := r.ensureFinalizer(t.Context(), late); !apierrors.IsConflict(err) {
		t.Errorf("over a change of somebody else: %v, want a conflict", err)
	}
}
