package manifest

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"
)

// Marks Helm puts on every object of a release.
const (
	ManagedByLabel             = "app.kubernetes.io/managed-by"
	ManagedByHelm              = "Helm"
	ReleaseNameAnnotation      = "meta.helm.sh/release-name"
	ReleaseNamespaceAnnotation = "meta.helm.sh/release-namespace"
	HookAnnotation             = "helm.sh/hook"
	ResourcePolicyAnnotation   = "helm.sh/resource-policy"
	ResourcePolicyKeep         = "keep"
)

// Key tells an object from all others on a cluster; its version does not count.
type Key struct {
	schema.GroupKind
	Namespace string
	Name      string
}

// KeyOf returns the object's key.
func KeyOf(object *unstructured.Unstructured) Key {
	return Key{
		GroupKind: object.GroupVersionKind().GroupKind(),
		Namespace: object.GetNamespace(),
		Name:      object.GetName(),
	}
}

// String returns "kind.group namespace/name", without the parts that are empty.
func (k Key) String() string {
	id := k.Name
	if k.Namespace != "" {
		id = k.Namespace + "/" + k.Name
	}
	return k.GroupKind.String() + " " + id
}

// Parse splits a YAML stream into its objects. Lists are taken apart, empty documents left out. A
// document that is no object is an error that says which one it is.
func Parse(stream []byte) ([]*unstructured.Unstructured, error) {
	reader := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(stream)))
	var objects []*unstructured.Unstructured
	for number := 1; ; number++ {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return objects, nil
		}
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		parsed, err := parseDocument(document)
		if err != nil {
			return nil, fmt.Errorf("document %d: %w", number, err)
		}
		objects = append(objects, parsed...)
	}
}

func parseDocument(document []byte) ([]*unstructured.Unstructured, error) {
	data, err := yaml.YAMLToJSON(document)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil, nil
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(data); err != nil {
		return nil, err
	}
	if !object.IsList() {
		if object.GetName() == "" {
			return nil, fmt.Errorf("%s has no metadata.name", object.GetKind())
		}
		return []*unstructured.Unstructured{object}, nil
	}
	var objects []*unstructured.Unstructured
	err = object.EachListItem(func(item runtime.Object) error {
		member, ok := item.(*unstructured.Unstructured)
		if !ok || member.GetKind() == "" || member.GetName() == "" {
			return fmt.Errorf("%s holds an item without kind or name", object.GetKind())
		}
		objects = append(objects, member)
		return nil
	})
	return objects, err
}

// Adopt sets the label and annotations by which Helm knows the objects of a release.
func Adopt(object *unstructured.Unstructured, release, namespace string) {
	labels := withEntries(object.GetLabels(), map[string]string{ManagedByLabel: ManagedByHelm})
	object.SetLabels(labels)
	annotations := withEntries(object.GetAnnotations(), map[string]string{
		ReleaseNameAnnotation: release, ReleaseNamespaceAnnotation: namespace,
	})
	object.SetAnnotations(annotations)
}

func withEntries(all, more map[string]string) map[string]string {
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, more)
	return all
}

// IsHook tells objects that Helm creates at a moment of a release's life, and that are not part of it.
func IsHook(object *unstructured.Unstructured) bool {
	_, hook := object.GetAnnotations()[HookAnnotation]
	return hook
}

// IsKept tells objects that a release leaves behind when they are no longer part of it.
func IsKept(object *unstructured.Unstructured) bool {
	return object.GetAnnotations()[ResourcePolicyAnnotation] == ResourcePolicyKeep
}

// Expires tells Jobs that go by themselves when they have finished: that they are not there is right.
func Expires(object *unstructured.Unstructured) bool {
	if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		return false
	}
	_, found, err := unstructured.NestedFieldNoCopy(object.Object, "spec", "ttlSecondsAfterFinished")
	return found && err == nil
}
