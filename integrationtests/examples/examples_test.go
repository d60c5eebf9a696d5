package examples

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/sources"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/stacktest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

var (
	shared = stacktest.Share(stack.Options{})
	served struct {
		once    sync.Once
		sources *sources.Sources
		err     error
	}
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	code := shared.Run(m)
	if served.sources != nil {
		if err := served.sources.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = max(code, 1)
		}
	}
	os.Exit(code)
}

// world is what the tests run in.
type world struct {
	*stack.Stack
	sources *sources.Sources
}

func getWorld(t *testing.T) *world {
	t.Helper()
	fleet := shared.Get(t)
	served.once.Do(func() {
		dir := filepath.Join(fleet.Dir(), "sources")
		if served.err = os.MkdirAll(dir, 0o755); served.err == nil {
			served.sources, served.err = sources.Serve(dir, "../../examples")
		}
	})
	if served.err != nil {
		t.Fatal(served.err)
	}
	return &world{fleet, served.sources}
}

// deploy makes a GitRepo for one example, waits until it runs on all members, and has it removed when the
// test ends.
func (w *world) deploy(t *testing.T, path string) {
	t.Helper()
	repo := &fleet.GitRepo{
		ObjectMeta: metav1.ObjectMeta{Namespace: stack.Workspace, Name: "examples"},
		Spec: fleet.GitRepoSpec{
			Repo:           w.sources.Examples.HTTPURL(),
			Branch:         sources.Branch,
			Paths:          []string{path},
			DisablePolling: true,
			Targets:        []fleet.ClusterTarget{{ClusterSelector: &metav1.LabelSelector{}}},
		},
	}
	if err := w.Client.Create(t.Context(), repo); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.remove(context.WithoutCancel(t.Context()), t, repo) })
	head, err := w.sources.Examples.Head()
	if err != nil {
		t.Fatal(err)
	}
	w.awaitReady(t, head)
}

func (w *world) awaitReady(t *testing.T, commit string) {
	t.Helper()
	kubetest.Eventually(t, "the example runs on all members", func(ctx context.Context) error {
		progress, err := w.Progress(ctx, "examples")
		if err != nil {
			return err
		}
		if missing := progress.Missing(commit, len(w.Members)); missing != "" {
			return errors.New(missing)
		}
		return nil
	})
}

// remove deletes a GitRepo and waits until nothing of it is left on the hub, which is when the agents have
// uninstalled it.
func (w *world) remove(ctx context.Context, t *testing.T, repo *fleet.GitRepo) {
	if err := w.Client.Delete(ctx, repo); err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, removePatience)
	defer cancel()
	err := stack.Await(ctx, "the example is gone", func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(repo), &fleet.GitRepo{}); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the GitRepo is there"), err)
		}
		var left fleet.BundleDeploymentList
		if err := w.Client.List(ctx, &left, client.MatchingLabels{fleet.RepoLabel: repo.Name}); err != nil {
			return err
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("%d deployments are left, one of them %s/%s", len(left.Items), left.Items[0].Namespace, left.Items[0].Name)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// get reads an object of a member.
func get[T client.Object](t *testing.T, member *stack.Member, namespace, name string, object T) T {
	t.Helper()
	if err := member.Client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, object); err != nil {
		t.Fatalf("%s: %v", member.Name, err)
	}
	return object
}
