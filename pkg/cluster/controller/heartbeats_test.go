package controller

import (
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func keyOf(c *fleet.Cluster) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: c.Namespace, Name: c.Name}}
}

func lease(renewed time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: renewed}, LeaseDurationSeconds: ptr.To(int32(10))}}
}

func TestObserveGoesByTheHubsClock(t *testing.T) {
	now := noon
	h := newHeartbeats(func() time.Time { return now })
	pending := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "a"}}
	wrong := noon.AddDate(-1, 0, 0) // the member's clock is a year late

	first := h.observe(keyOf(pending), pending, lease(wrong))
	now = now.Add(time.Minute)
	same := h.observe(keyOf(pending), pending, lease(wrong))
	renewed := h.observe(keyOf(pending), pending, lease(wrong.Add(time.Minute)))
	lost := h.observe(keyOf(pending), pending, nil)
	h.forget(keyOf(pending))
	for name, c := range map[string]struct{ got, want cluster.Heartbeat }{
		"first":                 {first, cluster.Heartbeat{Seen: noon, Interval: 10 * time.Second, Fresh: 1}},
		"not renewed":           {same, first},
		"renewed late":          {renewed, cluster.Heartbeat{Seen: noon.Add(time.Minute), Interval: 10 * time.Second, Fresh: 1}},
		"the lease was deleted": {lost, renewed},
		"forgotten":             {h.observe(keyOf(pending), pending, nil), cluster.Heartbeat{}},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, c.got, c.want)
		}
	}
}

func TestObserveAfterAStart(t *testing.T) {
	h := newHeartbeats(func() time.Time { return noon })
	seen := metav1.NewTime(noon.Add(-time.Hour))
	known := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "n"}, Status: fleet.ClusterStatus{Agent: fleet.AgentStatus{LastSeen: seen}}}
	if got, want := h.observe(keyOf(known), known, lease(noon)), cluster.FirstSight(noon, 10*time.Second); got != want {
		t.Errorf("found a lease: %+v, want %+v", got, want)
	}
	upstream := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "u"}, Status: fleet.ClusterStatus{Agent: fleet.AgentStatus{LastSeen: seen}}}
	if got := h.observe(keyOf(upstream), upstream, nil); got.Interval != cluster.LegacyInterval || !got.Seen.Equal(seen.Time) {
		t.Errorf("upstream's agent: %+v", got)
	}
}

// Only a cluster that is not heard of is looked at again, once, and when it is late.
func TestOnlyTheSilentAreLate(t *testing.T) {
	now := noon
	h := newHeartbeats(func() time.Time { return now })
	silent := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "silent"}}
	alive := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "alive"}}
	for _, c := range []*fleet.Cluster{silent, alive} {
		h.look(keyOf(c), fleet.ClusterReady, h.observe(keyOf(c), c, lease(now)))
	}
	if late, next := h.late(); len(late) > 0 || next != 30*time.Second {
		t.Fatalf("at once: %v, next in %s", late, next)
	}
	now = noon.Add(20 * time.Second)
	h.observe(keyOf(alive), alive, lease(now))
	now = noon.Add(30 * time.Second)
	late, next := h.late()
	if len(late) != 1 || late[0] != keyOf(silent) || next != 20*time.Second {
		t.Fatalf("after 30 s: %v, next in %s", late, next)
	}
	if late, _ := h.late(); len(late) > 0 {
		t.Errorf("%v twice", late)
	}
	h.look(keyOf(silent), fleet.ClusterNotReady, cluster.Heartbeat{})
	now = noon.Add(40 * time.Second)
	h.observe(keyOf(alive), alive, lease(now))
	if late, next := h.late(); len(late) > 0 || next != 30*time.Second {
		t.Errorf("after a look: %v, next in %s", late, next)
	}
	h.forget(keyOf(alive))
	now = noon.Add(5 * time.Minute)
	if late, _ := h.late(); len(late) != 1 || late[0] != keyOf(silent) {
		t.Errorf("after five minutes: %v", late)
	}
}
