package manifest

import (
	"slices"

	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds that others need before they can be created.
var (
	CustomResourceDefinition = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	Namespace                = schema.GroupKind{Kind: "Namespace"}
)

// admission configurations come last: a webhook that is already registered, and whose server is
// part of the same release, would refuse everything that follows.
var lastKinds = []string{"APIService", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}

// Phase is a set of objects that do not need each other to be created.
type Phase []*unstructured.Unstructured

// Order returns the objects in phases, in the order in which they are created: definitions,
// namespaces, then Helm's order of kinds, custom resources behind everything built in, webhooks last.
// Within a phase the order of the input is kept.
func Order(objects []*unstructured.Unstructured) []Phase {
	ranks := map[int]Phase{}
	for _, object := range objects {
		rank := rankOf(object.GroupVersionKind().GroupKind())
		ranks[rank] = append(ranks[rank], object)
	}
	order := make([]int, 0, len(ranks))
	for rank := range ranks {
		order = append(order, rank)
	}
	slices.Sort(order)
	phases := make([]Phase, 0, len(order))
	for _, rank := range order {
		phases = append(phases, ranks[rank])
	}
	return phases
}

// Reverse returns the phases in the order in which objects are deleted.
func Reverse(phases []Phase) []Phase {
	reversed := slices.Clone(phases)
	slices.Reverse(reversed)
	return reversed
}

func rankOf(kind schema.GroupKind) int {
	switch kind {
	case CustomResourceDefinition:
		return 0
	case Namespace:
		return 1
	}
	if at := slices.Index(lastKinds, kind.Kind); at >= 0 {
		return len(releaseutil.InstallOrder) + 3 + at
	}
	if at := slices.Index(releaseutil.InstallOrder, kind.Kind); at >= 0 {
		return at + 2
	}
	return len(releaseutil.InstallOrder) + 2
}

// Definition is a kind that a CustomResourceDefinition adds.
type Definition struct {
	schema.GroupVersionResource
	Namespaced bool
}

// Definitions returns the kinds that definitions among the objects add.
func Definitions(objects []*unstructured.Unstructured) map[schema.GroupVersionKind]Definition {
	kinds := map[schema.GroupVersionKind]Definition{}
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() != CustomResourceDefinition {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		plural, _, _ := unstructured.NestedString(object.Object, "spec", "names", "plural")
		scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
		versions, _, _ := unstructured.NestedSlice(object.Object, "spec", "versions")
		for _, version := range versions {
			fields, _ := version.(map[string]any)
			name, _, _ := unstructured.NestedString(fields, "name")
			kinds[schema.GroupVersionKind{Group: group, Version: name, Kind: kind}] = Definition{
				GroupVersionResource: schema.GroupVersionResource{Group: group, Version: name, Resource: plural},
				Namespaced:           scope != "Cluster",
			}
		}
	}
	return kinds
}
