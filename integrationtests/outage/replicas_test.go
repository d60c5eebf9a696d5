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
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
)

// election is fast, so that tests are: a dead replica is replaced after the lease's time.
var election = []string{
	"CATTLE_ELECTION_LEASE_DURATION=4s", "CATTLE_ELECTION_RENEW_DEADLINE=3s", "CATTLE_ELECTION_RETRY_PERIOD=500ms",
}

// answerEvery is how often the played agents answer: a rollout of several clusters takes a while.
const answerEvery = 100 * time.Millisecond

// agents play those of a workspace: what is deployed is ready a moment later. They follow the events, so that
// they see every version that a deployment gets and every moment at which clusters are not ready.
type agents struct {
	mu       sync.Mutex
	known    map[string]*fleet.BundleDeployment // by key
	versions map[string]int                     // changes of the deployed id, by key
	worst    int                                // most clusters of a bundle that were not ready at once, after they all were
}

func (w *world) agents() *agents {
	w.t.Helper()
	a := &agents{known: map[string]*fleet.BundleDeployment{}, versions: map[string]int{}}
	ours := labels.SelectorFromSet(labels.Set{fleet.BundleNamespaceLabel: w.namespace})
	informer := toolscache.NewSharedInformer(&toolscache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list := &fleet.BundleDeploymentList{}
			return list, w.client.List(ctx, list, &client.ListOptions{LabelSelector: ours, Raw: &options})
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			return w.client.Watch(ctx, &fleet.BundleDeploymentList{}, &client.ListOptions{LabelSelector: ours, Raw: &options})
		},
	}, &fleet.BundleDeployment{}, 0)
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    func(now any) { a.see(now.(*fleet.BundleDeployment)) },
		UpdateFunc: func(_, now any) { a.see(now.(*fleet.BundleDeployment)) },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.t.Context())
	var running sync.WaitGroup
	running.Go(func() { informer.RunWithContext(ctx) })
	running.Go(func() { a.answer(ctx, w.client) })
	w.t.Cleanup(func() { cancel(); running.Wait() })
	return a
}

func keyOf(d *fleet.BundleDeployment) string { return d.Namespace + "/" + d.Name }

func isReady(d *fleet.BundleDeployment) bool {
	return d.Spec.DeploymentID == "" || d.Status.AppliedDeploymentID == d.Spec.DeploymentID && d.Status.Ready
}

func (a *agents) see(d *fleet.BundleDeployment) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := keyOf(d)
	if last := a.known[key]; last == nil || last.Spec.DeploymentID != d.Spec.DeploymentID {
		a.versions[key]++
	}
	a.known[key] = d
	unready := 0
	for _, other := range a.known {
		if other.Name == d.Name && other.Status.AppliedDeploymentID != "" && !isReady(other) {
			unready++
		}
	}
	a.worst = max(a.worst, unready)
}

// answer says of what is deployed that it is ready.
func (a *agents) answer(ctx context.Context, to client.Client) {
	ticker := time.NewTicker(answerEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		for _, d := range a.unready() {
			patch := fmt.Sprintf(`{"status":{"appliedDeploymentID":%q,"ready":true,"nonModified":true,"display":{"state":"Ready"}}}`, d.Spec.DeploymentID)
			_ = to.Status().Patch(ctx, d, client.RawPatch(types.MergePatchType, []byte(patch))) // the next tick tries again
		}
	}
}

func (a *agents) unready() []*fleet.BundleDeployment {
	a.mu.Lock()
	defer a.mu.Unlock()
	var unready []*fleet.BundleDeployment
	for _, d := range a.known {
		if !isReady(d) {
			unready = append(unready, d.DeepCopy())
		}
	}
	return unready
}

// settle waits until bundles were seen to be ready with their ids on so many clusters, and returns what was seen
// since the last time.
func (a *agents) settle(t *testing.T, ids map[string]string, clusters int) (worst int, versions map[string]int) {
	t.Helper()
	kubetest.Eventually(t, "all deployments are seen to be ready", func(context.Context) error {
		a.mu.Lock()
		defer a.mu.Unlock()
		done := 0
		for _, d := range a.known {
			if isReady(d) && d.Spec.DeploymentID == ids[d.Name] {
				done++
			}
		}
		if want := len(ids) * clusters; done != want {
			return fmt.Errorf("%d of %d", done, want)
		}
		worst, versions = a.worst, a.versions
		a.worst, a.versions = 0, map[string]int{}
		return nil
	})
	return worst, versions
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

// replica is one of several. The lock keeps a test and who keeps the replica running from starting it both.
type replica struct {
	*process.Process
	mu   sync.Mutex
	down bool // by the test
}

// end has the replica end, and stay so until it is begun.
func (r *replica) end(how func(*process.Process) error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = true
	return how(r.Process)
}

// begin starts the replica, unless it runs.
func (r *replica) begin() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down = false
	return r.revive()
}

// keep starts the replica whenever it has ended by itself.
func (r *replica) keep() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.down {
		return nil
	}
	return r.revive()
}

func (r *replica) revive() error {
	if r.Running() {
		return nil
	}
	return r.Start()
}

// pair is two replicas that roll bundles out one cluster at a time.
type pair struct {
	*world
	replicas []*replica
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
		hub := p.hub(fmt.Sprintf("replica-%d", i), p.account.Kubeconfig, election, args...)
		p.replicas = append(p.replicas, &replica{Process: hub})
	}
	for _, name := range names {
		p.beat(name)
	}
	p.ids = p.rolledOut(p.bundles, pairClusters, nil)
	p.agents.settle(t, p.ids, pairClusters)
	return p
}

// keepRunning does what a Deployment does: a leader that could not renew its lease in time, as on a busy machine or
// after a pause, ends and is started again.
func (p *pair) keepRunning() {
	ctx, cancel := context.WithCancel(p.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		ticker := time.NewTicker(answerEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			for _, replica := range p.replicas {
				if err := replica.keep(); err != nil {
					p.t.Error(err)
				}
			}
		}
	})
	p.t.Cleanup(func() { cancel(); running.Wait() })
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

// finish waits for the end of the rollout and looks at what came of it: one change of its version for each
// deployment, one cluster at a time, and few writes.
func (p *pair) finish() {
	p.t.Helper()
	p.ids = p.rolledOut(p.bundles, pairClusters, p.ids)
	worst, versions := p.agents.settle(p.t, p.ids, pairClusters)
	if worst > 1 {
		p.t.Errorf("%d clusters changed at once, maxUnavailable is 1", worst)
	}
	pairs := len(p.bundles) * pairClusters
	if len(versions) != pairs {
		p.t.Errorf("%d deployments got another version, want %d", len(versions), pairs)
	}
	for key, changes := range versions {
		if changes != 1 {
			p.t.Errorf("%s got %d versions, want one", key, changes)
		}
	}
	// What a replica asked for while it died may be there although nobody was told so: the versions above
	// were seen, whoever wrote them. What is counted here is what the API server said it did.
	done, unknown := 0, 0
	for _, write := range p.writesSince(p.before) {
		if write.Resource != "bundledeployments" || write.Subresource != "" || !strings.HasPrefix(write.Namespace, "cluster-"+p.namespace) {
			continue
		}
		switch {
		case writes.OutcomeUnknown(write.Request):
			unknown++
		case writes.CarriedOut(write.Request):
			done++
		default:
			continue
		}
		if write.Verb == "delete" || write.Verb == "create" {
			p.t.Errorf("written: %s", write)
		}
	}
	// Staged in one write, let go in another; a replica may die between a write and knowing of it.
	if most := 2*pairs + len(p.bundles); done > most {
		p.t.Errorf("%d deployments written %d times, want at most %d", pairs, done, most)
	}
	p.t.Logf("%d writes for %d deployments and %d of unknown outcome, at most %d clusters unavailable", done, pairs, unknown, worst)
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
			text := logOf(replica.Process)
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
	p.keepRunning()
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
		if err := p.replicas[leader].end(how.ending); err != nil {
			t.Fatal(err)
		}
		p.finish()
		if err := p.replicas[leader].begin(); err != nil {
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

// shares waits until so many holders have all shards, each as many as the others.
func (p *pair) shares(table string, holders int) {
	p.t.Helper()
	const all = 8
	kubetest.Eventually(p.t, fmt.Sprintf("%d replicas share the work", holders), func(ctx context.Context) error {
		lease, err := p.cluster.Clients().CoordinationV1().Leases(systemNamespace).Get(ctx, table, metav1.GetOptions{})
		if err != nil {
			return err
		}
		shares := map[string]int{}
		for _, holder := range lease.Annotations {
			shares[holder]++
		}
		even := len(shares) == holders
		for _, share := range shares {
			even = even && share == all/holders
		}
		if !even {
			return fmt.Errorf("shares %v", shares)
		}
		return nil
	})
}

// Two replicas share the work. One dies, is asked to end, or is stopped and goes on: the other takes its share
// over in the middle of the rollouts, nothing is written by both, and the share goes back.
func TestReplicasShareTheWork(t *testing.T) {
	p := newPair(t, "--automatic-shards=8")
	const table = "fleet-controller-shards"
	p.shares(table, 2)
	for i, ending := range []func(*process.Process) error{
		(*process.Process).Kill,
		func(r *process.Process) error { return r.Terminate(t.Context()) },
	} {
		p.begin(fmt.Sprint("version-", i))
		if err := p.replicas[i].end(ending); err != nil {
			t.Fatal(err)
		}
		p.finish()
		p.shares(table, 1)
		if err := p.replicas[i].begin(); err != nil {
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
