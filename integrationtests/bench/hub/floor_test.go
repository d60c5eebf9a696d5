package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	floorGroup   = "floor.fairlead.dev"
	floorVersion = "v1alpha1"
	plural       = "bundledeployments"
)

// floor writes bare objects of a kind with the schema of BundleDeployments, which only the garbage collector watches: bodies that
// are encoded before, answers that nobody decodes.
type floor struct {
	t       testing.TB
	raw     rest.Interface
	members []*member
	bundles int
}

// newFloor makes the kind.
func newFloor(t testing.TB, c client.Client, config *rest.Config, members []*member, bundles int) *floor {
	t.Helper()
	kind := &unstructured.Unstructured{}
	kind.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	if err := c.Get(t.Context(), client.ObjectKey{Name: plural + ".fleet.cattle.io"}, kind); err != nil {
		t.Fatal(err)
	}
	made := &unstructured.Unstructured{Object: map[string]any{"spec": kind.Object["spec"]}}
	made.SetGroupVersionKind(kind.GroupVersionKind())
	made.SetName(plural + "." + floorGroup)
	if err := unstructured.SetNestedField(made.Object, floorGroup, "spec", "group"); err != nil {
		t.Fatal(err)
	}
	if err := client.IgnoreAlreadyExists(c.Create(t.Context(), made)); err != nil {
		t.Fatal(err)
	}
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.GroupVersion = &schema.GroupVersion{}
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	raw, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	f := &floor{t: t, raw: raw, members: members, bundles: bundles}
	await(t, "the kind of the floor is served", func(ctx context.Context) error {
		return raw.Get().AbsPath(f.path("default")).Do(ctx).Error()
	})
	return f
}

func (f *floor) path(namespace string) string {
	return fmt.Sprintf("/apis/%s/%s/namespaces/%s/%s", floorGroup, floorVersion, namespace, plural)
}

// each does some work for all pairs, as many at a time as the agents do, and returns how long that takes.
func (f *floor) each(work func(ctx context.Context, m *member, name string) error) time.Duration {
	f.t.Helper()
	group, ctx := errgroup.WithContext(f.t.Context())
	group.SetLimit(workers)
	began := time.Now()
	for bundle := range f.bundles {
		name := bundleName(bundle)
		for _, m := range f.members {
			group.Go(func() error { return work(ctx, m, name) })
		}
	}
	if err := group.Wait(); err != nil {
		f.t.Fatal(err)
	}
	return time.Since(began)
}

// body is a deployment as the hub makes it, of the floor's kind.
func (f *floor) body(m *member, name string) []byte {
	deployment := &fleet.BundleDeployment{
		TypeMeta: metav1.TypeMeta{APIVersion: floorGroup + "/" + floorVersion, Kind: "BundleDeployment"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			fleet.BundleLabel: name, fleet.BundleNamespaceLabel: stack.Workspace, fleet.ClusterLabel: m.name,
			fleet.ClusterNamespaceLabel: stack.Workspace, fleet.ManagedLabel: "true", fleet.ContentLabel: contentID("first"),
		}},
		Spec: floorSpec("first"),
	}
	return f.encode(deployment)
}

func contentID(version string) string {
	return fmt.Sprintf("s-%061x", []byte(version))
}

func floorSpec(version string) fleet.BundleDeploymentSpec {
	id := contentID(version) + ":" + contentID("options")
	options := madeBundle(0, "first").Spec.BundleDeploymentOptions
	return fleet.BundleDeploymentSpec{DeploymentPartSpec: fleet.DeploymentPartSpec{StagedOptions: options, StagedDeploymentID: id, Options: options, DeploymentID: id}}
}

func (f *floor) encode(object any) []byte {
	encoded, err := json.Marshal(object)
	if err != nil {
		f.t.Fatal(err)
	}
	return encoded
}

func (f *floor) create() time.Duration {
	f.t.Helper()
	bodies := map[string][]byte{}
	for i := range f.bundles {
		for _, m := range f.members {
			bodies[m.name+bundleName(i)] = f.body(m, bundleName(i))
		}
	}
	return f.each(func(ctx context.Context, m *member, name string) error {
		return f.raw.Post().AbsPath(f.path(m.namespace)).SetHeader("Content-Type", "application/json").Body(bodies[m.name+name]).Do(ctx).Error()
	})
}

// patch sends a merge patch.
func (f *floor) patch(ctx context.Context, body []byte, path ...string) error {
	return f.raw.Patch(types.MergePatchType).AbsPath(path...).Body(body).Do(ctx).Error()
}

// specPatch is what the hub writes for a change of a bundle's files.
func (f *floor) specPatch() []byte {
	id := contentID("second") + ":" + contentID("options")
	return f.encode(map[string]any{
		"metadata": map[string]any{"labels": map[string]string{fleet.ContentLabel: contentID("second")}},
		"spec":     map[string]any{"deploymentID": id, "stagedDeploymentID": id},
	})
}

// answer is what an agent writes for a version, from nothing or from the version before.
func (f *floor) answer(name string, from, to string) []byte {
	before := &fleet.BundleDeployment{Spec: floorSpec(to)}
	facts := report.Facts{Known: true, Release: "apps/" + name + ":1", Applied: true, Objects: sights(name)}
	if from != "" {
		old := &fleet.BundleDeployment{Spec: floorSpec(from)}
		before.Status = *report.Status(old, facts, time.Unix(0, 0))
		facts.Release = "apps/" + name + ":2"
	}
	patch, err := report.Patch(&before.Status, report.Status(before, facts, time.Now()))
	if err != nil {
		f.t.Fatal(err)
	}
	return patch
}

// report answers all deployments of the first version.
func (f *floor) report() time.Duration {
	f.t.Helper()
	return f.each(func(ctx context.Context, m *member, name string) error {
		return f.patch(ctx, f.answer(name, "", "first"), f.path(m.namespace), name, "status")
	})
}

// change patches all deployments and answers each at once.
func (f *floor) change() time.Duration {
	f.t.Helper()
	spec := f.specPatch()
	return f.each(func(ctx context.Context, m *member, name string) error {
		if err := f.patch(ctx, spec, f.path(m.namespace), name); err != nil {
			return err
		}
		return f.patch(ctx, f.answer(name, "first", "second"), f.path(m.namespace), name, "status")
	})
}

func (f *floor) delete() time.Duration {
	f.t.Helper()
	return f.each(func(ctx context.Context, m *member, name string) error {
		return f.raw.Delete().AbsPath(f.path(m.namespace), name).Do(ctx).Error()
	})
}

// What a joining cluster needs: its Cluster, namespace, lease and binding are made; then come the mark on the
// Cluster, the renewal of its lease and one status.
const joinCreates, joinPatches = 4, 3

// join writes as many objects and patches as joining clusters must.
func (f *floor) join() time.Duration {
	f.t.Helper()
	bodies := map[string][joinCreates][]byte{}
	for _, m := range f.members {
		var own [joinCreates][]byte
		for i := range own {
			own[i] = f.body(m, joinName(m, i))
		}
		bodies[m.name] = own
	}
	group, ctx := errgroup.WithContext(f.t.Context())
	group.SetLimit(workers)
	patch := f.specPatch()
	began := time.Now()
	for _, m := range f.members {
		group.Go(func() error {
			for i, body := range bodies[m.name] {
				err := f.raw.Post().AbsPath(f.path(metav1.NamespaceDefault)).SetHeader("Content-Type", "application/json").Body(body).Do(ctx).Error()
				if err == nil && i < joinPatches {
					err = f.patch(ctx, patch, f.path(metav1.NamespaceDefault), joinName(m, i))
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		f.t.Fatal(err)
	}
	took := time.Since(began)
	if err := f.raw.Delete().AbsPath(f.path(metav1.NamespaceDefault)).Do(f.t.Context()).Error(); err != nil {
		f.t.Fatal(err)
	}
	return took
}

func joinName(m *member, i int) string { return fmt.Sprintf("floor-%s-%d", m.name, i) }
