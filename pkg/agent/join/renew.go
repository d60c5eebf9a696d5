package join

import (
	"context"
	cryptorand "crypto/rand"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"github.com/fairlead-dev/fairlead/pkg/agent/hub"
	"github.com/fairlead-dev/fairlead/pkg/agent/identity"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// ErrMoved means that a new registration gave the agent another cluster: it has to start anew.
var ErrMoved = errors.New("the agent belongs to another cluster now")

const (
	// longestRest is how long before its end a certificate is renewed at the latest.
	longestRest = 30 * 24 * time.Hour
	retryRenew  = time.Minute
)

// RenewAt returns when a certificate is to be renewed: when what remains is a third of its life or
// thirty days, whichever is less. Fraction, from 0 to 1, spreads the agents of a fleet over the tenth of
// its life before that.
func RenewAt(certificate *x509.Certificate, fraction float64) time.Time {
	life := certificate.NotAfter.Sub(certificate.NotBefore)
	rest := min(longestRest, life/3)
	spread := time.Duration(fraction * float64(life) / 10)
	return certificate.NotAfter.Add(-rest).Add(-spread)
}

// Renewer keeps the certificate of a connection from ending.
type Renewer struct {
	Joiner     *Joiner
	Connection *identity.Connection
	Credential identity.Credential
	Clock      clock.Clock

	refused chan struct{}
}

// NewRenewer returns a renewer.
func NewRenewer(joiner *Joiner, connection *identity.Connection, credential identity.Credential, clock clock.Clock) *Renewer {
	return &Renewer{Joiner: joiner, Connection: connection, Credential: credential, Clock: clock, refused: make(chan struct{}, 1)}
}

// Refused tells the renewer that the hub does not know the identity any more, as after a restore. If
// there is a bootstrap Secret by then, the agent registers again.
func (r *Renewer) Refused() {
	select {
	case r.refused <- struct{}{}:
	default:
	}
}

// Run renews the certificate whenever it is time, until the context ends. It returns ErrMoved when the
// agent got another cluster, by a bootstrap Secret that was put there after its certificate had ended.
func (r *Renewer) Run(ctx context.Context) error {
	fraction := rand.Float64()
	least := time.Duration(0) // between renewals, should the two clocks not agree
	for {
		certificate, err := r.Credential.Certificate()
		if err != nil {
			return err
		}
		if certificate == nil {
			<-ctx.Done()
			return nil
		}
		wait := max(RenewAt(certificate.Leaf, fraction).Sub(r.Clock.Now()), least)
		least = retryRenew
		refused, err := r.sleep(ctx, wait)
		if err != nil {
			return nil
		}
		err = r.replace(ctx, refused)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, ErrMoved):
			return err
		case err != nil:
			r.Joiner.Log.Error(err, "certificate not renewed", "ends", certificate.Leaf.NotAfter.UTC())
		}
	}
}

func (r *Renewer) sleep(ctx context.Context, wait time.Duration) (refused bool, err error) {
	timer := r.Clock.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false, ctx.Err()
	case <-timer.C():
		return false, nil
	case <-r.refused:
		return true, nil
	}
}

func (r *Renewer) replace(ctx context.Context, refused bool) error {
	var renewed *identity.Credential
	var err error
	if refused || r.Credential.Expired(r.Clock.Now()) {
		renewed, err = r.Joiner.Ensure(ctx, r.Clock.Now())
		if err == nil && renewed.Expired(r.Clock.Now()) {
			err = fault.New(fault.Stalled, "CertificateExpired",
				"the certificate for the hub has ended; create secret %s/%s with a new token", r.Joiner.Namespace, BootstrapSecret)
		}
	} else {
		renewed, err = r.renew(ctx)
	}
	if err != nil {
		return err
	}
	if refused && string(renewed.Kubeconfig) == string(r.Credential.Kubeconfig) {
		return nil // nothing to register with yet
	}
	if renewed.DeploymentNamespace != r.Credential.DeploymentNamespace {
		return ErrMoved
	}
	if err := r.Connection.Replace(*renewed); err != nil {
		return err
	}
	r.Credential = *renewed
	r.Joiner.Log.Info("certificate renewed")
	return nil
}

// renew asks, as the agent itself and in its own namespace on the hub, for a certificate of the same
// identity with a new key.
func (r *Renewer) renew(ctx context.Context) (*identity.Credential, error) {
	certificate, err := r.Credential.Certificate()
	if err != nil {
		return nil, err
	}
	key, err := identity.NewKey()
	if err != nil {
		return nil, err
	}
	random := make([]byte, 16)
	if _, err := cryptorand.Read(random); err != nil {
		return nil, err
	}
	bearer := fleet.AgentIdentity{User: certificate.Leaf.Subject.CommonName, Groups: certificate.Leaf.Subject.Organization}
	wanted := &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: r.Credential.DeploymentNamespace}}
	wanted.Spec.ClientRandom = hex.EncodeToString(random)
	wanted.Name = "renewal-" + names.KeyHash(wanted.Spec.ClientRandom)
	if wanted.Spec.CSR, err = identity.Request(key, bearer); err != nil {
		return nil, err
	}
	if err := r.Joiner.describe(&wanted.Spec); err != nil {
		return nil, err
	}
	client, err := hub.NewClient(r.Connection.Config())
	if err != nil {
		return nil, err
	}
	request := registration{client: client, namespace: wanted.Namespace, name: wanted.Name}
	if err := request.create(ctx, wanted); err != nil {
		return nil, err
	}
	answer, err := request.certified(ctx, key)
	if err != nil {
		if apierrors.IsNotFound(err) {
			return nil, fmt.Errorf("registration %s/%s is gone: %w", wanted.Namespace, wanted.Name, err)
		}
		return nil, err
	}
	return r.stored(ctx, answer.Status.Certificate, key)
}

func (r *Renewer) stored(ctx context.Context, certificate, key []byte) (*identity.Credential, error) {
	config, err := r.Credential.Config()
	if err != nil {
		return nil, err
	}
	renewed := r.Credential
	if renewed.Kubeconfig, err = identity.Kubeconfig(config.Host, config.CAData, certificate, key); err != nil {
		return nil, err
	}
	return &renewed, renewed.Store(ctx, r.Joiner.Member, r.Joiner.Namespace)
}
