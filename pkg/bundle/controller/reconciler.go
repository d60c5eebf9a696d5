package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/contents"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/delivery"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/interests"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/ledger"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/validation"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/values"
	"github.com/fairlead-dev/fairlead/pkg/bundle/judge"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
	"github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/merge/carrier"
	"github.com/fairlead-dev/fairlead/pkg/shard"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// Rollups gives the numbers of a Bundle's deployments.
type Rollups interface {
	// Bundle returns what is counted; ok is false until all deployments were counted.
	Bundle(namespace, name string) (rollup tally.Rollup, ok bool)
	// Telling asks whether numbers that are read afterwards may be told.
	Telling(kind tally.ParentKind, namespace, name string) feed.Telling
	// Writing says that deployments of Clusters are about to be written.
	Writing(clusters ...tally.Ref) *feed.Writing
	// Covers says that the given deployments, or newer versions of them, are counted.
	Covers(deployments []*fleet.BundleDeployment) bool
}

// Reconciler makes the BundleDeployments of Bundles. All fields but the private ones must be set.
type Reconciler struct {
	// Client writes, and reads from the cache: Bundles there are trimmed (see pkg/content).
	Client client.Client
	// Reader reads from the API server: Secrets, and Bundles with their files.
	Reader  client.Reader
	Rollups Rollups
	// Deployments writes them, wherever they are.
	Deployments *carrier.Writer
	// Validate lets bundles be rendered before they are sent, unless they say otherwise.
	Validate bool
	// Render judges one bundle and ends with its context; its memory is bounded.
	Render func(context.Context, judge.Job) judge.Finding
	// Keeper reads contents in registries, and removes them.
	Keeper  *store.Keeper
	Events  events.EventRecorder
	Metrics *Metrics
	// Caches are those that Client reads from.
	Caches *confirm.Informers
	// Shards are those this process works on.
	Shards *shard.Shards
	Now    func() time.Time
	// UnusedContents is how long contents on the hub are kept that nobody refers to; 0 means two minutes.
	UnusedContents time.Duration

	cached    caches
	contents  *contents.Store
	validator *validation.Validator
	writes    *ledger.Ledger
	values    *values.Store
	delivery  *delivery.Executor
	interests *interests.Bundles
}

// Pauses before another try, where an event that ends the wait is on its way or already came.
const (
	behindRetry    = 100 * time.Millisecond
	changedRetry   = time.Second
	uncountedRetry = time.Second
)

// waitPatience is for how long a bundle says nothing of its wait for others: most of the time they are planned along with it.
const waitPatience = time.Second

// Reconcile makes one pass over a Bundle: gather, plan, execute, observe, one status patch.
func (r *Reconciler) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var bundle fleet.Bundle
	if err := r.Client.Get(ctx, request.NamespacedName, &bundle); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.writes.ShowsOwn(request.NamespacedName, bundle.ResourceVersion) {
		return reconcile.Result{RequeueAfter: behindRetry}, nil
	}
	if !bundle.DeletionTimestamp.IsZero() {
		return settle(r.delete(ctx, &bundle))
	}
	if err := r.ensureFinalizer(ctx, &bundle); err != nil {
		return reconcile.Result{}, err
	}
	pass := r.deploy(ctx, &bundle)
	if pause := pass.tooEarly(); pause > 0 {
		return reconcile.Result{RequeueAfter: pause}, nil
	}
	if pass.err == nil && pass.plan.Unchecked > 0 {
		// The verdicts wake the bundle up; until then a status would be of neither the old nor the new.
		return reconcile.Result{RequeueAfter: min(cmp.Or(pass.again(r.Now()), validation.Patience), validation.Patience)}, nil
	}
	if left := r.untold(request.NamespacedName, pass); left > 0 {
		return reconcile.Result{RequeueAfter: left}, nil
	}
	telling := r.Rollups.Telling(tally.KindBundle, bundle.Namespace, bundle.Name)
	rollup, counted := r.Rollups.Bundle(bundle.Namespace, bundle.Name)
	switch {
	case !counted:
		// Before everything is counted a status would be wrong.
		return reconcile.Result{RequeueAfter: uncountedRetry}, fault.Retried(pass.err)
	case pass.err == nil && !r.Rollups.Covers(pass.current):
		// It would speak of what was.
		return reconcile.Result{RequeueAfter: behindRetry}, nil
	}
	if err := r.tell(ctx, &bundle, observe(&bundle, pass, rollup, r.Now()), telling, pass); err != nil {
		return reconcile.Result{}, err
	}
	return reconcile.Result{RequeueAfter: pass.again(r.Now())}, fault.Retried(pass.err)
}

// untold is the pause until a pass that waits for other bundles is told of, when it need not wait by then. They wake the bundle
// up.
func (r *Reconciler) untold(key types.NamespacedName, pass outcome) time.Duration {
	since := r.interests.Of(key).WaitingSince()
	if pass.err != nil || since.IsZero() {
		return 0
	}
	left := waitPatience - r.Now().Sub(since)
	if again := pass.again(r.Now()); again > 0 {
		left = min(left, again)
	}
	return left
}

// settle waits a moment for a cache that is behind.
func settle(err error) (reconcile.Result, error) {
	if errors.Is(err, ledger.ErrBehind) {
		return reconcile.Result{RequeueAfter: behindRetry}, nil
	}
	return reconcile.Result{}, fault.Retried(err)
}

// forget drops what is kept of a bundle that is gone.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.values.Forget(key)
	r.writes.Forget(key)
	r.validator.Forget(key)
	r.interests.Forget(key)
}

// deploy gathers a snapshot, plans and executes.
func (r *Reconciler) deploy(ctx context.Context, bundle *fleet.Bundle) (pass outcome) {
	known := r.interests.Of(client.ObjectKeyFromObject(bundle))
	known.Begin()
	defer func() { pass.missed = known.End() }()
	snapshot, err := r.gather(ctx, bundle)
	if err != nil {
		return outcome{err: err}
	}
	reference, err := r.contents.Present(ctx, bundle)
	if err != nil {
		return outcome{current: snapshot.Current, err: err}
	}
	plan, err := r.plan(bundle, snapshot)
	if err == nil {
		plan, err = r.confirmed(ctx, bundle, snapshot, plan)
	}
	if err != nil {
		return outcome{current: snapshot.Current, err: err}
	}
	places := delivery.PlacesOf(bundle, snapshot.Clusters, snapshot.Current)
	err = r.delivery.Execute(ctx, bundle, snapshot, plan, places)
	return outcome{plan: plan, planned: true, current: snapshot.Current, places: places, reference: reference, err: err}
}

// plan plans with what is known about rendering, and asks for what is not.
func (r *Reconciler) plan(bundle *fleet.Bundle, snapshot target.Snapshot) (target.Plan, error) {
	key := client.ObjectKeyFromObject(bundle)
	if snapshot.Validate = r.validates(bundle); snapshot.Validate {
		snapshot.Verdicts = r.validator.Known(key)
	}
	known := r.interests.Of(key)
	plan, err := known.Plan(snapshot)
	if err == nil && r.validator.Ask(key, snapshot.ManifestID, plan.Checks) {
		snapshot.Verdicts = r.validator.Known(key)
		return known.Plan(snapshot)
	}
	return plan, err
}

// validates says whether a bundle is rendered before it is sent. The files of some only members get.
func (r *Reconciler) validates(bundle *fleet.Bundle) bool {
	if bundle.Spec.HelmOpOptions != nil {
		return false
	}
	if bundle.Spec.Validate != nil {
		return *bundle.Spec.Validate
	}
	return r.Validate
}

// ensureFinalizer is there before any deployment is. The answer is only metadata: a whole one would have the files in
// place of their summary, which the pass goes on with.
func (r *Reconciler) ensureFinalizer(ctx context.Context, bundle *fleet.Bundle) error {
	if !controllerutil.AddFinalizer(bundle, fleet.BundleFinalizer) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"finalizers": bundle.Finalizers, "resourceVersion": bundle.ResourceVersion, // somebody else may have added theirs
	}})
	if err != nil {
		return fmt.Errorf("add finalizer to bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	answer := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: bundle.Namespace, Name: bundle.Name}}
	answer.SetGroupVersionKind(fleet.GroupVersion.WithKind("Bundle"))
	if err := r.Client.Patch(ctx, answer, client.RawPatch(types.MergePatchType, patch)); err != nil {
		return fmt.Errorf("add finalizer to bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	bundle.ResourceVersion = answer.ResourceVersion
	r.writes.WroteOwn(client.ObjectKeyFromObject(bundle), bundle.ResourceVersion)
	return nil
}

// tell writes the status when it differs. Numbers alone wait for their time; what answers an edit, and what
// goes wrong, does not.
func (r *Reconciler) tell(ctx context.Context, bundle *fleet.Bundle, next fleet.BundleStatus, telling feed.Telling, pass outcome) error {
	if equality.Semantic.DeepEqual(bundle.Status, next) {
		telling.Nothing()
		return nil
	}
	if pass.plan.More {
		defer r.Rollups.Writing().End() // the next pass goes on at once
	}
	if pass.err != nil || bundle.Status.ObservedGeneration != next.ObservedGeneration {
		telling.Must()
	} else if !telling.May() {
		return nil
	}
	before := bundle.DeepCopy()
	bundle.Status = next
	if err := r.Client.Status().Patch(ctx, bundle, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status of bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	r.writes.WroteOwn(client.ObjectKeyFromObject(bundle), bundle.ResourceVersion)
	return nil
}
