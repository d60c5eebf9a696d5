package security

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// report writes a status as an agent.
func (a *agent) report(deployment *fleet.BundleDeployment, wanted fleet.BundleDeploymentStatus) {
	a.h.t.Helper()
	if err := a.client.Status().Patch(a.h.t.Context(), deployment.DeepCopy(), merge(a.h.t, map[string]any{"status": wanted})); err != nil {
		a.h.t.Fatal(err)
	}
}

// ready is an honest report.
func ready(deployment *fleet.BundleDeployment) fleet.BundleDeploymentStatus {
	return fleet.BundleDeploymentStatus{DeploymentPartStatus: fleet.DeploymentPartStatus{
		AppliedDeploymentID: deployment.Spec.DeploymentID, Ready: true, NonModified: true,
		ResourceCounts: fleet.ResourceCounts{Ready: 1, DesiredReady: 1},
		Resources:      []fleet.BundleDeploymentResource{{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: deployment.Name}},
	}}
}

// monstrous is as many lies as an API server stores: brackets take six bytes each.
func monstrous() fleet.BundleDeploymentStatus {
	long := strings.Repeat("<script>", 1500)
	lies := fleet.BundleDeploymentStatus{DeploymentPartStatus: fleet.DeploymentPartStatus{
		AppliedDeploymentID: long, Release: long,
		ResourceCounts: fleet.ResourceCounts{Ready: math.MinInt32, DesiredReady: math.MaxInt32, Missing: -7},
	}}
	for _, kind := range []string{fleet.ConditionDeployed, fleet.ConditionInstalled, fleet.ConditionMonitored, fleet.ConditionReady} {
		lies.Conditions = append(lies.Conditions, fleet.Condition{Type: kind, Status: corev1.ConditionFalse, Reason: fleet.ReasonError, Message: long})
	}
	for range 5 {
		lies.ModifiedStatus = append(lies.ModifiedStatus, fleet.ModifiedStatus{Kind: long, APIVersion: "v1", Name: long, Patch: long})
		lies.NonReadyStatus = append(lies.NonReadyStatus, fleet.NonReadyStatus{UID: long, Kind: "x", Name: long,
			Summary: fleet.ObjectSummary{Error: true, Message: []string{long}}})
		lies.Resources = append(lies.Resources, fleet.BundleDeploymentResource{Kind: "x\x1f\x1e", Namespace: long, Name: long})
	}
	return lies
}

func size(t *testing.T, value any) int {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return len(text)
}

// What one agent reports reaches what others share within bounds, and nothing else at all.
func TestForgedReports(t *testing.T) {
	h := getHub(t)
	workspace := h.workspace()
	k := h.token(workspace, "join")
	evil, good := k.join("evil"), k.join("good")
	evil.live()
	good.live()
	shared := h.bundle(workspace, "shared")
	counts := func(want fleet.BundleSummary) func(*fleet.Bundle) error {
		return func(b *fleet.Bundle) error {
			got := b.Status.Summary
			got.NonReadyResources = nil
			if fmt.Sprint(got) != fmt.Sprint(want) {
				return fmt.Errorf("summary %+v, want %+v", got, want)
			}
			return nil
		}
	}
	theirs, ours := h.deployment(shared, evil.namespace), h.deployment(shared, good.namespace)
	good.report(ours, ready(ours))
	evil.report(theirs, monstrous())
	wait(h, shared, "counts both", counts(fleet.BundleSummary{Ready: 1, ErrApplied: 1, DesiredReady: 2}))
	if bytes := size(t, shared.Status); bytes > 64<<10 {
		t.Errorf("the Bundle's status has %d bytes", bytes)
	}
	if message := status.Find(shared.Status.Conditions, fleet.ConditionReady).Message; len(message) > status.MaxMessage {
		t.Errorf("the Bundle's message has %d bytes", len(message))
	}
	wait(h, good.cluster, "is ready", func(c *fleet.Cluster) error {
		if c.Status.Display.ReadyBundles != "1/1" || c.Status.ResourceCounts.Ready != 1 || c.Status.ResourceCounts.DesiredReady != 1 {
			return fmt.Errorf("%+v, %+v", c.Status.Display, c.Status.ResourceCounts)
		}
		return nil
	})
	wait(h, evil.cluster, "counts what can be", func(c *fleet.Cluster) error {
		if n := c.Status.ResourceCounts; c.Status.Summary.ErrApplied != 1 || n.Ready != 0 || n.Missing != 0 || size(t, c.Status) > 64<<10 {
			return fmt.Errorf("%d bytes, %+v, %+v", size(t, c.Status), c.Status.Summary, n)
		}
		return nil
	})

	evil.report(theirs, fleet.BundleDeploymentStatus{DeploymentPartStatus: fleet.DeploymentPartStatus{AppliedDeploymentID: theirs.Spec.DeploymentID, Ready: true, NonModified: true}})
	wait(h, shared, "recovers", counts(fleet.BundleSummary{Ready: 2, DesiredReady: 2}))
	if bytes := h.resident(); bytes > 300<<20 {
		t.Errorf("the hub takes %d MB", bytes>>20)
	}
}

// resident is what the hub's program takes.
func (h *hub) resident() int {
	h.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", h.program.Pid()))
	if err != nil {
		h.t.Skip(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		h.t.Fatal(err)
	}
	return pages * os.Getpagesize()
}

func TestForgedLease(t *testing.T) {
	h := getHub(t)
	k := h.token(h.workspace(), "join")
	evil, good := k.join("evil"), k.join("good")
	good.live()
	evil.beat(func(lease *coordinationv1.Lease) {
		lease.Spec.LeaseDurationSeconds = ptr.To(int32(math.MaxInt32))
		lease.Spec.RenewTime = &metav1.MicroTime{Time: time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)}
		lease.Labels = map[string]string{fleet.ManagedLabel: "true", fleet.BundleLabel: "x"}
		lease.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "x", UID: "x", Controller: ptr.To(true)}}
		lease.Annotations = map[string]string{
			"fleet.cattle.io/agent-version": strings.Repeat("v", 200<<10), "fleet.cattle.io/protocol-version": "-1e9",
			fleet.ClusterAnnotation: good.cluster.Name, fleet.ClusterNamespaceAnnotation: k.ClusterNamespace,
		}
	})
	wait(h, evil.cluster, "is heard", func(c *fleet.Cluster) error {
		if c.Status.Phase != fleet.ClusterReady || c.Status.Versions == nil {
			return fmt.Errorf("status %+v", c.Status)
		}
		return nil
	})
	if v := evil.cluster.Status.Versions; len(v.Agent) > 128 || v.Protocol != 0 {
		t.Errorf("%d bytes of version, protocol %d", len(v.Agent), v.Protocol)
	}
	if seen := evil.cluster.Status.Agent.LastSeen; seen.Year() > time.Now().Year() {
		t.Errorf("last seen %v", seen)
	}
	wait(h, good.cluster, "is as it was", func(c *fleet.Cluster) error {
		if c.Status.Versions.Agent != "v9" {
			return fmt.Errorf("versions %+v", c.Status.Versions)
		}
		return nil
	})
}

// An agent of upstream may write its Cluster's status. The namespace in it leads nowhere else.
func TestForgedNamespace(t *testing.T) {
	h := getHub(t)
	k := h.token(h.workspace(), "join")
	victim, own := k.join("victim"), k.join("own")
	bundle := h.bundle(k.ClusterNamespace, "app")
	before := h.deployment(bundle, victim.namespace)
	stop := h.forge(own.cluster, victim.namespace)
	for range 20 {
		answer := k.ask(k.Request("own")).Status
		if answer.ClusterNamespace == victim.namespace || answer.Identity != nil && strings.Contains(answer.Identity.User, victim.namespace) {
			t.Errorf("got %+v", answer)
			break
		}
	}
	stop()
	wait(h, own.cluster, "has its own namespace again", func(c *fleet.Cluster) error {
		if c.Status.Namespace != own.namespace {
			return fmt.Errorf("namespace %s", c.Status.Namespace)
		}
		return nil
	})
	after := h.deployment(bundle, victim.namespace)
	if after.UID != before.UID || after.Labels[fleet.ClusterLabel] != victim.cluster.Name {
		t.Errorf("the victim's deployment became %v", after.ObjectMeta)
	}
}

// forge writes a namespace into a Cluster's status again and again, against the hub, until it is stopped. An API server
// that has much to do may refuse some; all must not fail.
func (h *hub) forge(cluster *fleet.Cluster, namespace string) (stop func()) {
	forgery := merge(h.t, map[string]any{"status": map[string]any{"namespace": namespace}})
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	forged, last := 0, error(nil)
	go func() {
		defer close(done)
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			if err := h.client.Status().Patch(ctx, cluster.DeepCopy(), forgery); err == nil {
				forged++
			} else if ctx.Err() == nil {
				last = err
			}
		}
	}()
	return func() {
		h.t.Helper()
		cancel()
		<-done
		if forged == 0 {
			h.t.Errorf("no status was forged: %v", last)
		}
	}
}

// Registrations by the hundred, as large as can be, are refused without harm to the next honest one.
func TestFlood(t *testing.T) {
	h := getHub(t)
	k := h.token(h.workspace(), "join")
	began := h.resident()
	const flood, bytes = 80, 700 << 10
	filler := strings.Repeat("x", bytes)
	for i := range flood {
		request := k.Request(strconv.Itoa(i))
		switch i % 4 {
		case 0:
			request.Spec.ClientID = filler
		case 1:
			request.Spec.CSR, request.Spec.AgentID = make([]byte, bytes/2), "x:y"
		case 2:
			request.Spec.ClusterName = filler
		case 3:
			request.Spec.AgentID, request.Spec.AgentVersion = "x:y", filler
		}
		if err := k.client.Create(t.Context(), request); err != nil {
			t.Fatal(err)
		}
	}
	k.join("honest")
	var all fleet.ClusterRegistrationList
	if err := h.client.List(t.Context(), &all, client.InNamespace(k.ClusterNamespace)); err != nil {
		t.Fatal(err)
	}
	for i := range all.Items {
		r := &all.Items[i]
		if r.Spec.ClientID == "honest" {
			continue
		}
		wait(h, r, "is refused", func(r *fleet.ClusterRegistration) error {
			if r.Status.State != fleet.RegistrationRejected || len(r.Status.Message) > 1024 {
				return fmt.Errorf("%s with %d bytes of message", r.Status.State, len(r.Status.Message))
			}
			return nil
		})
	}
	t.Logf("resident before %d MB, after %d MB", began>>20, h.resident()>>20)
	var made fleet.ClusterList
	if err := h.client.List(t.Context(), &made, client.InNamespace(k.ClusterNamespace)); err != nil || len(made.Items) != 1 {
		t.Errorf("there are %d Clusters (%v)", len(made.Items), err)
	}
}
