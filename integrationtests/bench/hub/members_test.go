package hub

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

const (
	// heartbeat is how often members renew their lease, as real agents do.
	heartbeat = 15 * time.Second
	// quickHeartbeat is that of the member that dies, so that nobody waits for minutes.
	quickHeartbeat = 2 * time.Second
	// The first ringSize clusters have the label ring=a, the next ring=b.
	rings     = 2
	ringSize  = 5
	ringLabel = "ring"
)

// member is a cluster that is played.
type member struct {
	name, namespace string
	every           time.Duration

	mutex sync.Mutex
	dead  bool
}

func (m *member) setDead(dead bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.dead = dead
}

func (m *member) isDead() bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return m.dead
}

func newMember(i int) *member {
	name := fmt.Sprintf("cluster-%04d", i)
	return &member{name: name, namespace: names.ClusterNamespace(stack.Workspace, name), every: heartbeat}
}

func (m *member) object(i int) *fleet.Cluster {
	labels := map[string]string{"env": []string{"dev", "test", "prod"}[i%3], "number": strconv.Itoa(i)}
	switch i / ringSize {
	case 0:
		labels[ringLabel] = "a"
	case 1:
		labels[ringLabel] = "b"
	}
	return &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: stack.Workspace, Name: m.name, Labels: labels}}
}

// beat renews the lease until the context ends, as long as the member lives.
func (m *member) beat(ctx context.Context, c client.Client) {
	ticker := time.NewTicker(m.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if !m.isDead() {
			_ = m.renew(ctx, c) // the next beat tries again
		}
	}
}

// renew writes the lease as an agent does.
func (m *member) renew(ctx context.Context, c client.Client) error {
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"fleet.cattle.io/agent-version":"bench","fleet.cattle.io/protocol-version":"2"}},`+
		`"spec":{"holderIdentity":%q,"leaseDurationSeconds":%d,"renewTime":%q}}`,
		m.name, int(m.every.Seconds()), time.Now().UTC().Format(metav1.RFC3339Micro))
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: cluster.LeaseName}}
	return c.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// join makes all clusters and returns when each has been heard of. Each goes on beating from then on: the last one
// may come long after the first.
func (r *run) join() {
	r.t.Helper()
	group, ctx := errgroup.WithContext(r.t.Context())
	group.SetLimit(workers)
	for i, m := range r.members {
		group.Go(func() error {
			if err := r.client.Create(ctx, m.object(i)); err != nil {
				return err
			}
			err := stack.Await(ctx, m.name+" has its lease", func(ctx context.Context) error { return m.renew(ctx, r.client) })
			if err == nil {
				r.background.Go(func() { m.beat(r.beating, r.client) })
			}
			return err
		})
	}
	if err := group.Wait(); err != nil {
		r.t.Fatal(err)
	}
	r.awaitPhase(fleet.ClusterReady, len(r.members))
}

// awaitPhase waits until as many clusters are in a phase.
func (r *run) awaitPhase(phase fleet.ClusterPhase, count int) {
	r.t.Helper()
	r.awaitSlowly(fmt.Sprintf("%d clusters are %s", count, phase), 50*time.Millisecond, func(ctx context.Context) error {
		var list fleet.ClusterList
		if err := r.shown.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
			return err
		}
		found := 0
		for i := range list.Items {
			if list.Items[i].Status.Phase == phase {
				found++
			}
		}
		if found != count {
			return fmt.Errorf("%d of %d are", found, len(list.Items))
		}
		return nil
	})
}

// patience is how long anything may take before it is taken for broken.
const patience = 30 * time.Minute

func await(t testing.TB, what string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := stack.Await(ctx, what, ask); err != nil {
		t.Fatal(err)
	}
}

// awaitSlowly asks rarely, because asking takes the API server's time.
func (r *run) awaitSlowly(what string, every time.Duration, ask func(context.Context) error) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return
		}
		if failed := r.stack.Err(); failed != nil {
			r.t.Fatal(failed)
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			r.t.Fatalf("%s: not within %s: %v", what, patience, err)
		}
	}
}
