package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/sources"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	// patience is how long anything may take before it is taken for broken.
	patience = 5 * time.Minute
	// The namespaces on members for generated objects, and for those of the floor.
	objectNamespace = "bench"
	floorNamespace  = "bench-floor"
	// never is a polling interval that does not come up.
	never = 24 * time.Hour
)

// world is the fleet with what it deploys from.
type world struct {
	*stack.Stack
	sources *sources.Sources
	// git stands before the sources' git server.
	git *gitWitness
	// members are clients without a limit of their own, in the order of Stack.Members.
	members []client.WithWatch
}

var theWorld holder

// holder makes the world once.
type holder struct {
	once  sync.Once
	world *world
	err   error
}

func getWorld(t testing.TB) *world {
	t.Helper()
	fleet := shared.Get(t)
	theWorld.once.Do(func() {
		theWorld.world = &world{Stack: fleet}
		theWorld.err = theWorld.world.open(context.WithoutCancel(t.Context()))
	})
	if theWorld.err != nil {
		t.Fatal(theWorld.err)
	}
	return theWorld.world
}

func (h *holder) close() error {
	if h.world == nil {
		return nil
	}
	if h.world.git != nil {
		h.world.git.close()
	}
	if h.world.sources == nil {
		return nil
	}
	return h.world.sources.Close()
}

func (w *world) open(ctx context.Context) error {
	dir := filepath.Join(w.Dir(), "sources")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	var err error
	if w.sources, err = sources.Serve(dir, "../../examples"); err != nil {
		return err
	}
	if w.git, err = witness(w.sources.Git.HTTPURL()); err != nil {
		return err
	}
	for _, member := range w.Members {
		c, err := client.NewWithWatch(member.Cluster.Admin().Config, client.Options{Scheme: member.Client.Scheme()})
		if err != nil {
			return err
		}
		w.members = append(w.members, c)
		for _, name := range []string{objectNamespace, floorNamespace} {
			if err := c.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
				return fmt.Errorf("create namespace %s on %s: %w", name, member.Name, err)
			}
		}
	}
	return nil
}

func (w *world) clusters() []*kube.Cluster {
	all := []*kube.Cluster{w.Hub}
	for _, member := range w.Members {
		all = append(all, member.Cluster)
	}
	return all
}

// await asks until there is no error; the test fails when that does not come.
func (w *world) await(t testing.TB, what string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	err := stack.Await(ctx, what, func(ctx context.Context) error {
		if err := w.Err(); err != nil {
			return stack.Hopeless(err)
		}
		return ask(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// quietTime is longer than any status is held back, and than a busy machine stands still.
const quietTime = 5 * time.Second

// settle waits until none of our programs has written anything but leases for a while.
func (w *world) settle(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	for {
		var last time.Time
		for _, cluster := range w.clusters() {
			for _, write := range ours(t, cluster) {
				if write.Time.After(last) {
					last = write.Time
				}
			}
		}
		if time.Since(last) > quietTime {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("the fleet does not come to rest: %v", ctx.Err())
		}
	}
}

// follower is a GitRepo that deploys a repository to all members.
type follower struct {
	w      *world
	object *fleet.GitRepo
	git    *gitserver.Repo
}

// follow makes a GitRepo that is removed when the test ends. It returns at once.
func (w *world) follow(t testing.TB, name string, git *gitserver.Repo, interval time.Duration, paths ...string) *follower {
	t.Helper()
	f := &follower{w: w, git: git}
	f.object = &fleet.GitRepo{
		ObjectMeta: metav1.ObjectMeta{Namespace: stack.Workspace, Name: name},
		Spec: fleet.GitRepoSpec{
			Repo:            w.git.through(git.HTTPURL()),
			Branch:          sources.Branch,
			Paths:           paths,
			PollingInterval: &fleet.Duration{Duration: interval},
			Targets:         []fleet.ClusterTarget{{ClusterSelector: &metav1.LabelSelector{}}},
		},
	}
	if err := w.Client.Create(t.Context(), f.object); err != nil {
		t.Fatalf("create GitRepo %s: %v", name, err)
	}
	t.Cleanup(func() {
		if err := f.remove(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return f
}

func (f *follower) awaitReady(t testing.TB, commit string) {
	t.Helper()
	f.w.await(t, f.object.Name+" runs on all members", func(ctx context.Context) error {
		progress, err := f.w.Progress(ctx, f.object.Name)
		if err != nil {
			return err
		}
		if missing := progress.Missing(commit, len(f.w.Members)); missing != "" {
			return errors.New(missing)
		}
		return nil
	})
}

// every sets how often the repository is looked at.
func (f *follower) every(t testing.TB, interval time.Duration) {
	t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"pollingInterval":%q}}`, interval))
	if err := f.w.Client.Patch(t.Context(), f.object, patch); err != nil {
		t.Fatalf("set the polling interval of %s: %v", f.object.Name, err)
	}
	generation := f.object.Generation
	f.w.await(t, "the new polling interval is heeded", func(ctx context.Context) error {
		if err := f.w.Client.Get(ctx, client.ObjectKeyFromObject(f.object), f.object); err != nil {
			return err
		}
		if f.object.Status.ObservedGeneration != generation {
			return fmt.Errorf("generation %d was seen, not %d", f.object.Status.ObservedGeneration, generation)
		}
		return nil
	})
}

func (f *follower) commit(t testing.TB, files map[string]string) string {
	t.Helper()
	commit, err := f.git.Commit(files, "A change")
	if err != nil {
		t.Fatal(err)
	}
	return commit
}

func (f *follower) announce(t testing.TB, commit string) {
	t.Helper()
	if err := f.w.Announce(t.Context(), f.object.Spec.Repo, sources.Branch, commit); err != nil {
		t.Fatal(err)
	}
}

// remove deletes the GitRepo and returns when members are clean again.
func (f *follower) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := f.w.Client.Delete(ctx, f.object); err != nil {
		return fmt.Errorf("delete GitRepo %s: %w", f.object.Name, err)
	}
	return stack.Await(ctx, f.object.Name+" is gone", func(ctx context.Context) error {
		if err := f.w.Client.Get(ctx, client.ObjectKeyFromObject(f.object), &fleet.GitRepo{}); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the GitRepo is there"), err)
		}
		var left fleet.BundleDeploymentList
		if err := f.w.Client.List(ctx, &left, client.MatchingLabels{fleet.RepoLabel: f.object.Name}); err != nil {
			return err
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("%d deployments are left", len(left.Items))
		}
		return nil
	})
}
