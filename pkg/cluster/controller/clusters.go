package controller

import (
	"context"
	"fmt"
	"maps"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// clusters gives every Cluster its namespace and rights on the hub, follows its heartbeat, and is the
// only writer of its status but for the fields of upstream's agent.
type clusters struct {
	options    Options
	client     client.Client
	live       client.Reader
	objects    keeper
	joining    registrations
	heartbeats *heartbeats
	recorder   events.EventRecorder
}

// registrations are the ways by which clusters joined.
type registrations interface {
	// Forget removes those of a Cluster that is deleted.
	Forget(ctx context.Context, member *fleet.Cluster) error
}

func registerClusters(mgr manager.Manager, own ctrlcluster.Cluster, objects keeper, joining registrations, options Options) error {
	err := mgr.GetFieldIndexer().IndexField(context.Background(), &fleet.Cluster{}, clusterByNamespace, func(o client.Object) []string {
		return []string{names.ClusterNamespace(o.GetNamespace(), o.GetName())}
	})
	if err != nil {
		return fmt.Errorf("index clusters: %w", err)
	}
	if err := mgr.GetFieldIndexer().IndexField(context.Background(), &fleet.Bundle{}, bundleByHeld, heldOn); err != nil {
		return fmt.Errorf("index bundles by held clusters: %w", err)
	}
	r := &clusters{
		options: options, client: mgr.GetClient(), live: mgr.GetAPIReader(), objects: objects, joining: joining,
		heartbeats: newHeartbeats(options.Now), recorder: mgr.GetEventRecorder("fleet-cluster"),
	}
	byNamespace := func(ctx context.Context, o client.Object) []reconcile.Request {
		return r.ownerOf(ctx, o.GetNamespace())
	}
	build := builder.ControllerManagedBy(mgr).
		Named("cluster").
		For(&fleet.Cluster{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Workers}).
		WatchesRawSource(source.Kind(own.GetCache(), &corev1.Namespace{}, handler.TypedEnqueueRequestsFromMapFunc(ownerByAnnotation))).
		WatchesRawSource(source.Kind[client.Object](own.GetCache(), &rbacv1.RoleBinding{}, handler.EnqueueRequestsFromMapFunc(byNamespace))).
		WatchesRawSource(source.Kind(own.GetCache(), &coordinationv1.Lease{}, r.renewals())).
		WatchesRawSource(source.Func(r.heartbeats.watch)).
		Watches(&fleet.BundleDeployment{}, handler.EnqueueRequestsFromMapFunc(r.leavingOwnerOf), builder.WithPredicates(onlyDepartures()))
	build = build.Watches(&fleet.Bundle{}, heldEvents()).WatchesRawSource(options.Rollups.Source(tally.KindCluster))
	return options.Shards.Complete(mgr, build, &fleet.Cluster{}, r)
}

// onlyDepartures lets a deletion of a Cluster go on when its deployments are gone, or when the agent reports
// that it has uninstalled one; nothing else about deployments matters here.
func onlyDepartures() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, was := e.ObjectOld.(*fleet.BundleDeployment)
			after, is := e.ObjectNew.(*fleet.BundleDeployment)
			return was && is && after.DeletionTimestamp != nil &&
				before.Status.AppliedDeploymentID != "" && after.Status.AppliedDeploymentID == ""
		},
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func ownerByAnnotation(_ context.Context, namespace *corev1.Namespace) []reconcile.Request {
	owner, name, ok := cluster.OwnerOf(namespace)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: owner, Name: name}}}
}

// ownerOf finds the Cluster whose namespace it is.
func (r *clusters) ownerOf(ctx context.Context, namespace string) []reconcile.Request {
	return r.owners(ctx, namespace, func(*fleet.Cluster) bool { return true })
}

// leavingOwnerOf finds the Cluster of a deployment if it is being deleted: nobody else waits for deployments to go.
func (r *clusters) leavingOwnerOf(ctx context.Context, deployment client.Object) []reconcile.Request {
	return r.owners(ctx, deployment.GetNamespace(), func(owner *fleet.Cluster) bool { return owner.DeletionTimestamp != nil })
}

func (r *clusters) owners(ctx context.Context, namespace string, wanted func(*fleet.Cluster) bool) []reconcile.Request {
	var found fleet.ClusterList
	if err := r.client.List(ctx, &found, client.MatchingFields{clusterByNamespace: namespace}, client.UnsafeDisableDeepCopy); err != nil {
		return nil // the cache has no such index only before it is started
	}
	var requests []reconcile.Request
	for i := range found.Items {
		if wanted(&found.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&found.Items[i])})
		}
	}
	return requests
}

// Reconcile brings one Cluster in order.
func (r *clusters) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var stored fleet.Cluster
	if err := r.client.Get(ctx, request.NamespacedName, &stored); err != nil {
		if apierrors.IsNotFound(err) {
			r.heartbeats.forget(request)
		}
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if stored.DeletionTimestamp != nil {
		return r.remove(ctx, &stored)
	}
	if err := r.mark(ctx, &stored); err != nil {
		return reconcile.Result{}, err
	}
	problem := r.prepare(ctx, &stored)
	if fault.ClassOf(problem) == fault.Transient {
		return reconcile.Result{}, problem
	}
	telling := r.options.Rollups.Telling(tally.KindCluster, request.Namespace, request.Name)
	snapshot, err := r.gather(ctx, &stored, problem)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted := cluster.Status(snapshot)
	if err := r.tell(ctx, &stored, snapshot, wanted, telling); err != nil {
		return reconcile.Result{}, err
	}
	r.heartbeats.look(request, wanted.Phase, snapshot.Heartbeat)
	return reconcile.Result{}, nil
}

// tell writes the status where it differs. Numbers alone wait for their time: every bundle that changes
// changes them on all clusters.
func (r *clusters) tell(ctx context.Context, stored *fleet.Cluster, snapshot cluster.Snapshot, wanted fleet.ClusterStatus, telling feed.Telling) error {
	if equality.Semantic.DeepEqual(stored.Status, wanted) {
		telling.Nothing()
		return nil
	}
	snapshot.Rollup = nil
	if !equality.Semantic.DeepEqual(stored.Status, cluster.Status(snapshot)) {
		telling.Must()
	} else if !telling.May() {
		return nil
	}
	return r.write(ctx, stored, wanted)
}

// mark puts our finalizer and the labels that every Cluster needs on it, before anything is made that
// the finalizer would have to remove.
func (r *clusters) mark(ctx context.Context, stored *fleet.Cluster) error {
	before := stored.DeepCopy()
	changed := controllerutil.AddFinalizer(stored, fleet.ClusterFinalizer)
	if missing := cluster.MissingLabels(stored); len(missing) > 0 {
		if stored.Labels == nil {
			stored.Labels = map[string]string{}
		}
		maps.Copy(stored.Labels, missing)
		changed = true
	}
	if !changed {
		return nil
	}
	// Finalizers are a list: with the lock, nobody's are lost.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, stored, patch); err != nil {
		return fmt.Errorf("mark Cluster %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	return nil
}

// prepare makes the cluster's namespace on the hub and what belongs into it.
func (r *clusters) prepare(ctx context.Context, stored *fleet.Cluster) error {
	namespace := cluster.Namespace(stored)
	if err := r.objects.Keep(ctx, namespace); err != nil {
		return err
	}
	if err := r.keepLease(ctx, namespace.Name); err != nil {
		return err
	}
	return r.objects.Keep(ctx, cluster.AgentBinding(namespace.Name))
}

// keepLease makes the lease of a cluster's agents where it is missing. What they write into it is theirs.
func (r *clusters) keepLease(ctx context.Context, namespace string) error {
	lease, err := r.lease(ctx, namespace)
	if err != nil || lease != nil {
		return err
	}
	err = r.objects.cached.Create(ctx, cluster.Lease(namespace))
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return fault.New(fault.Waiting, "Terminating", "namespace %s is being deleted", namespace)
	case err != nil && !apierrors.IsAlreadyExists(err): // the cache may be late
		return fmt.Errorf("make the lease in %s: %w", namespace, err)
	}
	return nil
}

func (r *clusters) gather(ctx context.Context, stored *fleet.Cluster, problem error) (cluster.Snapshot, error) {
	lease, err := r.lease(ctx, cluster.ReadyNamespace(stored))
	if err != nil {
		return cluster.Snapshot{}, err
	}
	snapshot := r.snapshot(stored, problem, lease)
	if rollup, ok := r.options.Rollups.Cluster(stored.Namespace, stored.Name); ok {
		held, err := r.keptFrom(ctx, stored)
		if err != nil {
			return snapshot, err
		}
		parent.Hold(&rollup, held)
		snapshot.Rollup = &rollup
	}
	return snapshot, nil
}

// snapshot holds what a cluster's status depends on but for its deployments.
func (r *clusters) snapshot(stored *fleet.Cluster, problem error, lease *coordinationv1.Lease) cluster.Snapshot {
	snapshot := cluster.Snapshot{Cluster: stored, Problem: problem, LastSeenEvery: r.options.LastSeenEvery}
	if problem == nil {
		snapshot.Namespace = cluster.Namespace(stored).Name
	}
	if lease != nil && lease.Spec.RenewTime != nil { // else no agent has written it yet
		report := cluster.ReportOf(lease.Annotations)
		snapshot.Report = &report
	}
	snapshot.Heartbeat = r.heartbeats.observe(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(stored)}, stored, lease)
	snapshot.Now = r.options.Now() // not before the heartbeat
	return snapshot
}

func (r *clusters) lease(ctx context.Context, namespace string) (*coordinationv1.Lease, error) {
	if namespace == "" {
		return nil, nil
	}
	var lease coordinationv1.Lease
	err := r.objects.cached.Get(ctx, types.NamespacedName{Namespace: namespace, Name: cluster.LeaseName}, &lease)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the lease in %s: %w", namespace, err)
	}
	return &lease, nil
}

// write patches the status. Only fields that change are in the patch, so that what an
// upstream agent writes meanwhile stays.
func (r *clusters) write(ctx context.Context, stored *fleet.Cluster, wanted fleet.ClusterStatus) error {
	before := stored.DeepCopy()
	stored.Status = wanted
	if err := r.client.Status().Patch(ctx, stored, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("write status of Cluster %s/%s: %w", stored.Namespace, stored.Name, err)
	}
	r.announce(before, stored)
	return nil
}

// announce tells a change of phase as an event.
func (r *clusters) announce(before, after *fleet.Cluster) {
	from, to := before.Status.Phase, after.Status.Phase
	if from == to || to == fleet.ClusterPending {
		return
	}
	if to == fleet.ClusterReady {
		r.recorder.Eventf(after, nil, corev1.EventTypeNormal, string(to), "Observe", "the agent reports")
		return
	}
	r.recorder.Eventf(after, nil, corev1.EventTypeWarning, string(to), "Observe", "%s", after.Status.Display.Message)
}
