package apply

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/csaupgrade"

	"github.com/fairlead-dev/fairlead/pkg/agent/concede"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	"github.com/fairlead-dev/fairlead/pkg/agent/synced"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// FieldManager owns every field a bundle sets.
const FieldManager = "fleet-agent"

// ReasonFieldsOwnedByOther means that another field manager has fields that may not be taken from it.
const ReasonFieldsOwnedByOther = "FieldsOwnedByOther"

// legacyManagers have written by update what a bundle now applies.
var legacyManagers = sets.New("kubectl-client-side-apply", "kubectl-create", "helm", "fleetagent", FieldManager)

// Action says what a write did.
type Action string

// The actions.
const (
	Created   Action = "Created"
	Updated   Action = "Updated"
	Unchanged Action = "Unchanged"
	Replaced  Action = "Replaced"
)

// Result is the outcome of one write.
type Result struct {
	// Object is what the API server answered; nil for a Job that has finished and gone.
	Object *unstructured.Unstructured
	Action Action
	// Merged says that the object was merged three ways because it cannot be applied; Note says why.
	Merged bool
	Note   string
}

// Writer writes objects as one identity. Its methods may be called from several goroutines.
type Writer struct {
	client, agent dynamic.Interface
	mapper        meta.RESTMapper
	memory        *synced.Memory
}

// NewWriter returns a writer; the client decides as whom it writes. As the agent it looks for autoscalers only.
func NewWriter(client, agent dynamic.Interface, mapper meta.RESTMapper, memory *synced.Memory) *Writer {
	return &Writer{client: client, agent: agent, mapper: mapper, memory: memory}
}

// Options of one write.
type Options struct {
	Claim ownership.Claim
	// Mapping of the object's kind; nil asks the mapper.
	Mapping *meta.RESTMapping
	// Force replaces an object that cannot be changed in place.
	Force bool
	// Previous is what was applied before, for a three-way merge; nil means nothing.
	Previous *unstructured.Unstructured
	// Restore says that the object was applied before just as it is now.
	Restore bool
	// Known saves a look at objects of which enough is known; nil knows nothing.
	Known Knowledge
}

// Apply makes the live object what is desired and returns it. Only fields that the bundle sets are
// touched; they are taken from whoever else set them.
func (w *Writer) Apply(ctx context.Context, desired *unstructured.Unstructured, options Options) (Result, error) {
	result, err := w.applyObject(ctx, desired, options)
	if err != nil {
		return result, fmt.Errorf("apply %s: %w", manifest.KeyOf(desired), classify(err))
	}
	if result.Object != nil {
		w.memory.Remember(options.Claim.SetHash, desired, result.Object, !result.Merged)
	}
	return result, nil
}

// Check returns nil when Apply would not be refused because of who owns the object. It writes nothing.
func (w *Writer) Check(ctx context.Context, desired *unstructured.Unstructured, options Options) error {
	how, err := planFor(desired)
	if err != nil || how.Strategy == fleet.ApplyReadOnly {
		return err
	}
	resource, err := w.resource(desired, options.Mapping)
	if meta.IsNoMatchError(err) {
		return nil // of a kind that is not there, there is nothing
	}
	if err != nil {
		return err
	}
	live, err := get(ctx, resource, desired.GetName())
	if err != nil || live == nil || live.GetDeletionTimestamp() != nil {
		return err
	}
	return how.check(options.Claim, live)
}

func (w *Writer) applyObject(ctx context.Context, desired *unstructured.Unstructured, options Options) (Result, error) {
	how, err := planFor(desired)
	if err != nil {
		return Result{}, err
	}
	resource, err := w.resource(desired, options.Mapping)
	if err != nil {
		return Result{}, err
	}
	if how.Strategy == fleet.ApplyReadOnly {
		live, err := get(ctx, resource, desired.GetName())
		return Result{Object: live, Action: Unchanged}, err
	}
	if result, done := w.applyKnown(ctx, resource, how, desired, options); done {
		return result, nil
	}
	live, err := w.free(ctx, resource, desired)
	if err != nil {
		return Result{}, err
	}
	if live == nil {
		return w.create(ctx, resource, how, desired, options)
	}
	if err := how.check(options.Claim, live); err != nil {
		return Result{}, err
	}
	if how.Strategy == fleet.ApplyCreateOnly {
		return Result{Object: live, Action: Unchanged}, nil
	}
	if options.Claim.Owns(live) && w.unchanged(desired, live, options) {
		return Result{Object: live, Action: Unchanged}, nil
	}
	if live, err = w.takeOver(ctx, resource, live); err != nil {
		return Result{}, err
	}
	if how.desired, err = w.adapted(ctx, how, live, options); err != nil {
		return Result{}, err
	}
	return w.send(ctx, resource, how, live, options)
}

// create writes an object that is not there, unless it has run and gone.
func (w *Writer) create(ctx context.Context, resource dynamic.ResourceInterface, how plan, desired *unstructured.Unstructured, options Options) (Result, error) {
	if hasRun(desired, options.Previous) || w.memory.HasRun(options.Claim.SetHash, desired) {
		return Result{Action: Unchanged}, nil
	}
	return w.send(ctx, resource, how, nil, options)
}

// adapted returns what is desired with the fields of the live object that the member or an autoscaler has.
func (w *Writer) adapted(ctx context.Context, how plan, live *unstructured.Unstructured, options Options) (*unstructured.Unstructured, error) {
	desired, err := concede.Fields(how.IgnoreFields, how.desired, live, options.Previous, options.Restore)
	if err != nil {
		return nil, err
	}
	return concede.Replicas(ctx, w.agent, desired, live)
}

// unchanged says whether there is nothing to write: the object is as it was when it was in sync. A correction
// minds what only rules of comparison excepted then.
func (w *Writer) unchanged(desired, live *unstructured.Unstructured, options Options) bool {
	if options.Restore {
		return w.memory.Excepted(options.Claim.SetHash, desired, live, "")
	}
	return w.memory.Knows(options.Claim.SetHash, desired, live)
}

// sent returns an object as it was sent before.
func sent(previous *unstructured.Unstructured) *unstructured.Unstructured {
	if previous == nil {
		return nil
	}
	if _, object, err := manifest.How(previous); err == nil {
		return object
	}
	return previous
}

// hasRun tells a Job that was applied before, has not changed since, and has gone by itself: to create
// it would be to run it twice.
func hasRun(desired, previous *unstructured.Unstructured) bool {
	return previous != nil && manifest.Expires(desired) && !manifest.IsHook(desired) &&
		equality.Semantic.DeepEqual(desired.Object["spec"], previous.Object["spec"])
}

// free returns the live object or nil; one that is being deleted is waited for.
func (w *Writer) free(ctx context.Context, resource dynamic.ResourceInterface, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	live, err := get(ctx, resource, desired.GetName())
	if err != nil || live == nil || live.GetDeletionTimestamp() == nil {
		return live, err
	}
	return cleared(ctx, resource, live)
}

// send applies, and falls back to what the API server accepts.
func (w *Writer) send(ctx context.Context, resource dynamic.ResourceInterface, how plan, live *unstructured.Unstructured, options Options) (Result, error) {
	desired := how.desired
	applied, err := serverSideApply(ctx, resource, desired, how.forces(), false)
	switch {
	case err == nil:
		return Result{Object: applied, Action: actionOf(live, applied)}, nil
	case cannotApply(err):
		return merge(ctx, resource, desired, live, sent(options.Previous), err)
	case !how.forces() && apierrors.IsConflict(err):
		return Result{}, fault.Wrap(fault.Stalled, ReasonFieldsOwnedByOther, err)
	case options.Force && live != nil && apierrors.IsInvalid(err):
		return replace(ctx, resource, how, live, err)
	}
	return Result{}, err
}

func actionOf(live, applied *unstructured.Unstructured) Action {
	switch {
	case live == nil:
		return Created
	case live.GetResourceVersion() == applied.GetResourceVersion():
		return Unchanged
	}
	return Updated
}

func serverSideApply(ctx context.Context, resource dynamic.ResourceInterface, desired *unstructured.Unstructured, force, dryRun bool) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(desired.Object)
	if err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: FieldManager, Force: &force}
	if dryRun {
		options.DryRun = []string{metav1.DryRunAll}
	}
	return resource.Patch(ctx, desired.GetName(), types.ApplyPatchType, data, options)
}

// takeOver gives the fields that legacy clients own by update to our manager, once.
func (w *Writer) takeOver(ctx context.Context, resource dynamic.ResourceInterface, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager == FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply {
			return live, nil
		}
	}
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(live, legacyManagers, FieldManager)
	if err != nil || patch == nil {
		return live, err
	}
	return resource.Patch(ctx, live.GetName(), types.JSONPatchType, patch, metav1.PatchOptions{FieldManager: FieldManager})
}

// Get returns a live object, or nil when there is none.
func (w *Writer) Get(ctx context.Context, object *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	resource, err := w.resource(object, nil)
	if err != nil {
		return nil, err
	}
	return get(ctx, resource, object.GetName())
}

func get(ctx context.Context, resource dynamic.ResourceInterface, name string) (*unstructured.Unstructured, error) {
	live, err := resource.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return live, err
}

func (w *Writer) resource(object *unstructured.Unstructured, mapping *meta.RESTMapping) (dynamic.ResourceInterface, error) {
	if mapping == nil {
		kind := object.GroupVersionKind()
		found, err := w.mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return nil, err
		}
		mapping = found
	}
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return w.client.Resource(mapping.Resource).Namespace(object.GetNamespace()), nil
	}
	return w.client.Resource(mapping.Resource), nil
}
