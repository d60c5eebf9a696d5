package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/enroll"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// values are what a token gives.
type values struct{ enroll.Values }

// token makes a registration token and returns its values when they are ready.
func (h *hub) token(t *testing.T, namespace, name string, ttl time.Duration) values {
	t.Helper()
	return values{enroll.Token(t, h.client, namespace, name, ttl)}
}

// request is a registration of a cluster with labels, some of which it may not have.
func (v values) request(clientID string) *fleet.ClusterRegistration {
	request := v.Request(clientID)
	request.Spec.ClusterLabels = map[string]string{
		"env": "dev", "fleet.cattle.io/managed": "true", "management.cattle.io/cluster-name": "other",
		fleet.AgentPodLabel: "fleet-agent-0",
	}
	return request
}

// later waits until what is created now is newer than an object: creation times count seconds.
func later(t *testing.T, than client.Object) {
	t.Helper()
	kubetest.Eventually(t, "a second has passed", func(context.Context) error {
		if created := than.GetCreationTimestamp(); time.Now().Unix() <= created.Unix()+1 {
			return errors.New("not yet")
		}
		return nil
	})
}

// joined is an agent that has its certificate.
type joined struct {
	client       client.Client
	registration *fleet.ClusterRegistration
	namespace    string // its own, on the hub
	clusterName  string
}

func (h *hub) join(t *testing.T, v values, clientID string) *joined {
	t.Helper()
	registration, key := enroll.Join(t, h.as(t, v.Config()), v.request(clientID))
	return h.identify(t, v, registration, key)
}

// identify turns a granted registration into an agent's access.
func (h *hub) identify(t *testing.T, v values, registration *fleet.ClusterRegistration, key []byte) *joined {
	t.Helper()
	if registration.Status.State != fleet.RegistrationGranted {
		t.Fatalf("not granted: %+v", registration.Status)
	}
	return &joined{
		client: h.as(t, v.Granted(registration, key)), registration: registration,
		namespace: registration.Status.ClusterNamespace, clusterName: registration.Status.ClusterName,
	}
}

// renewLease is one heartbeat.
func (j *joined) renewLease(t *testing.T, seconds int32) {
	t.Helper()
	kubetest.Eventually(t, "the lease is renewed", func(ctx context.Context) error { // the hub may write it too
		var lease coordinationv1.Lease
		if err := j.client.Get(ctx, client.ObjectKey{Namespace: j.namespace, Name: "fleet-agent"}, &lease); err != nil {
			return err
		}
		lease.Annotations = map[string]string{
			"fleet.cattle.io/agent-version": "v9", "fleet.cattle.io/kubernetes-version": "v1.37.2",
			"fleet.cattle.io/agent-namespace": "cattle-fleet-system", "fleet.cattle.io/protocol-version": "1",
		}
		lease.Spec = coordinationv1.LeaseSpec{
			HolderIdentity: ptr.To("agent"), LeaseDurationSeconds: ptr.To(seconds), RenewTime: ptr.To(metav1.NowMicro()),
		}
		return j.client.Update(ctx, &lease)
	})
}

// attempts are what an identity tries, by what it is.
type attempts map[string]func(ctx context.Context) error

// mustSucceed waits until all may be done: an API server learns of new rights a moment after they are stored.
func (a attempts) mustSucceed(t *testing.T) {
	t.Helper()
	for what, try := range a {
		kubetest.Eventually(t, "the agent can "+what, try)
	}
}

// reportApplied is what an agent reports of a deployment; an empty id means that nothing is installed.
func (j *joined) reportApplied(t *testing.T, deployment *fleet.BundleDeployment, id string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"status":{"appliedDeploymentID":%q}}`, id))
	if err := j.client.Status().Patch(t.Context(), deployment.DeepCopy(), patch); err != nil {
		t.Fatal(err)
	}
}
