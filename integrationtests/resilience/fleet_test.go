package resilience

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/stacktest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

var (
	// Contents are collected soon and a member that is down is missed soon, so that nobody waits for it.
	shared = stacktest.Share(stack.Options{
		ControllerArgs: []string{"--keep-unused-contents=10s"}, AgentArgs: []string{"--heartbeat-interval=8s"},
	})
	git struct {
		once   sync.Once
		server *gitserver.Server
		err    error
	}
)

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	code := shared.Run(m)
	if git.server != nil {
		_ = git.server.Close()
	}
	os.Exit(code)
}

// world is a fleet with one GitRepo that follows one repository.
type world struct {
	*stack.Stack
	t      *testing.T
	name   string
	repo   *gitserver.Repo
	object *fleet.GitRepo
}

const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\ndata: {value: %q}\n"

func value(name, text string) string { return fmt.Sprintf(manifest, name, text) }

// newWorld makes a repository with the files and a GitRepo, changed as wanted, that deploys it to all members.
func newWorld(t *testing.T, name string, files map[string]string, changes ...func(*fleet.GitRepoSpec)) *world {
	t.Helper()
	w := &world{Stack: shared.Get(t), t: t, name: name}
	git.once.Do(func() {
		dir := filepath.Join(w.Dir(), "git")
		if git.err = os.MkdirAll(dir, 0o755); git.err == nil {
			git.server, git.err = gitserver.Start(gitserver.Options{Dir: dir})
		}
	})
	if git.err != nil {
		t.Fatal(git.err)
	}
	var err error
	if w.repo, err = git.server.Repo(name); err != nil {
		t.Fatal(err)
	}
	commit := w.commit(files)
	w.object = &fleet.GitRepo{
		ObjectMeta: metav1.ObjectMeta{Namespace: stack.Workspace, Name: name},
		Spec: fleet.GitRepoSpec{
			Repo: w.repo.HTTPURL(), Branch: "master",
			PollingInterval: &fleet.Duration{Duration: 1e9},
			Targets:         []fleet.ClusterTarget{{ClusterSelector: &metav1.LabelSelector{}}},
		},
	}
	for _, change := range changes {
		change(&w.object.Spec)
	}
	if err := w.Client.Create(t.Context(), w.object); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.remove)
	w.awaitReady(commit)
	return w
}

func (w *world) commit(files map[string]string) string {
	w.t.Helper()
	sha, err := w.repo.Commit(files, "change")
	if err != nil {
		w.t.Fatal(err)
	}
	return sha
}

// awaitReady waits until a commit runs on all members.
func (w *world) awaitReady(commit string) {
	w.t.Helper()
	kubetest.Eventually(w.t, w.name+" runs on all members", func(ctx context.Context) error { return w.runs(ctx, commit) })
}

// runs returns why a commit does not run on all members.
func (w *world) runs(ctx context.Context, commit string) error {
	progress, err := w.Progress(ctx, w.name)
	if err != nil {
		return err
	}
	if missing := progress.Missing(commit, len(w.Members)); missing != "" {
		return errors.New(missing)
	}
	return nil
}

// remove deletes the GitRepo and waits until members are clean again.
func (w *world) remove() {
	ctx := context.WithoutCancel(w.t.Context())
	if err := client.IgnoreNotFound(w.Client.Delete(ctx, w.object)); err != nil {
		w.t.Error(err)
		return
	}
	err := stack.Await(ctx, w.name+" is gone", func(ctx context.Context) error {
		var left fleet.BundleDeploymentList
		if err := w.Client.List(ctx, &left, client.MatchingLabels{fleet.RepoLabel: w.name}); err != nil {
			return err
		}
		if len(left.Items) > 0 {
			return fmt.Errorf("%d deployments are left", len(left.Items))
		}
		return nil
	})
	if err != nil {
		w.t.Error(err)
	}
}

// has waits until a ConfigMap of a member holds a value.
func (w *world) has(member *stack.Member, name, want string) *corev1.ConfigMap {
	w.t.Helper()
	object := &corev1.ConfigMap{}
	kubetest.Eventually(w.t, fmt.Sprintf("%s has %s=%s", member.Name, name, want), func(ctx context.Context) error {
		if err := member.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, object); err != nil {
			return err
		}
		if object.Data["value"] != want {
			return fmt.Errorf("value is %q", object.Data["value"])
		}
		return nil
	})
	return object
}

// deployment waits until the deployment of a bundle on a member passes a check.
func (w *world) deployment(bundle string, member *stack.Member, what string, check func(*fleet.BundleDeployment) error) {
	w.t.Helper()
	object := &fleet.BundleDeployment{}
	kubetest.Eventually(w.t, fmt.Sprintf("%s on %s %s", bundle, member.Name, what), func(ctx context.Context) error {
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: member.Namespace, Name: bundle}, object); err != nil {
			return err
		}
		return check(object)
	})
}

// says waits until the Ready condition of the GitRepo is False and says all of the texts.
func (w *world) says(texts ...string) {
	w.t.Helper()
	kubetest.Eventually(w.t, w.name+" says "+strings.Join(texts, ", "), func(ctx context.Context) error {
		var repo fleet.GitRepo
		if err := w.Client.Get(ctx, client.ObjectKeyFromObject(w.object), &repo); err != nil {
			return err
		}
		for _, condition := range repo.Status.Conditions {
			if condition.Type == fleet.ConditionReady && condition.Status == corev1.ConditionFalse && containsAll(condition.Message, texts) {
				return nil
			}
		}
		return fmt.Errorf("conditions %v", repo.Status.Conditions)
	})
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}
