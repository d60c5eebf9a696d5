package carrier

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// Writer writes deployments. Make one with New. All methods may be called from several goroutines.
type Writer struct {
	client client.Client
	// reader reads from the API server.
	reader  client.Reader
	batches batches
}

// New returns a writer. The client's cache shows deployments (pkg/merge/view), the reader objects.
func New(writer client.Client, reader client.Reader) *Writer {
	return &Writer{client: writer, reader: reader, batches: newBatches()}
}

// Create makes a deployment: in an object of a place, or in one of its own when there is no place. The object
// gets the version that the write led to.
func (w *Writer) Create(ctx context.Context, deployment *fleet.BundleDeployment, place *merge.Place) error {
	var there fleet.BundleDeployment
	err := w.client.Get(ctx, client.ObjectKeyFromObject(deployment), &there)
	if err == nil {
		return apierrors.NewAlreadyExists(fleet.GroupVersion.WithResource("bundledeployments").GroupResource(), deployment.Name)
	}
	if !apierrors.IsNotFound(err) {
		return fmt.Errorf("look for deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return w.put(ctx, deployment, place)
}

// put brings a whole deployment into an object that does not have it yet.
func (w *Writer) put(ctx context.Context, deployment *fleet.BundleDeployment, place *merge.Place) error {
	if place == nil {
		object := merge.Alone(deployment)
		if err := w.client.Create(ctx, object); err != nil {
			return err
		}
		deployment.ResourceVersion, deployment.UID = object.ResourceVersion, object.UID
		return nil
	}
	part := merge.PartOf(deployment)
	size, err := merge.Size(part)
	if err != nil {
		return err
	}
	return w.change(ctx, deployment, &change{part: part, size: size, place: place, labels: place.Labels(deployment)})
}

// Update writes a deployment that exists, wherever it is. Objects that are not shown come first: until the one that is
// shown is written too, the caller sees that something is to be done.
func (w *Writer) Update(ctx context.Context, deployment, before *fleet.BundleDeployment) error {
	carriers := merge.Carriers(before)
	if len(carriers) == 1 && !carriers[0].IsMerged() {
		return w.patch(ctx, deployment, before)
	}
	deployment.Generation = before.Generation + 1
	for _, carrier := range slices.Backward(carriers) {
		if err := w.updateIn(ctx, carrier, deployment, before); err != nil {
			return fmt.Errorf("in %s: %w", carrier.Name, err)
		}
	}
	return nil
}

// patch writes a deployment that has an object of its own, and notes its new resource version. The answer is metadata
// alone, as with new ones (Brief).
func (w *Writer) patch(ctx context.Context, deployment, before *fleet.BundleDeployment) error {
	data, err := client.MergeFrom(before).Data(deployment)
	if err != nil {
		return err
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
	answer.SetGroupVersionKind(deploymentKind)
	if err := w.client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, data)); err != nil {
		return err
	}
	deployment.ResourceVersion = answer.ResourceVersion
	return nil
}

func (w *Writer) updateIn(ctx context.Context, carrier merge.Carrier, deployment, before *fleet.BundleDeployment) error {
	if carrier.IsMerged() {
		patch, err := merge.PatchOf(before, deployment)
		if err != nil {
			return err
		}
		return w.change(ctx, deployment, &change{part: merge.PartOf(deployment), before: merge.PartOf(before), patch: patch, in: carrier.Name})
	}
	was, is := merge.Alone(before), merge.Alone(deployment)
	data, err := client.MergeFrom(was).Data(is)
	if err != nil {
		return err
	}
	return w.client.Patch(ctx, is, client.RawPatch(types.MergePatchType, data))
}

// Delete removes a deployment from all objects that carry it.
func (w *Writer) Delete(ctx context.Context, deployment *fleet.BundleDeployment) error {
	carriers := merge.Carriers(deployment)
	if len(carriers) == 1 && !carriers[0].IsMerged() {
		return w.client.Delete(ctx, deployment, client.Preconditions{UID: &deployment.UID})
	}
	for _, carrier := range slices.Backward(carriers) {
		if err := w.dropFrom(ctx, carrier, deployment); err != nil {
			return fmt.Errorf("from %s: %w", carrier.Name, err)
		}
	}
	return nil
}

// dropFrom removes a deployment from one object; that it is not there any more is no error.
func (w *Writer) dropFrom(ctx context.Context, carrier merge.Carrier, deployment *fleet.BundleDeployment) error {
	if carrier.IsMerged() {
		return client.IgnoreNotFound(w.change(ctx, deployment, &change{drop: true, before: merge.PartOf(deployment), in: carrier.Name}))
	}
	var object fleet.BundleDeployment
	if err := w.reader.Get(ctx, client.ObjectKeyFromObject(deployment), &object); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err := w.Release(ctx, &object); err != nil {
		return err
	}
	return client.IgnoreNotFound(w.client.Delete(ctx, &object, client.Preconditions{UID: &object.UID}))
}

// Release takes upstream's finalizer off a deployment that has it: agents may not. One that others carry too
// loses it when it is taken out of its own object.
func (w *Writer) Release(ctx context.Context, deployment *fleet.BundleDeployment) error {
	if !slices.Contains(deployment.Finalizers, fleet.BundleDeploymentFinalizer) || len(merge.Carriers(deployment)) > 1 {
		return nil
	}
	var object fleet.BundleDeployment
	err := w.reader.Get(ctx, client.ObjectKeyFromObject(deployment), &object)
	if err == nil {
		released := object.DeepCopy()
		controllerutil.RemoveFinalizer(released, fleet.BundleDeploymentFinalizer)
		err = w.client.Patch(ctx, released, client.MergeFromWithOptions(&object, client.MergeFromWithOptimisticLock{}))
	}
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
}

// Settled says that a deployment is where it belongs and nowhere else.
func Settled(deployment *fleet.BundleDeployment, place *merge.Place) bool {
	carriers := merge.Carriers(deployment)
	return len(carriers) == 1 && belongs(carriers[0], place)
}

// Move brings a deployment that is not settled one step to where it belongs: into that object, or out of
// the others once the agent has reported in that one.
func (w *Writer) Move(ctx context.Context, present *fleet.BundleDeployment, place *merge.Place) error {
	moved := *present // which a cache holds
	deployment, carriers := &moved, merge.Carriers(present)
	at := slices.IndexFunc(carriers, func(carrier merge.Carrier) bool { return belongs(carrier, place) })
	switch {
	case at < 0:
		return w.put(ctx, deployment, place)
	case carriers[at].Blank:
		return nil // its report wakes the bundle up
	}
	for i, carrier := range carriers {
		if i == at {
			continue
		}
		if err := w.dropFrom(ctx, carrier, deployment); err != nil {
			return fmt.Errorf("from %s: %w", carrier.Name, err)
		}
	}
	return nil
}

func belongs(carrier merge.Carrier, place *merge.Place) bool {
	if place == nil {
		return !carrier.IsMerged()
	}
	return carrier.IsMerged() && place.Has(carrier.Name)
}
