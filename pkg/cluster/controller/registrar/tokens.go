package registrar

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlcluster "sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster/join"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// tokens makes registration tokens work while they are valid, and stop working when they are not.
type tokens struct {
	options Options
	client  client.Client
	objects Objects
	made    client.Client // cached: what is labelled as managed
	hub     *hubFacts
}

func registerTokens(mgr manager.Manager, own ctrlcluster.Cluster, objects Objects, hub *hubFacts, options Options) error {
	r := &tokens{options: options, client: mgr.GetClient(), objects: objects, made: own.GetClient(), hub: hub}
	owned := func(object client.Object) source.Source {
		return source.Kind(own.GetCache(), object, handler.EnqueueRequestForOwner(
			mgr.GetScheme(), mgr.GetRESTMapper(), &fleet.ClusterRegistrationToken{}, handler.OnlyControllerOwner()))
	}
	build := builder.ControllerManagedBy(mgr).
		Named("clusterregistrationtoken").
		For(&fleet.ClusterRegistrationToken{}).
		WatchesRawSource(owned(&corev1.Secret{})).
		WatchesRawSource(owned(&corev1.ServiceAccount{})).
		WatchesRawSource(source.Kind[client.Object](own.GetCache(), &corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.all)))
	return options.Shards.Complete(mgr, build, &fleet.ClusterRegistrationToken{}, r)
}

// all returns every token: the hub's address is in all their values.
func (r *tokens) all(ctx context.Context, _ client.Object) []reconcile.Request {
	var stored fleet.ClusterRegistrationTokenList
	if err := r.client.List(ctx, &stored); err != nil {
		return nil // only before the cache is started
	}
	requests := make([]reconcile.Request, len(stored.Items))
	for i := range stored.Items {
		requests[i].NamespacedName = client.ObjectKeyFromObject(&stored.Items[i])
	}
	return requests
}

// Reconcile brings one token in order.
func (r *tokens) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	var token fleet.ClusterRegistrationToken
	if err := r.client.Get(ctx, request.NamespacedName, &token); err != nil || token.DeletionTimestamp != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	expires, now := join.Expires(&token), r.options.Now()
	if expires == nil && r.options.RequireTokenTTL {
		log.FromContext(ctx).Info("Deleting a registration token without TTL, which this hub requires")
		return reconcile.Result{}, r.delete(ctx, &token)
	}
	status := token.Status
	status.Expires = expires
	if join.Expired(&token, now) {
		return r.expire(ctx, &token, status, now)
	}
	ready, err := r.issue(ctx, &token)
	if err != nil && fault.ClassOf(err) != fault.Waiting {
		return reconcile.Result{}, err
	}
	if ready {
		status.SecretName = token.Name
	}
	var next time.Duration
	if expires != nil {
		next = expires.Sub(now)
	}
	return reconcile.Result{RequeueAfter: next}, r.write(ctx, &token, status)
}

// expire takes away what makes a token work. The token itself stays for a while, so that a person who
// asks why an agent cannot join sees that it expired.
func (r *tokens) expire(ctx context.Context, token *fleet.ClusterRegistrationToken, status fleet.ClusterRegistrationTokenStatus, now time.Time) (reconcile.Result, error) {
	identity := join.IdentityOf(token)
	values, err := join.Values(token, join.Hub{}, "")
	if err != nil {
		return reconcile.Result{}, err
	}
	var failures []error
	for _, object := range []client.Object{identity.Account, values, identity.Secret, identity.Binding, identity.Role} {
		failures = append(failures, r.objects.Remove(ctx, object))
	}
	if err := errors.Join(failures...); err != nil {
		return reconcile.Result{}, err
	}
	left := status.Expires.Add(r.options.TokenRetention).Sub(now)
	if left <= 0 {
		return reconcile.Result{}, r.delete(ctx, token)
	}
	status.SecretName = ""
	return reconcile.Result{RequeueAfter: left}, r.write(ctx, token, status)
}

// issue makes the token's identity and the Secret with the values for the agent's chart. ready is false
// until the API server has filled in the service account's token.
func (r *tokens) issue(ctx context.Context, token *fleet.ClusterRegistrationToken) (ready bool, err error) {
	identity := join.IdentityOf(token)
	for _, object := range []client.Object{identity.Account, identity.Role, identity.Binding, identity.Secret} {
		if err := r.objects.Keep(ctx, object); err != nil {
			return false, err
		}
	}
	credential, err := r.credential(ctx, client.ObjectKeyFromObject(identity.Secret))
	if err != nil || credential == "" {
		return false, err
	}
	hub, _, err := r.hub.read(ctx)
	if err != nil {
		return false, err
	}
	values, err := join.Values(token, hub, credential)
	if err != nil {
		return false, err
	}
	if err := r.objects.Keep(ctx, values); err != nil {
		return false, err
	}
	return true, nil
}

func (r *tokens) credential(ctx context.Context, key types.NamespacedName) (string, error) {
	var secret corev1.Secret
	if err := r.made.Get(ctx, key, &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return "", nil // just created; the cache will tell
		}
		return "", fmt.Errorf("read Secret %s: %w", key, err)
	}
	return string(secret.Data[corev1.ServiceAccountTokenKey]), nil
}

func (r *tokens) delete(ctx context.Context, token *fleet.ClusterRegistrationToken) error {
	err := r.client.Delete(ctx, token, client.Preconditions{UID: &token.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete registration token %s/%s: %w", token.Namespace, token.Name, err)
	}
	return nil
}

func (r *tokens) write(ctx context.Context, token *fleet.ClusterRegistrationToken, status fleet.ClusterRegistrationTokenStatus) error {
	if equality.Semantic.DeepEqual(token.Status, status) {
		return nil
	}
	before := token.DeepCopy()
	token.Status = status
	if err := r.client.Status().Patch(ctx, token, client.MergeFrom(before)); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("write status of registration token %s/%s: %w", token.Namespace, token.Name, err)
	}
	return nil
}
