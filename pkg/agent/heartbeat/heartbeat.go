package heartbeat

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/go-logr/logr"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/version"
)

// Sender renews the agent's Lease on the hub.
type Sender struct {
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
func (h *Sender) Run(ctx context.Context) {
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
func (h *Sender) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, max(h.Interval, time.Second))
	defer cancel()
	now := metav1.NewMicroTime(h.Clock.Now())
	seconds := int32(max(h.Interval/time.Second, 1))
	report := cluster.Report{
		Versions:       fleet.ClusterVersions{Agent: h.AgentVersion, Kubernetes: h.KubernetesVersion(), Protocol: version.Protocol},
		AgentNamespace: h.AgentNamespace,
	}
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: cluster.LeaseName, Namespace: h.Namespace, Annotations: report.Annotations()},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &h.Holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	leases := h.Hub.CoordinationV1().Leases(h.Namespace)
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"annotations": lease.Annotations}, "spec": lease.Spec,
	})
	if err != nil {
		return err
	}
	_, err = leases.Patch(ctx, cluster.LeaseName, types.MergePatchType, patch, metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		lease.Spec.AcquireTime = &now
		_, err = leases.Create(ctx, lease, metav1.CreateOptions{})
	}
	if err != nil {
		return fmt.Errorf("renew lease %s/%s: %w", h.Namespace, cluster.LeaseName, err)
	}
	return nil
}
