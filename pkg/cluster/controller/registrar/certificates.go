package registrar

import (
	"context"
	"errors"
	"fmt"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster/join"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// sign has a registration's certificate request signed by the hub's API server and puts the certificate
// into status.
func (r *registrations) sign(ctx context.Context, registration *fleet.ClusterRegistration, status *fleet.ClusterRegistrationStatus) error {
	if err := join.CheckCSR(registration.Spec.CSR, status.Identity); err != nil {
		return err
	}
	wanted := join.SigningRequest(registration)
	status.CSRName = wanted.Name
	stored, err := r.signingRequest(ctx, wanted)
	if err != nil {
		return err
	}
	if !join.SameRequest(stored, wanted) {
		if err := r.objects.Remove(ctx, wanted); err != nil {
			return err
		}
		return fault.New(fault.Waiting, "RequestReplaced", "an earlier certificate request is being withdrawn")
	}
	if err := join.SigningRefused(stored); err != nil {
		return err
	}
	if !join.Approved(stored) {
		if err := r.approve(ctx, stored); err != nil {
			return err
		}
	}
	if len(stored.Status.Certificate) == 0 {
		return fault.New(fault.Waiting, "Signing", "waiting for the API server's signer")
	}
	end, err := join.CertificateEnd(stored.Status.Certificate)
	if err != nil {
		return err
	}
	status.Certificate = stored.Status.Certificate
	status.CertificateExpires = &metav1.Time{Time: end}
	status.State, status.Granted = fleet.RegistrationGranted, true
	return nil
}

// signingRequest returns the request as it is stored, made if it is not.
func (r *registrations) signingRequest(ctx context.Context, wanted *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
	stored := &certificatesv1.CertificateSigningRequest{}
	key := client.ObjectKeyFromObject(wanted)
	err := r.made.Get(ctx, key, stored)
	if apierrors.IsNotFound(err) {
		stored = wanted.DeepCopy()
		if err = r.made.Create(ctx, stored); apierrors.IsAlreadyExists(err) {
			err = r.live.Get(ctx, key, stored)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("make certificate signing request %s: %w", wanted.Name, err)
	}
	return stored, nil
}

func (r *registrations) approve(ctx context.Context, request *certificatesv1.CertificateSigningRequest) error {
	request.Status.Conditions = append(request.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
		Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue,
		Reason: "FleetRegistration", Message: "asked for by a registration that was approved, for its own identity only",
		LastUpdateTime: metav1.NewTime(r.options.Now()),
	})
	if err := r.made.SubResource("approval").Update(ctx, request); err != nil {
		return fmt.Errorf("approve certificate signing request %s: %w", request.Name, err)
	}
	return nil
}

// tidy removes what a decided registration leaves over: its signing request, the handover of its account
// and the registrations it supersedes.
func (r *registrations) tidy(ctx context.Context, registration *fleet.ClusterRegistration) (reconcile.Result, error) {
	var failures []error
	var result reconcile.Result
	if registration.Status.CSRName != "" {
		failures = append(failures, r.objects.Remove(ctx, join.SigningRequest(registration)))
	}
	if usesAccount(registration) && registration.Status.Granted {
		left, err := r.withdraw(ctx, registration)
		result.RequeueAfter = left
		failures = append(failures, err)
	}
	failures = append(failures, r.removeSuperseded(ctx, registration))
	if registration.Status.State == fleet.RegistrationRejected {
		left, err := r.discard(ctx, registration)
		result.RequeueAfter = left
		failures = append(failures, err)
	}
	return result, errors.Join(failures...)
}

// discard deletes a refusal that was there long enough to be read, and returns how long that still takes:
// whoever has a token could fill the hub with them.
func (r *registrations) discard(ctx context.Context, registration *fleet.ClusterRegistration) (time.Duration, error) {
	if left := registration.CreationTimestamp.Add(r.options.TokenRetention).Sub(r.options.Now()); left > 0 {
		return left, nil
	}
	if err := r.client.Delete(ctx, registration.DeepCopy()); client.IgnoreNotFound(err) != nil {
		return 0, fmt.Errorf("delete registration %s/%s: %w", registration.Namespace, registration.Name, err)
	}
	return 0, nil
}

func (r *registrations) removeSuperseded(ctx context.Context, registration *fleet.ClusterRegistration) error {
	var all fleet.ClusterRegistrationList
	same := []client.ListOption{client.InNamespace(registration.Namespace)}
	if registration.Spec.ClientID != "" {
		same = append(same, client.MatchingFields{registrationByClient: registration.Spec.ClientID})
	}
	if err := r.client.List(ctx, &all, same...); err != nil {
		return fmt.Errorf("list registrations in %s: %w", registration.Namespace, err)
	}
	var failures []error
	for _, old := range join.Superseded(registration, all.Items) {
		if err := revokeAccount(ctx, r.objects, &old, r.options); err != nil {
			failures = append(failures, err)
			continue
		}
		if err := r.client.Delete(ctx, &old); client.IgnoreNotFound(err) != nil {
			failures = append(failures, fmt.Errorf("delete registration %s/%s: %w", old.Namespace, old.Name, err))
		}
	}
	return errors.Join(failures...)
}
