package join

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"
)

// LeaseName is the Lease by which an agent says that it is there.
const LeaseName = "fleet-agent"

// Annotations of the Lease.
const (
	AgentVersionAnnotation      = "fleet.cattle.io/agent-version"
	KubernetesVersionAnnotation = "fleet.cattle.io/kubernetes-version"
	AgentNamespaceAnnotation    = "fleet.cattle.io/agent-namespace"
	ProtocolVersionAnnotation   = "fleet.cattle.io/protocol-version"
)

// Heartbeat renews the agent's Lease on the hub.
type Heartbeat struct {
	Hub kubernetes.Interface
	// Namespace on the hub.
	Namespace string
	// Holder names the process: pod or host.
	Holder string
	// Interval between renewals; the Lease's leaseDurationSeconds says it too.
	Interval time.Duration
	// AgentVersion and AgentNamespace are reported; KubernetesVersion is asked for before each renewal.
	AgentVersion, AgentNamespace string
	KubernetesVersion            func() string
	// Refused is called when the hub does not know the identity any more; nil ignores that.
	Refused func()
	Clock   clock.Clock
	Log     logr.Logger
}

// Run renews the Lease at once and then every interval, until the context ends.
func (h *Heartbeat) Run(ctx context.Context) {
	failing := false
	timer := h.Clock.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C():
		}
		err := h.beat(ctx)
		switch {
		case err != nil && ctx.Err() == nil && !failing:
			h.Log.Error(err, "the hub does not hear the agent")
		case err == nil && failing:
			h.Log.Info("the hub hears the agent again")
		}
		if (apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err)) && h.Refused != nil {
			h.Refused()
		}
		failing = err != nil
		timer.Reset(h.Interval - rand.N(h.Interval/10+1))
	}
}

// beat renews the Lease with one request, and makes it when it is missing.
func (h *Heartbeat) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(h.Interval, time.Second))
	defer cancel()
	now := metav1.NewMicroTime(h.Clock.Now())
	seconds := int32(max(h.Interval/time.Second, 1))
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: LeaseName, Namespace: h.Namespace, Annotations: map[string]string{
			AgentVersionAnnotation:      h.AgentVersion,
			KubernetesVersionAnnotation: h.KubernetesVersion(),
			AgentNamespaceAnnotation:    h.AgentNamespace,
			ProtocolVersionAnnotation:   strconv.Itoa(ProtocolVersion),
		}},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &h.Holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	leases := h.Hub.CoordinationV1().Leases(h.Namespace)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": lease.Annotations}, "spec": lease.Spec,
	})
	if err != nil {
		return err
	}
	_, err = leases.Patch(ctx, LeaseName, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		lease.Spec.AcquireTime = &now
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renew lease %s/%s: %w", h.Namespace, LeaseName, err)
	}
	return nil
}
