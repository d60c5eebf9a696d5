package hub

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/merge/view"
)

const resourceName = "bundledeployments"

// Hub is the agent's view of the hub: its cluster's namespace, and contents by name.
type Hub struct {
	namespace string
	fleet     rest.Interface
	clients   kubernetes.Interface
	registry  Registry
	// source shows the deployments that objects carry.
	source  *view.Source
	reports *reports
}

// Registry reads contents that are in an OCI registry.
type Registry interface {
	Pull(ctx context.Context, access registry.Access, id string) (content.Manifest, error)
}

// New returns a view of a cluster namespace on the hub.
func New(config *rest.Config, namespace string, registry Registry) (*Hub, error) {
	client, err := NewClient(config)
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	objects := cache.NewListWatchFromClient(client, resourceName, namespace, fields.Everything())
	return &Hub{
		namespace: namespace, fleet: client, clients: clients, registry: registry,
		source: view.New(objects, trim), reports: newReports(clock.RealClock{}),
	}, nil
}

// NewClient returns a client of the hub for kinds of fleet.cattle.io.
func NewClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		return nil, err
	}
	typed := rest.CopyConfig(config)
	typed.GroupVersion = &fleet.GroupVersion
	typed.APIPath = "/apis"
	typed.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	client, err := rest.RESTClientFor(typed)
	if err != nil {
		return nil, fmt.Errorf("connect to the hub: %w", err)
	}
	return client, nil
}

// ListWatch lists and watches the deployments of the cluster, whatever carries them, for one informer. Nobody
// may change them.
func (h *Hub) ListWatch() cache.ListerWatcher { return h.source }

// Get returns one deployment as the hub has it now. That nothing carries it is the error of the read of an object of
// its name.
func (h *Hub) Get(ctx context.Context, name string) (*fleet.BundleDeployment, error) {
	alone := &fleet.BundleDeployment{}
	err := h.fleet.Get().Namespace(h.namespace).Resource(resourceName).Name(name).Do(ctx).Into(alone)
	if !apierrors.IsNotFound(err) {
		return alone, err
	}
	list := &fleet.BundleDeploymentList{}
	if err := h.fleet.Get().Namespace(h.namespace).Resource(resourceName).Do(ctx).Into(list); err != nil {
		return alone, err
	}
	if found := view.In(list.Items, types.NamespacedName{Namespace: h.namespace, Name: name}); found != nil {
		return found, nil
	}
	return alone, err
}

// IsEmpty asks whether the hub has no BundleDeployment at all for this cluster.
func (h *Hub) IsEmpty(ctx context.Context) (bool, error) {
	list := &fleet.BundleDeploymentList{}
	err := h.fleet.Get().Namespace(h.namespace).Resource(resourceName).Param("limit", "1").Do(ctx).Into(list)
	return len(list.Items) == 0, err
}

// Namespace returns the cluster's namespace on the hub.
func (h *Hub) Namespace() string { return h.namespace }

func (h *Hub) content(ctx context.Context, name string) (*fleet.Content, error) {
	object := &fleet.Content{}
	err := h.fleet.Get().Resource("contents").Name(name).Do(ctx).Into(object)
	if apierrors.IsNotFound(err) {
		return nil, fault.New(fault.Waiting, ReasonWaitingForContent, "content %s is not on the hub yet", name)
	}
	if err != nil {
		return nil, fmt.Errorf("get content %s: %w", name, err)
	}
	return object, nil
}

func (h *Hub) secret(ctx context.Context, name string) (*corev1.Secret, error) {
	return h.clients.CoreV1().Secrets(h.namespace).Get(ctx, name, metav1.GetOptions{})
}

func (h *Hub) configMap(ctx context.Context, name string) (*corev1.ConfigMap, error) {
	return h.clients.CoreV1().ConfigMaps(h.namespace).Get(ctx, name, metav1.GetOptions{})
}

// RemoveFinalizer takes one finalizer off; the version guards against another writer of the list.
func (h *Hub) RemoveFinalizer(ctx context.Context, deployment *fleet.BundleDeployment, finalizer string) error {
	kept := []string{}
	for _, other := range deployment.Finalizers {
		if other != finalizer {
			kept = append(kept, other)
		}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": kept, "resourceVersion": deployment.ResourceVersion,
	}})
	if err != nil {
		return err
	}
	return h.fleet.Patch(types.MergePatchType).Namespace(h.namespace).Resource(resourceName).
		Name(deployment.Name).Body(patch).Do(ctx).Error()
}

// trim drops what the agent does not read: the next options, which are half of the object.
func trim(deployment *fleet.BundleDeployment) {
	deployment.ManagedFields = nil
	deployment.Spec.StagedOptions = fleet.BundleDeploymentOptions{}
}
