package render

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/kustomize"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/manifest"
	"github.com/fairlead-dev/fairlead/pkg/names"
	"github.com/fairlead-dev/fairlead/pkg/target/options"
)

// Helm's annotation for objects that outlive their release.
const (
	resourcePolicy = "helm.sh/resource-policy"
	keepPolicy     = "keep"
)

// finisher turns what Helm rendered into what is applied. It is the post-renderer of a release.
type finisher struct {
	ctx     context.Context
	in      Input
	plan    *plan
	raw     []manifest.Object
	marks   *Marks
	release string
	scopes  scopes
}

// Run implements Helm's PostRenderer. It may be called more than once.
func (f *finisher) Run(rendered *bytes.Buffer) (*bytes.Buffer, error) {
	objects, err := f.finish(rendered.Bytes())
	if err != nil {
		return nil, Explain(f.in, err)
	}
	out, err := manifest.Encode(objects)
	if err != nil {
		return nil, Explain(f.in, err)
	}
	return bytes.NewBuffer(out), nil
}

func (f *finisher) finish(rendered []byte) ([]manifest.Object, error) {
	objects, err := f.collect(rendered)
	if err != nil {
		return nil, err
	}
	scopes := f.scopes.with(objects)
	for _, object := range objects {
		if err := f.complete(object, scopes); err != nil {
			return nil, err
		}
	}
	objects, err = unique(objects, scopes, f.release)
	if err != nil {
		return nil, err
	}
	inInstallOrder(objects)
	return objects, nil
}

// collect returns the objects of all sources: templates, Kustomize, plain manifests.
func (f *finisher) collect(rendered []byte) ([]manifest.Object, error) {
	if len(rendered) > maxOutput {
		return nil, fmt.Errorf("the templates render to more than %d MiB", maxOutput>>20)
	}
	objects, err := manifest.ParseRendered("templates", rendered)
	if err != nil {
		return nil, err
	}
	if f.plan.style != Kustomize && f.plan.style != HelmAndKustomize {
		for _, object := range f.raw {
			objects = append(objects, manifest.Object{Unstructured: object.DeepCopy(), Origin: object.Origin})
		}
		return objects, nil
	}
	input, err := manifest.Encode(objects)
	if err != nil {
		return nil, err
	}
	built, err := kustomize.Build(f.ctx, f.plan.tree, f.plan.kustomizeDir, input)
	if err != nil {
		return nil, err
	}
	if len(built) > maxOutput {
		return nil, fmt.Errorf("the kustomization builds to more than %d MiB", maxOutput>>20)
	}
	kustomization := kustomize.File(f.plan.tree, f.plan.kustomizeDir)
	objects, err = manifest.ParseRendered(kustomization, built)
	for i := range objects {
		// Lines of what was built mean nothing to a reader of the repository.
		objects[i].Origin = manifest.Origin{File: kustomization}
	}
	return objects, err
}

// complete puts an object where the options want it and marks it.
func (f *finisher) complete(object manifest.Object, scopes scopes) error {
	if name, ok, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", "name"); ok && name != nil {
		if _, isText := name.(string); !isText {
			return fmt.Errorf("%s: metadata.name of %s is no text; quote it", object.Origin, object.GetKind())
		}
	}
	if object.GetName() == "" {
		return fmt.Errorf("%s: %s has no metadata.name", object.Origin, object.GetKind())
	}
	if err := f.place(object, scopes); err != nil {
		return err
	}
	if isCRD(object.Unstructured) && !f.in.Options.DeleteCRDResources {
		if err := addTo(object, "annotations", resourcePolicy, keepPolicy); err != nil {
			return err
		}
	}
	if f.marks == nil {
		// What the marks would stumble over is found without a cluster too.
		for _, field := range []string{"annotations", "labels"} {
			if err := checkTexts(object, field); err != nil {
				return err
			}
		}
		return nil
	}
	if err := f.sayHow(object, scopes); err != nil {
		return err
	}
	set := names.ObjectSet(f.in.BundleID, f.marks.AgentScope)
	if err := addTo(object, "annotations", fleet.SetIDAnnotation, set); err != nil {
		return err
	}
	return addTo(object, "labels", fleet.SetHashLabel, names.ObjectSetHash(set))
}

// sayHow notes on an object how it is written, for everything that will ever read the release's record.
func (f *finisher) sayHow(object manifest.Object, scopes scopes) error {
	namespace := object.GetNamespace()
	if namespace == "" && scopes.namespaced(object.GroupVersionKind().GroupKind()) {
		namespace = f.release
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", fleet.ApplyAnnotation)
	apply := options.ApplyFor(f.in.Options, object.GetAPIVersion(), object.GetKind(), namespace, object.GetName())
	if apply == nil {
		return nil
	}
	how, err := json.Marshal(apply)
	if err != nil {
		return err
	}
	return addTo(object, "annotations", fleet.ApplyAnnotation, string(how))
}

// place forces an object into the namespace of the options.
func (f *finisher) place(object manifest.Object, scopes scopes) error {
	namespace := f.in.Options.TargetNamespace
	if namespace == "" {
		return nil
	}
	if !scopes.namespaced(object.GroupVersionKind().GroupKind()) {
		return fmt.Errorf("%s: %s is cluster-scoped, but the options force namespace %s; use defaultNamespace for such a bundle",
			object.Origin, manifest.Name(object), namespace)
	}
	object.SetNamespace(namespace)
	return nil
}

func (f *finisher) placeHooks(objects []*unstructured.Unstructured) error {
	for _, object := range objects {
		hook := manifest.Object{Unstructured: object, Origin: manifest.Origin{File: "hook"}}
		if err := f.place(hook, f.scopes); err != nil {
			return err
		}
	}
	return nil
}

// addTo sets a label or an annotation. Values that are no texts are an error: the API server would refuse
// the object, and leaving them out would hide that.
func addTo(object manifest.Object, field, key, value string) error {
	if err := checkTexts(object, field); err != nil {
		return err
	}
	if found, _, _ := unstructured.NestedFieldNoCopy(object.Object, "metadata", field); found == nil {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	return unstructured.SetNestedField(object.Object, value, "metadata", field, key)
}

func checkTexts(object manifest.Object, field string) error {
	if _, _, err := unstructured.NestedNullCoercingStringMap(object.Object, "metadata", field); err != nil {
		return fmt.Errorf("%s: %s: metadata.%s must be texts; quote numbers and truth values",
			object.Origin, manifest.Name(object), field)
	}
	return nil
}

// unique drops documents that repeat an object word for word, as charts do. It returns an error when two
// documents say different things about one object; which of them won would be chance.
func unique(objects []manifest.Object, scopes scopes, release string) ([]manifest.Object, error) {
	type identity struct{ group, kind, namespace, name string }
	seen := make(map[identity]manifest.Object, len(objects))
	kept := objects[:0:0]
	for _, object := range objects {
		kind := object.GroupVersionKind().GroupKind()
		id := identity{kind.Group, kind.Kind, object.GetNamespace(), object.GetName()}
		switch {
		case !scopes.namespaced(kind):
			id.namespace = ""
		case id.namespace == "":
			id.namespace = release
		}
		other, ok := seen[id]
		switch {
		case !ok:
			seen[id] = object
			kept = append(kept, object)
		case !reflect.DeepEqual(other.Object, object.Object):
			return nil, fmt.Errorf("%s is in the bundle twice, with different content: %s and %s",
				manifest.Name(object), other.Origin, object.Origin)
		}
	}
	return kept, nil
}

// inInstallOrder sorts objects as Helm installs them: namespaces first, definitions before what they
// define, custom resources last; inside a kind they keep their order.
func inInstallOrder(objects []manifest.Object) {
	rank := make(map[string]int, len(releaseutil.InstallOrder))
	for i, kind := range releaseutil.InstallOrder {
		rank[kind] = i
	}
	of := func(object manifest.Object) int {
		if i, ok := rank[object.GetKind()]; ok {
			return i
		}
		return len(rank)
	}
	slices.SortStableFunc(objects, func(a, b manifest.Object) int { return of(a) - of(b) })
}
