package stream

import (
	"bytes"
	"encoding/json"
	"fmt"
	"runtime"

	"go.yaml.in/yaml/v2"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/manifest"
)

// separator starts every document.
const separator = "---\n"

// Encode returns the objects as a stream of YAML documents, each after a line "---".
func Encode(objects ...any) ([]byte, error) {
	texts := make([][]byte, len(objects))
	var group errgroup.Group
	// Of many objects, writing them is most of what the program does.
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, object := range objects {
		group.Go(func() error {
			text, err := encode(object)
			texts[i] = text
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return bytes.Join(texts, nil), nil
}

// encode returns one document. A tree is written at once: the usual way, over JSON that is read as YAML,
// gives the same text for four times the work.
func encode(object any) ([]byte, error) {
	tree, err := Tree(object)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(tree)
	if err != nil {
		return nil, fmt.Errorf("write object: %w", err)
	}
	return append([]byte(separator), text...), nil
}

// Tree returns an object as maps and lists, without its status and creation time; integers stay integers.
func Tree(object any) (map[string]any, error) {
	data, err := json.Marshal(object)
	if err != nil {
		return nil, fmt.Errorf("write object: %w", err)
	}
	tree := map[string]any{}
	if err := utiljson.Unmarshal(data, &tree); err != nil {
		return nil, fmt.Errorf("write object: %w", err)
	}
	delete(tree, "status")
	if metadata, ok := tree["metadata"].(map[string]any); ok && metadata["creationTimestamp"] == nil {
		delete(metadata, "creationTimestamp")
	}
	return tree, nil
}

// Objects are the documents of a stream by kind, in order.
type Objects struct {
	Bundles     []*fleet.Bundle
	Contents    []*fleet.Content
	Deployments []*fleet.BundleDeployment
	GitRepos    []*fleet.GitRepo
	Clusters    []fleet.Cluster
	Groups      []fleet.ClusterGroup
	Mappings    []fleet.BundleNamespaceMapping
	Namespaces  []corev1.Namespace
	// Others are the kinds of documents that are none of these.
	Others []string
	// Warnings are about fields that no kind has.
	Warnings []string
}

// Decode reads a stream of YAML or JSON documents; name is that of the file in messages.
func Decode(name string, data []byte) (Objects, error) {
	var objects Objects
	documents, err := manifest.Parse(name, data)
	if err != nil {
		return objects, err
	}
	for _, document := range documents {
		if err := objects.add(document); err != nil {
			return objects, fmt.Errorf("%s: %s: %w", document.Origin, document.GetKind(), err)
		}
	}
	return objects, nil
}

func (o *Objects) add(document manifest.Object) error {
	kind := document.GroupVersionKind()
	if kind.Group == "" && kind.Kind == "Namespace" {
		return appendValue(o, &o.Namespaces, document)
	}
	if kind.Group != fleet.GroupVersion.Group {
		o.Others = append(o.Others, kind.Kind)
		return nil
	}
	switch kind.Kind {
	case "Bundle":
		return appendPointer(o, &o.Bundles, document)
	case "Content":
		return appendPointer(o, &o.Contents, document)
	case "BundleDeployment":
		return appendPointer(o, &o.Deployments, document)
	case "GitRepo":
		return appendPointer(o, &o.GitRepos, document)
	case "Cluster":
		return appendValue(o, &o.Clusters, document)
	case "ClusterGroup":
		return appendValue(o, &o.Groups, document)
	case "BundleNamespaceMapping":
		return appendValue(o, &o.Mappings, document)
	}
	o.Others = append(o.Others, kind.Kind)
	return nil
}

func appendPointer[T any](o *Objects, list *[]*T, document manifest.Object) error {
	object := new(T)
	if err := o.convert(document, object); err != nil {
		return err
	}
	*list = append(*list, object)
	return nil
}

func appendValue[T any](o *Objects, list *[]T, document manifest.Object) error {
	var object T
	if err := o.convert(document, &object); err != nil {
		return err
	}
	*list = append(*list, object)
	return nil
}

// convert reads a document as the API server does: the case of fields counts, and unknown ones are left out
// with a warning.
func (o *Objects) convert(document manifest.Object, into any) error {
	err := kruntime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(document.Object, into, true)
	unknown, isStrict := kruntime.AsStrictDecodingError(err)
	if !isStrict {
		return err
	}
	for _, problem := range unknown.Errors() {
		o.Warnings = append(o.Warnings, fmt.Sprintf("%s: %s: %v is ignored", document.Origin, document.GetKind(), problem))
	}
	return nil
}
