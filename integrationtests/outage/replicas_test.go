package outage

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
)

// election is fast, so that tests are: a dead replica is replaced after the lease's time.
var election = []string{
	"CATTLE_ELECTION_LEASE_DURATION=4s", "CATTLE_ELECTION_RENEW_DEADLINE=3s", "CATTLE_ELECTION_RETRY_PERIOD=500ms",
}

// agents play those of a workspace: what is deployed is ready a moment later. They watch that a rollout keeps
// its limit.
type agents struct {
	mu       sync.Mutex
	worst    int            // most clusters of a bundle that were not ready at once, after they all were
	versions map[string]int // changes of the deployed id, by deployment
	last     map[string]string
	stop     func()
}

func (w *world) agents() *agents {
	ctx, cancel := context.WithCancel(w.t.Context())
	a := &agents{versions: map[string]int{}, last: map[string]string{}}
	done := make(chan struct{})
	a.stop = sync.OnceFunc(func() { cancel(); <-done })
	w.t.Cleanup(a.stop)
	go func() {
		defer close(done)
		ticker := time.NewTicker(100 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				a.look(ctx, w)
			}
		}
	}()
	return a
}

func (a *agents) look(ctx context.Context, w *world) {
	var list fleet.BundleDeploymentList
	if w.client.List(ctx, &list, client.MatchingLabels{fleet.BundleNamespaceLabel: w.namespace}) != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	unready := map[string]int{}
	for i := range list.Items {
		d := &list.Items[i]
		key := d.Namespace + "/" + d.Name
		if a.last[key] != d.Spec.DeploymentID {
			a.last[key] = d.Spec.DeploymentID
			a.versions[key]++
		}
		if d.Spec.DeploymentID == "" || d.Status.AppliedDeploymentID == d.Spec.DeploymentID && d.Status.Ready {
			continue
		}
		if d.Status.AppliedDeploymentID != "" {
			unready[d.Name]++
		}
		patch := fmt.Sprintf(`{"status":{"appliedDeploymentID":%q,"ready":true,"nonModified":true,"display":{"state":"Ready"}}}`, d.Spec.DeploymentID)
		_ = w.client.Status().Patch(ctx, d.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(patch)))
	}
	for _, count := range unready {
		a.worst = max(a.worst, count)
	}
}

// rolledOut waits until a version runs on all clusters of all bundles.
func (w *world) rolledOut(bundles []string, clusters int, old map[string]string) map[string]string {
	w.t.Helper()
	ids := map[string]string{}
	for _, name := range bundles {
		ids[name] = w.awaitDeployed(name, clusters, old[name])
	}
	return ids
}

// pair is two replicas that roll bundles out one cluster at a time.
type pair struct {
	*world
	replicas []*process.Process
	agents   *agents
	bundles  []string
	ids      map[string]string
	before   int // writes
}

const pairClusters = 6

func newPair(t *testing.T, args ...string) *pair {
	t.Helper()
	var names []string
	for i := range pairClusters {
		names = append(names, fmt.Sprintf("c%d", i))
	}
	p := &pair{world: newWorld(t, names...)}
	p.agents = p.world.agents()
	one := intstr.FromInt32(1)
	for i := range 4 {
		bundle := p.bundle(fmt.Sprintf("b%d", i), "0", fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}})
		bundle.Spec.RolloutStrategy = &fleet.RolloutStrategy{MaxUnavailable: &one}
		p.create(bundle)
		p.bundles = append(p.bundles, bundle.Name)
	}
	for i := range 2 {
		p.replicas = append(p.replicas, p.hub(fmt.Sprintf("replica-%d", i), p.account.Kubeconfig, election, args...))
	}
	for _, name := range names {
		p.beat(name)
	}
	p.ids = p.rolledOut(p.bundles, pairClusters, nil)
	p.agents.settle(p.world)
	return p
}

// beat makes a cluster heard of for an hour: a rollout does not wait for those that are away.
func (w *world) beat(name string) {
	w.t.Helper()
	kubetest.Eventually(w.t, "cluster "+name+" has its lease", func(ctx context.Context) error {
		var made fleet.Cluster
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: name}, &made); err != nil {
			return err
		}
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: made.Status.Namespace, Name: cluster.LeaseName}}
		patch := fmt.Sprintf(`{"spec":{"holderIdentity":%q,"leaseDurationSeconds":3600,"renewTime":%q}}`,
			name, time.Now().UTC().Format(metav1.RFC3339Micro))
		return w.client.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
}

// settle waits until all is ready, from when on limits count.
func (a *agents) settle(w *world) {
	w.t.Helper()
	kubetest.Eventually(w.t, "all deployments are ready", func(ctx context.Context) error {
		var list fleet.BundleDeploymentList
		if err := w.client.List(ctx, &list, client.MatchingLabels{fleet.BundleNamespaceLabel: w.namespace}); err != nil {
			return err
		}
		for _, d := range list.Items {
			if d.Status.AppliedDeploymentID != d.Spec.DeploymentID {
				return errors.New(d.Namespace + "/" + d.Name)
			}
		}
		return nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	a.worst, a.versions = 0, map[string]int{}
}

// begin changes all bundles and returns when the rollout is under way.
func (p *pair) begin(version string) {
	p.t.Helper()
	p.before = len(p.writesSince(0))
	for _, name := range p.bundles {
		p.change(name, version)
	}
	kubetest.Eventually(p.t, "the rollout is under way", func(ctx context.Context) error {
		found, err := p.deployments(ctx, p.bundles[0])
		if err != nil {
			return err
		}
		for _, d := range found {
			if d.Spec.DeploymentID != p.ids[p.bundles[0]] {
				return nil
			}
		}
		return errors.New("no cluster has the new version")
	})
}

// finish waits for the end of the rollout and looks at what was written for it: one change of its version for
// each deployment, one cluster at a time.
func (p *pair) finish() {
	p.t.Helper()
	p.ids = p.rolledOut(p.bundles, pairClusters, p.ids)
	p.agents.mu.Lock()
	worst, versions := p.agents.worst, p.agents.versions
	p.agents.mu.Unlock()
	if worst > 1 {
		p.t.Errorf("%d clusters changed at once, maxUnavailable is 1", worst)
	}
	for key, changes := range versions {
		if changes != 1 {
			p.t.Errorf("%s got %d versions, want one", key, changes)
		}
	}
	patches := map[string]int{}
	for _, write := range p.writesSince(p.before) {
		if write.Resource == "bundledeployments" && write.Subresource == "" && write.Code < 300 && strings.HasPrefix(write.Namespace, "cluster-"+p.namespace) {
			patches[write.Namespace+"/"+write.Name]++
			if write.Verb == "delete" || write.Verb == "create" {
				p.t.Errorf("written: %s", write)
			}
		}
	}
	total := 0
	for _, count := range patches {
		total += count
	}
	// Staged in one write, let go in another; a replica may die between a write and knowing of it.
	if pairs := len(p.bundles) * pairClusters; len(patches) != pairs || total > 2*pairs+len(p.bundles) {
		p.t.Errorf("%d deployments written %d times, want %d and at most %d", len(patches), total, pairs, 2*pairs+len(p.bundles))
	}
	p.t.Logf("%d writes for %d deployments, at most %d unavailable", total, len(patches), worst)
	p.agents.settle(p.world)
}

// leader returns which replica holds the lease.
func (p *pair) leader() int {
	p.t.Helper()
	leader := -1
	kubetest.Eventually(p.t, "somebody leads", func(ctx context.Context) error {
		lease, err := p.cluster.Clients().CoordinationV1().Leases(systemNamespace).Get(ctx, "fleet-controller-leader-election-shard", metav1.GetOptions{})
		if err != nil {
			return err
		}
		for i, replica := range p.replicas {
			text := logOf(replica)
			if lease.Spec.HolderIdentity != nil && *lease.Spec.HolderIdentity != "" && strings.Contains(text, *lease.Spec.HolderIdentity) {
				leader = i
				return nil
			}
		}
		return fmt.Errorf("holder %v", lease.Spec.HolderIdentity)
	})
	return leader
}

// The leader dies in the middle of a rollout, by force, by request, and by being stopped for longer than its
// lease lasts: the other one goes on, within the rollout's limit, and writes nothing twice.
func TestLeaderDies(t *testing.T) {
	p := newPair(t)
	for i, how := range []struct {
		name   string
		ending func(*process.Process) error
	}{
		{"killed", (*process.Process).Kill},
		{"asked to end", func(r *process.Process) error { return r.Terminate(t.Context()) }},
	} {
		t.Log(how.name)
		leader := p.leader()
		p.begin(fmt.Sprint("version-", i))
		if err := how.ending(p.replicas[leader]); err != nil {
			t.Fatal(err)
		}
		p.finish()
		if err := p.replicas[leader].Start(); err != nil {
			t.Fatal(err)
		}
	}
	t.Log("stopped")
	leader := p.leader()
	p.begin("paused")
	p.pause(leader)
	p.finish()
	p.resume(leader)
	p.ids = p.rolledOut(p.bundles, pairClusters, map[string]string{})
	p.begin("after the pause")
	p.finish()
}

func (p *pair) pause(which int)  { p.send(which, syscall.SIGSTOP) }
func (p *pair) resume(which int) { p.send(which, syscall.SIGCONT) }

func (p *pair) send(which int, signal syscall.Signal) {
	p.t.Helper()
	if err := syscall.Kill(p.replicas[which].Pid(), signal); err != nil {
		p.t.Fatal(err)
	}
}

// shares returns how many shards each holder has, once all shards are held by so many.
func (p *pair) shares(table string, holders int) map[string]int {
	p.t.Helper()
	var shares map[string]int
	kubetest.Eventually(p.t, fmt.Sprintf("%d replicas share the work", holders), func(ctx context.Context) error {
		lease, err := p.cluster.Clients().CoordinationV1().Leases(systemNamespace).Get(ctx, table, metav1.GetOptions{})
		if err != nil {
			return err
		}
		shares = map[string]int{}
		for _, holder := range lease.Annotations {
			shares[holder]++
		}
		held := 0
		for _, n := range shares {
			held += n
		}
		if held != 8 || len(shares) != holders {
			return fmt.Errorf("shares %v", shares)
		}
		return nil
	})
	return shares
}

// Two replicas share the work. One dies, is asked to end, or is stopped and goes on: the other takes its share
// over in the middle of the rollouts, nothing is written by both, and the share goes back.
func TestReplicasShareTheWork(t *testing.T) {
	p := newPair(t, "--automatic-shards=8")
	const table = "fleet-controller-shards"
	for holder, share := range p.shares(table, 2) {
		if share != 4 {
			t.Errorf("%s has %d of 8 shards", holder, share)
		}
	}
	for i, ending := range []func(*process.Process) error{
		(*process.Process).Kill,
		func(r *process.Process) error { return r.Terminate(t.Context()) },
	} {
		p.begin(fmt.Sprint("version-", i))
		if err := ending(p.replicas[i]); err != nil {
			t.Fatal(err)
		}
		p.finish()
		p.shares(table, 1)
		if err := p.replicas[i].Start(); err != nil {
			t.Fatal(err)
		}
		p.shares(table, 2)
	}
	p.begin("paused")
	p.pause(0)
	p.finish()
	p.shares(table, 1)
	p.begin("resumed in between")
	p.resume(0)
	p.finish()
	p.shares(table, 2)
	for _, replica := range p.replicas {
		if err := replica.Err(); err != nil {
			t.Error(err)
		}
	}
}

// A controller with a shard id works on what is labelled for it, the other one on the rest.
func TestShardByLabel(t *testing.T) {
	w := newWorld(t, "a")
	everywhere := fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}}
	blue, plain, empty := w.bundle("blue", "0", everywhere), w.bundle("plain", "0", everywhere), w.bundle("empty", "0", everywhere)
	blue.Labels = map[string]string{fleet.ShardLabel: "blue"}
	empty.Labels = map[string]string{fleet.ShardLabel: ""}
	w.create(blue, plain, empty)
	w.hub("default", w.account.Kubeconfig, election)
	w.awaitDeployed("plain", 1, "")
	w.awaitDeployed("empty", 1, "")
	if found, err := w.deployments(t.Context(), "blue"); err != nil || len(found) > 0 {
		t.Errorf("the default controller deployed what is another's: %v, %v", found, err)
	}
	w.hub("blue", w.account.Kubeconfig, election, "--shard-id=blue")
	w.awaitDeployed("blue", 1, "")
	found, err := w.deployments(t.Context(), "blue")
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range found {
		if d.Labels[fleet.ShardLabel] != "blue" {
			t.Errorf("labels %v, want the shard's among them", d.Labels)
		}
	}
	var names []string
	leases, err := w.cluster.Clients().CoordinationV1().Leases(systemNamespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, lease := range leases.Items {
		names = append(names, lease.Name)
	}
	if !slices.Contains(names, "fleet-controller-leader-election-shard-blue") {
		t.Errorf("leases %v", names)
	}
}
