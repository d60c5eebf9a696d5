package join

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"

	"github.com/fairlead-dev/fairlead/pkg/agent/identity"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// answerBackoff spaces the questions for the hub's answer: from a fifth of a second to five seconds,
// ten minutes in all.
var answerBackoff = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 1.5, Cap: 5 * time.Second, Steps: 120}

// registration is one request on the hub.
type registration struct {
	client          rest.Interface
	namespace, name string
}

const registrationsResource = "clusterregistrations"

func (r registration) create(ctx context.Context, wanted *fleet.ClusterRegistration) error {
	err := r.client.Post().Namespace(r.namespace).Resource(registrationsResource).Body(wanted).Do(ctx).Error()
	switch {
	case apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsUnauthorized(err):
		return fault.New(fault.Stalled, "TokenRefused", "the hub refuses the registration token: it may have expired; install the agent with a new one (%w)", err)
	case err != nil:
		return fmt.Errorf("create registration %s/%s: %w", r.namespace, r.name, err)
	}
	return nil
}

// certified returns the registration once it holds a certificate for the key, and hands in the request
// for it as soon as the hub has said whose name it has to bear.
func (r registration) certified(ctx context.Context, key []byte) (*fleet.ClusterRegistration, error) {
	var answer *fleet.ClusterRegistration
	var last error
	err := wait.ExponentialBackoffWithContext(ctx, answerBackoff, func(ctx context.Context) (bool, error) {
		answer = &fleet.ClusterRegistration{}
		last = r.client.Get().Namespace(r.namespace).Resource(registrationsResource).Name(r.name).Do(ctx).Into(answer)
		if last != nil {
			return false, ended(last)
		}
		done, err := r.advance(ctx, answer, key)
		last = err
		return done, ended(err)
	})
	if wait.Interrupted(err) && ctx.Err() == nil {
		return nil, fmt.Errorf("wait for the hub's answer to registration %s/%s: %w", r.namespace, r.name, errors.Join(err, last))
	}
	return answer, err
}

// ended returns the error if asking again is of no use. The right to see the registration comes a
// moment after its creation.
func ended(err error) error {
	switch {
	case fault.ClassOf(err) == fault.Stalled, apierrors.IsNotFound(err), apierrors.IsUnauthorized(err), apierrors.IsInvalid(err):
		return err
	}
	return nil
}

func (r registration) advance(ctx context.Context, answer *fleet.ClusterRegistration, key []byte) (bool, error) {
	status := answer.Status
	switch {
	case status.State == fleet.RegistrationRejected:
		reason := status.Reason
		if reason == "" {
			reason = "Rejected"
		}
		return false, fault.New(fault.Stalled, reason, "the hub rejected the registration: %s: %s", reason, status.Message)
	case len(status.Certificate) > 0:
		return true, identity.Fits(status.Certificate, key)
	case status.Identity == nil || len(answer.Spec.CSR) > 0:
		return false, nil
	}
	request, err := identity.Request(key, *status.Identity)
	if err != nil {
		return false, err
	}
	patch, err := json.Marshal(map[string]any{"spec": map[string]any{"csr": request}})
	if err != nil {
		return false, err
	}
	return false, r.client.Patch(types.MergePatchType).Namespace(r.namespace).Resource(registrationsResource).
		Name(r.name).Body(patch).Do(ctx).Error()
}

// registrationName binds a registration to its key.
func registrationName(key []byte) (string, error) {
	public, err := identity.PublicKey(key)
	if err != nil {
		return "", err
	}
	return names.KeyedRegistration(public), nil
}
