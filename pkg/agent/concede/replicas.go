package concede

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var autoscaler = schema.GroupVersionResource{Group: "autoscaling", Version: "v2", Resource: "horizontalpodautoscalers"}

// Replicas returns what is desired with the live number of replicas where a HorizontalPodAutoscaler of the
// member, wherever it came from, manages that number and keeps it within its bounds. To set the number
// of the manifest would be to fight the autoscaler; to leave it out would let it fall to one. Autoscalers
// are only looked for when the numbers differ, and as the agent: whoever deploys something need not be allowed
// to see what scales it. Desired is returned itself where nothing manages the number.
func Replicas(ctx context.Context, agent dynamic.Interface, desired, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	wanted, found, err := unstructured.NestedInt64(desired.Object, "spec", "replicas")
	if err != nil || !found || live == nil {
		return desired, nil
	}
	running, found, err := unstructured.NestedInt64(live.Object, "spec", "replicas")
	if err != nil || !found || running == wanted {
		return desired, nil
	}
	list, err := agent.Resource(autoscaler).Namespace(live.GetNamespace()).List(ctx, metav1.ListOptions{})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), meta.IsNoMatchError(err):
		return desired, nil
	case err != nil:
		return nil, fmt.Errorf("list horizontal pod autoscalers: %w", err)
	}
	for i := range list.Items {
		if scales(&list.Items[i], live, running) {
			adapted := desired.DeepCopy()
			return adapted, unstructured.SetNestedField(adapted.Object, running, "spec", "replicas")
		}
	}
	return desired, nil
}

// scales says whether an autoscaler targets the object and may have set this number of replicas.
func scales(autoscaler, live *unstructured.Unstructured, running int64) bool {
	target, _, _ := unstructured.NestedStringMap(autoscaler.Object, "spec", "scaleTargetRef")
	kind := schema.FromAPIVersionAndKind(target["apiVersion"], target["kind"]).GroupKind()
	if kind != live.GroupVersionKind().GroupKind() || target["name"] != live.GetName() {
		return false
	}
	least, found, _ := unstructured.NestedInt64(autoscaler.Object, "spec", "minReplicas")
	if !found {
		least = 1
	}
	most, _, _ := unstructured.NestedInt64(autoscaler.Object, "spec", "maxReplicas")
	return least <= running && running <= most
}
