package registrar

import (
	"context"
	"errors"
	"fmt"
	"slices"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/cluster/join"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// registrations answers agents that ask to join and agents that renew their certificate.
//
// A registration in a workspace is a request to join, made with a token. One in a cluster's own
// namespace on the hub is a renewal: only that cluster's agents can make one there, and it yields that
// cluster's identity whatever it says.
type registrations struct {
	options  Options
	client   client.Client
	live     client.Reader
	objects  Objects
	made     client.Client // cached: what is labelled as managed
	hub      *hubFacts
	recorder events.EventRecorder
}

func registerRegistrations(mgr manager.Manager, own ctrlcluster.Cluster, objects Objects, hub *hubFacts, options Options) (*registrations, error) {
	r := &registrations{
		options: options, client: mgr.GetClient(), live: mgr.GetAPIReader(), objects: objects, made: own.GetClient(), hub: hub,
		recorder: mgr.GetEventRecorder("fleet-registration"),
	}
	build := builder.ControllerManagedBy(mgr).
		Named("clusterregistration").
		For(&fleet.ClusterRegistration{}).
		WithOptions(controller.Options{MaxConcurrentReconciles: options.Workers}).
		Watches(&fleet.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(namespaceNews())).
		WatchesRawSource(source.Kind[client.Object](own.GetCache(), &certificatesv1.CertificateSigningRequest{}, handler.EnqueueRequestsFromMapFunc(madeFor))).
		WatchesRawSource(source.Kind[client.Object](own.GetCache(), &corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(madeFor)))
	return r, options.Shards.Complete(mgr, build, &fleet.ClusterRegistration{}, r)
}

// namespaceNews lets through what a waiting registration waits for: a Cluster that comes, goes or gets
// its namespace.
func namespaceNews() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		old, was := e.ObjectOld.(*fleet.Cluster)
		now, is := e.ObjectNew.(*fleet.Cluster)
		return was && is && (old.Status.Namespace != now.Status.Namespace || old.Spec.ClientID != now.Spec.ClientID)
	}}
}

func (r *registrations) ofCluster(ctx context.Context, object client.Object) []reconcile.Request {
	stored, ok := object.(*fleet.Cluster)
	if !ok || stored.Spec.ClientID == "" {
		return nil
	}
	var all fleet.ClusterRegistrationList
	if err := r.client.List(ctx, &all, client.MatchingFields{registrationByClient: stored.Spec.ClientID}); err != nil {
		return nil // only before the cache is started
	}
	var requests []reconcile.Request
	for i := range all.Items {
		if !decided(&all.Items[i]) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&all.Items[i])})
		}
	}
	return requests
}

// madeFor leads from what was made for a registration to it.
func madeFor(_ context.Context, object client.Object) []reconcile.Request {
	annotations := object.GetAnnotations()
	name := annotations[join.RegistrationAnnotation]
	if name == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{
		Namespace: annotations[join.RegistrationNamespaceAnnotation], Name: name,
	}}}
}

func decided(registration *fleet.ClusterRegistration) bool {
	return registration.Status.Granted || registration.Status.State == fleet.RegistrationRejected
}

// Reconcile takes one registration as far as it can go.
func (r *registrations) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var registration fleet.ClusterRegistration
	if err := r.client.Get(ctx, request.NamespacedName, &registration); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if registration.DeletionTimestamp != nil {
		return reconcile.Result{}, r.letGo(ctx, &registration)
	}
	if registration.Labels[fleet.ClusterManagementLabel] != "" {
		return reconcile.Result{}, nil
	}
	if decided(&registration) {
		return r.tidy(ctx, &registration)
	}
	status := *registration.Status.DeepCopy()
	err := r.advance(ctx, &registration, &status)
	switch fault.ClassOf(err) {
	case fault.Denied:
		status.State, status.Reason, status.Message = fleet.RegistrationRejected, fault.ReasonOf(err), err.Error()
	case fault.Waiting:
		status.Message = err.Error()
	case "":
		status.Message = ""
	default:
		return reconcile.Result{}, err
	}
	return reconcile.Result{}, r.write(ctx, &registration, status)
}

// letGo takes finalizers off a deleted registration. The engine puts none there, and an agent's would keep
// its namespace for ever.
func (r *registrations) letGo(ctx context.Context, registration *fleet.ClusterRegistration) error {
	before := registration.DeepCopy()
	registration.Finalizers = slices.DeleteFunc(registration.Finalizers, func(finalizer string) bool {
		return finalizer != metav1.FinalizerDeleteDependents && finalizer != metav1.FinalizerOrphanDependents
	})
	if len(registration.Finalizers) == len(before.Finalizers) {
		return nil
	}
	err := r.client.Patch(ctx, registration, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("release registration %s/%s: %w", registration.Namespace, registration.Name, err)
	}
	return nil
}

// advance does the next steps of a registration and says in status how far it got. An error of class
// Denied rejects it; one of class Waiting means that a watch will bring it back here.
func (r *registrations) advance(ctx context.Context, registration *fleet.ClusterRegistration, status *fleet.ClusterRegistrationStatus) error {
	if status.State == "" {
		status.State = fleet.RegistrationPending
	}
	member, renewal, err := r.member(ctx, registration)
	if err != nil {
		return err
	}
	if err := join.CheckKey(registration); err != nil {
		return err
	}
	if status.ClusterName != "" && status.ClusterName != member.Name {
		return fault.New(fault.Denied, join.ReasonIdentityMismatch, "the registration was answered for Cluster %s; its clientID cannot change after that", status.ClusterName)
	}
	status.ClusterName = member.Name
	if member.DeletionTimestamp != nil {
		return fault.New(fault.Waiting, "ClusterDeleting", "Cluster %s/%s is being deleted", member.Namespace, member.Name)
	}
	if cluster.ReadyNamespace(member) == "" {
		return fault.New(fault.Waiting, "NamespaceMissing", "the namespace of Cluster %s/%s is not ready yet", member.Namespace, member.Name)
	}
	if !renewal {
		if err := r.setOwner(ctx, registration, member); err != nil {
			return err
		}
	}
	status.ClusterNamespace = cluster.ReadyNamespace(member)
	if usesAccount(registration) {
		return r.grantAccount(ctx, registration, member, status)
	}
	status.Identity = join.Identity(status.ClusterNamespace, registration.Spec.AgentID)
	status.State = fleet.RegistrationApproved
	if len(registration.Spec.CSR) == 0 {
		return nil
	}
	return r.sign(ctx, registration, status)
}

// member returns the Cluster that a registration is for, and whether it renews an identity there.
func (r *registrations) member(ctx context.Context, registration *fleet.ClusterRegistration) (*fleet.Cluster, bool, error) {
	member, renewal, err := r.renewing(ctx, registration)
	if err != nil {
		return nil, renewal, err
	}
	if !renewal {
		if member, err = r.join(ctx, registration); err == nil {
			err = join.CheckSilent(member)
		}
		return member, false, err
	}
	if usesAccount(registration) {
		return nil, true, fault.New(fault.Denied, join.ReasonVersionIncompatible, "only agents with a certificate renew it here")
	}
	return member, true, join.CheckAgent(registration)
}

// renewing returns the Cluster whose namespace the registration is in; ok is false for a registration in
// a workspace.
func (r *registrations) renewing(ctx context.Context, registration *fleet.ClusterRegistration) (member *fleet.Cluster, ok bool, err error) {
	var namespace corev1.Namespace
	key := types.NamespacedName{Name: registration.Namespace}
	if err = r.made.Get(ctx, key, &namespace); apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, key, &namespace) // a refusal is final
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, false, fmt.Errorf("read namespace %s: %w", registration.Namespace, err)
	}
	owner, name, ours := cluster.OwnerOf(&namespace)
	if err != nil || !ours {
		return nil, false, nil
	}
	member = &fleet.Cluster{}
	key = types.NamespacedName{Namespace: owner, Name: name}
	if err = r.client.Get(ctx, key, member); apierrors.IsNotFound(err) {
		err = r.live.Get(ctx, key, member)
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, true, fmt.Errorf("read Cluster %s/%s: %w", owner, name, err)
	}
	switch {
	case err != nil || cluster.ReadyNamespace(member) != registration.Namespace:
		return nil, true, fault.New(fault.Denied, join.ReasonIdentityMismatch, "namespace %s belongs to no Cluster", registration.Namespace)
	case registration.Spec.ClientID != "" && member.Spec.ClientID != "":
		return member, true, join.CheckOwner(registration, member)
	}
	return member, true, nil
}

// join returns the Cluster that a client with a valid token may have, made if there is none.
func (r *registrations) join(ctx context.Context, registration *fleet.ClusterRegistration) (*fleet.Cluster, error) {
	token, err := r.token(ctx, registration)
	if err != nil {
		return nil, err
	}
	if err := join.CheckToken(registration, token, r.options.Now()); err != nil {
		return nil, err
	}
	role, binding := join.Answer(registration, token)
	for _, object := range []client.Object{role, binding} { // first, so that the agent can read a refusal
		if err := r.objects.Keep(ctx, object); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(join.CheckRequest(registration), join.CheckAgent(registration)); err != nil {
		return nil, err
	}
	if usesAccount(registration) && r.options.RefuseServiceAccountAgents {
		return nil, fault.New(fault.Denied, join.ReasonVersionIncompatible, "this hub accepts only agents that ask for a certificate: upgrade the agent")
	}
	return r.clusterFor(ctx, registration)
}

// token returns the token a registration names, nil for none. What the cache does not know is asked of
// the API server: a refusal is final.
func (r *registrations) token(ctx context.Context, registration *fleet.ClusterRegistration) (*fleet.ClusterRegistrationToken, error) {
	name := registration.Labels[fleet.RegistrationTokenLabel]
	if name == "" {
		return nil, nil
	}
	key := types.NamespacedName{Namespace: registration.Namespace, Name: name}
	var token fleet.ClusterRegistrationToken
	err := r.client.Get(ctx, key, &token)
	if err != nil {
		err = r.live.Get(ctx, key, &token)
	}
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read registration token %s: %w", key, err)
	}
	if err != nil {
		return nil, nil
	}
	return &token, nil
}

func (r *registrations) clusterFor(ctx context.Context, registration *fleet.ClusterRegistration) (*fleet.Cluster, error) {
	var known fleet.ClusterList
	if err := r.client.List(ctx, &known, client.InNamespace(registration.Namespace), client.MatchingFields{clusterByClient: registration.Spec.ClientID}); err != nil {
		return nil, fmt.Errorf("find the Cluster of a client: %w", err)
	}
	if len(known.Items) > 0 {
		oldest := slices.MinFunc(known.Items, func(a, b fleet.Cluster) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
		return &oldest, nil
	}
	_, config, err := r.hub.read(ctx)
	if err != nil {
		return nil, err
	}
	wanted := join.ForRegistration(registration, config.IgnoreAgentsLabels)
	err = r.client.Create(ctx, wanted)
	if err == nil {
		return wanted, nil
	}
	var taken fleet.Cluster
	if getErr := r.live.Get(ctx, client.ObjectKeyFromObject(wanted), &taken); getErr != nil {
		return nil, fmt.Errorf("create Cluster %s/%s: %w", wanted.Namespace, wanted.Name, errors.Join(err, client.IgnoreNotFound(getErr)))
	}
	return &taken, join.CheckOwner(registration, &taken)
}

// setOwner makes the Cluster the owner of its registration, so that the one goes with the other.
func (r *registrations) setOwner(ctx context.Context, registration *fleet.ClusterRegistration, member *fleet.Cluster) error {
	for _, owner := range registration.OwnerReferences {
		if owner.UID == member.UID {
			return nil
		}
	}
	before := registration.DeepCopy()
	registration.OwnerReferences = append(registration.OwnerReferences, metav1.OwnerReference{
		APIVersion: fleet.GroupVersion.String(), Kind: "Cluster", Name: member.Name, UID: member.UID,
	})
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Patch(ctx, registration, patch); err != nil {
		return fmt.Errorf("give registration %s/%s its owner: %w", registration.Namespace, registration.Name, err)
	}
	return nil
}

func (r *registrations) write(ctx context.Context, registration *fleet.ClusterRegistration, status fleet.ClusterRegistrationStatus) error {
	if equality.Semantic.DeepEqual(registration.Status, status) {
		return nil
	}
	before := registration.DeepCopy()
	registration.Status = status
	// The lock makes an answer go with the request it answers: spec.csr may change meanwhile.
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.client.Status().Patch(ctx, registration, patch); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("answer registration %s/%s: %w", registration.Namespace, registration.Name, err)
	}
	if status.State == before.Status.State {
		return nil
	}
	switch status.State {
	case fleet.RegistrationRejected:
		r.recorder.Eventf(registration, nil, corev1.EventTypeWarning, status.Reason, "Reject", "%s", status.Message)
	case fleet.RegistrationGranted:
		r.recorder.Eventf(registration, nil, corev1.EventTypeNormal, "Granted", "Grant", "Cluster %s joined or renewed its identity", status.ClusterName)
	}
	return nil
}
