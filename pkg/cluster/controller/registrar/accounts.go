package registrar

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/cluster/join"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// usesAccount says that an agent speaks protocol 0 and gets a service account in place of a certificate.
func usesAccount(registration *fleet.ClusterRegistration) bool {
	return registration.Spec.ProtocolVersion < 1
}

// grantAccount gives the agent a service account and puts its token where the agent will look for it.
func (r *registrations) grantAccount(ctx context.Context, registration *fleet.ClusterRegistration, member *fleet.Cluster, status *fleet.ClusterRegistrationStatus) error {
	account := join.AccountFor(registration, status.ClusterNamespace, member.Name)
	for _, object := range []client.Object{
		account.Account, account.Token, account.StatusRole, account.StatusBinding, account.Deployments, account.Contents,
	} {
		if err := r.objects.Keep(ctx, object); err != nil {
			return err
		}
	}
	token, err := r.accountToken(ctx, account.Token)
	if err != nil {
		return err
	}
	if len(token) == 0 {
		return fault.New(fault.Waiting, "TokenMissing", "waiting for the token of service account %s", account.Account.Name)
	}
	if err := r.handOver(ctx, registration, member, token); err != nil {
		return err
	}
	status.State, status.Granted = fleet.RegistrationGranted, true
	return nil
}

func (r *registrations) accountToken(ctx context.Context, wanted *corev1.Secret) ([]byte, error) {
	var stored corev1.Secret
	err := r.made.Get(ctx, client.ObjectKeyFromObject(wanted), &stored)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read the token of service account %s/%s: %w", wanted.Namespace, wanted.Name, err)
	}
	return stored.Data[corev1.ServiceAccountTokenKey], nil
}

func (r *registrations) handOver(ctx context.Context, registration *fleet.ClusterRegistration, member *fleet.Cluster, token []byte) error {
	credential, err := r.credential(ctx, registration, member, token)
	if err != nil {
		return err
	}
	for _, object := range []client.Object{credential.Secret, credential.Role, credential.Binding} {
		if err := r.objects.Keep(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (r *registrations) credential(ctx context.Context, registration *fleet.ClusterRegistration, member *fleet.Cluster, token []byte) (join.Credential, error) {
	asked, err := r.token(ctx, registration)
	if err != nil {
		return join.Credential{}, err
	}
	if err := join.CheckToken(registration, asked, r.options.Now()); err != nil {
		return join.Credential{}, err
	}
	hub, _, err := r.hub.read(ctx)
	if err != nil {
		return join.Credential{}, err
	}
	return join.CredentialFor(registration, cluster.ReadyNamespace(member), member.Name, hub, join.TokenAccount(asked), token), nil
}

// withdraw removes the handover of a granted account once its time is over and returns how long that
// still takes; 0 when it is gone.
func (r *registrations) withdraw(ctx context.Context, registration *fleet.ClusterRegistration) (time.Duration, error) {
	credential := handoverOf(registration, r.options.SystemNamespace)
	var stored corev1.Secret
	err := r.made.Get(ctx, client.ObjectKeyFromObject(credential.Secret), &stored)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read credential %s: %w", credential.Secret.Name, err)
	}
	if left := stored.CreationTimestamp.Add(join.CredentialLifetime).Sub(r.options.Now()); left > 0 {
		return left, nil
	}
	return 0, removeAll(ctx, r.objects, credential.Binding, credential.Role, credential.Secret)
}

// handoverOf names the objects of a handover, to remove them.
func handoverOf(registration *fleet.ClusterRegistration, systemNamespace string) join.Credential {
	hub := join.Hub{SystemNamespace: systemNamespace}
	return join.CredentialFor(registration, registration.Status.ClusterNamespace, registration.Status.ClusterName, hub, types.NamespacedName{}, nil)
}

// revokeAccount takes away the account of a registration that is about to be deleted: most of it is in
// other namespaces, where no owner reference reaches.
func revokeAccount(ctx context.Context, objects Objects, registration *fleet.ClusterRegistration, options Options) error {
	// Not what protocol it says it speaks now: that could have been changed to keep the account.
	if registration.Status.ClusterNamespace == "" || registration.Status.Identity != nil {
		return nil
	}
	account := join.AccountFor(registration, registration.Status.ClusterNamespace, registration.Status.ClusterName)
	credential := handoverOf(registration, options.SystemNamespace)
	made := []client.Object{account.Account, account.Token, account.Deployments, credential.Binding, credential.Role, credential.Secret}
	if !options.RefuseServiceAccountAgents { // else the hub has no right to look at it; it names an account that is gone
		made = append(made, account.Contents)
	}
	return removeAll(ctx, objects, made...)
}

func removeAll(ctx context.Context, objects Objects, made ...client.Object) error {
	var failures []error
	for _, object := range made {
		failures = append(failures, objects.Remove(ctx, object))
	}
	return errors.Join(failures...)
}
