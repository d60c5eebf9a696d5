package bench

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sought are objects of a member that a change is about.
type sought struct {
	list    client.ObjectList
	options []client.ListOption
	// count of them must be as wanted.
	count  int
	wanted func(client.Object) bool
}

// firstSight is when something was first as wanted, or why it never was.
type firstSight struct {
	at  time.Time
	err error
}

// sight watches all members and returns a function that waits until everything sought is there on all of
// them, and returns when that was. It sees what happens from its return on.
func (w *world) sight(t testing.TB, what sought) func() time.Time {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	sights := make(chan firstSight, len(w.members))
	for i, member := range w.members {
		list, ok := what.list.DeepCopyObject().(client.ObjectList)
		if !ok {
			t.Fatalf("%T is no list", what.list)
		}
		stream, err := member.Watch(ctx, list, what.options...)
		if err != nil {
			t.Fatalf("watch %s: %v", w.Members[i].Name, err)
		}
		go func() {
			defer stream.Stop()
			sights <- what.await(stream, w.Members[i].Name)
		}()
	}
	return func() time.Time {
		t.Helper()
		defer cancel()
		var last time.Time
		for range w.members {
			first := <-sights
			if first.err != nil {
				t.Fatal(errors.Join(first.err, w.Err()))
			}
			if first.at.After(last) {
				last = first.at
			}
		}
		return last
	}
}

func (what sought) await(stream watch.Interface, member string) firstSight {
	found := map[types.UID]bool{}
	for event := range stream.ResultChan() {
		object, ok := event.Object.(client.Object)
		if !ok {
			return firstSight{err: fmt.Errorf("watch %s: %v", member, event.Object)}
		}
		if event.Type != watch.Deleted && what.wanted(object) {
			found[object.GetUID()] = true
		}
		if len(found) == what.count {
			return firstSight{at: time.Now()}
		}
	}
	return firstSight{err: fmt.Errorf("%s has %d of %d objects as wanted", member, len(found), what.count)}
}

// applyFloor writes objects by plain server-side apply, on all members at the same time, on each of them
// one after the other, and returns how long that took.
func (w *world) applyFloor(t testing.TB, objects []*unstructured.Unstructured) time.Duration {
	t.Helper()
	group, ctx := errgroup.WithContext(t.Context())
	began := time.Now()
	for i, member := range w.members {
		group.Go(func() error {
			for _, object := range objects {
				apply := client.ApplyConfigurationFromUnstructured(object.DeepCopy())
				if err := member.Apply(ctx, apply, client.FieldOwner("floor"), client.ForceOwnership); err != nil {
					return fmt.Errorf("apply %s %s on %s: %w", object.GetKind(), object.GetName(), w.Members[i].Name, err)
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	return time.Since(began)
}

// generated is the content of a repository: bundles of ConfigMaps that hold one value.
type generated struct {
	name             string
	bundles, objects int
}

// subject labels what a generated repository deploys.
const subject = "bench"

// all returns all files with a value; one returns those of one bundle.
func (g generated) all(value string) map[string]string {
	files := map[string]string{}
	for i := range g.bundles {
		maps.Copy(files, g.one(i, value))
	}
	return files
}

func (g generated) one(bundle int, value string) map[string]string {
	manifests := ""
	for i := range g.objects {
		manifests += fmt.Sprintf("---\napiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: %s\n  labels: {%s: %s}\ndata: {value: %q}\n",
			g.object(bundle, i), subject, g.name, value)
	}
	folder := fmt.Sprintf("app-%03d/", bundle)
	return map[string]string{folder + "fleet.yaml": "defaultNamespace: " + objectNamespace + "\n", folder + "objects.yaml": manifests}
}

func (g generated) object(bundle, i int) string { return fmt.Sprintf("%s-%03d-%d", g.name, bundle, i) }

// sought says how the objects of some bundles look with a value.
func (g generated) sought(bundles int, value string) sought {
	return sought{
		list:    &corev1.ConfigMapList{},
		options: []client.ListOption{client.InNamespace(objectNamespace), client.MatchingLabels{subject: g.name}},
		count:   bundles * g.objects,
		wanted: func(object client.Object) bool {
			configMap, ok := object.(*corev1.ConfigMap)
			return ok && configMap.Data["value"] == value
		},
	}
}

// floor returns the objects of all bundles for applyFloor.
func (g generated) floor(value string) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for bundle := range g.bundles {
		for i := range g.objects {
			objects = append(objects, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap",
				"metadata": map[string]any{
					"namespace": floorNamespace, "name": g.object(bundle, i), "labels": map[string]any{subject: g.name},
				},
				"data": map[string]any{"value": value},
			}})
		}
	}
	return objects
}
