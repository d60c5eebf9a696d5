package security

import (
	"context"
	"fmt"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/enroll"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// token is a registration token in the hands of whoever found it.
type token struct {
	enroll.Values
	h      *hub
	client client.WithWatch
}

func (h *hub) token(workspace, name string) *token {
	h.t.Helper()
	values := enroll.Token(h.t, h.client, workspace, name, time.Hour)
	return &token{Values: values, h: h, client: h.as(values.Config())}
}

// ask makes a registration and returns it once the hub has answered.
func (k *token) ask(registration *fleet.ClusterRegistration) *fleet.ClusterRegistration {
	k.h.t.Helper()
	return enroll.Ask(k.h.t, k.client, registration)
}

// agent has a cluster's certificate.
type agent struct {
	h            *hub
	config       *rest.Config
	client       client.WithWatch
	registration *fleet.ClusterRegistration
	// namespace is its own on the hub.
	namespace string
	cluster   *fleet.Cluster
}

// join registers as an honest agent does.
func (k *token) join(clientID string) *agent {
	k.h.t.Helper()
	registration, key := enroll.Join(k.h.t, k.client, k.Request(clientID))
	config := k.Granted(registration, key)
	return &agent{
		h: k.h, config: config, client: k.h.as(config), registration: registration, namespace: registration.Status.ClusterNamespace,
		cluster: &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: k.ClusterNamespace, Name: names.ClusterForClient(clientID)}},
	}
}

// beat renews the agent's lease for a long time, after change had its way with it.
func (a *agent) beat(change func(*coordinationv1.Lease)) {
	a.h.t.Helper()
	kubetest.Eventually(a.h.t, "the lease is renewed", func(ctx context.Context) error { // the hub may write it too
		var lease coordinationv1.Lease
		if err := a.client.Get(ctx, client.ObjectKey{Namespace: a.namespace, Name: "fleet-agent"}, &lease); err != nil {
			return err
		}
		lease.Annotations = map[string]string{"fleet.cattle.io/agent-version": "v9", "fleet.cattle.io/protocol-version": "1"}
		lease.Spec.LeaseDurationSeconds, lease.Spec.RenewTime = ptr.To(int32(600)), ptr.To(metav1.NowMicro())
		if change != nil {
			change(&lease)
		}
		return a.client.Update(ctx, &lease)
	})
}

// live beats until the hub counts the agent as there.
func (a *agent) live() {
	a.h.t.Helper()
	a.beat(nil)
	wait(a.h, a.cluster, "is ready", func(c *fleet.Cluster) error {
		if c.Status.Phase != fleet.ClusterReady || c.Status.Versions == nil {
			return fmt.Errorf("phase %s, versions %v", c.Status.Phase, c.Status.Versions)
		}
		return nil
	})
}
