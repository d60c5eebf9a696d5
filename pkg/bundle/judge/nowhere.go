package judge

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

// nowhere answers lookup as an empty cluster does, and notes that it was asked.
type nowhere struct {
	dynamic.NamespaceableResourceInterface
	asked bool
}

// GetClientFor implements Helm's way to a cluster.
func (n *nowhere) GetClientFor(_, _ string) (dynamic.NamespaceableResourceInterface, bool, error) {
	n.asked = true
	return n, true, nil
}

// Namespace implements dynamic.NamespaceableResourceInterface.
func (n *nowhere) Namespace(string) dynamic.ResourceInterface { return n }

// Get implements dynamic.ResourceInterface: there is nothing.
func (n *nowhere) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

// List implements dynamic.ResourceInterface: Helm takes this error for an empty list.
func (n *nowhere) List(context.Context, metav1.ListOptions) (*unstructured.UnstructuredList, error) {
	return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
}
