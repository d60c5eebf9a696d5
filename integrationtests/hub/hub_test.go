package hub

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/charts"
	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

const systemNamespace = "cattle-fleet-system"

var clusters = kubetest.Share(kubetest.Options{APIOnly: true})

func TestMain(m *testing.M) {
	code := clusters.Run(m)
	hubs.stop()
	os.Exit(code)
}

// repositories counts them, for their names.
var repositories atomic.Int64

// hubs is the one fleet-controller and git server all tests of this package use.
var hubs running

type running struct {
	once sync.Once
	err  error

	dir     string
	program string
	log     string
	// metrics is the address they are served at.
	metrics string
	parent  *process.Parent
	process *process.Process
	client  client.Client
	git     *gitserver.Server
}

// hub is the running fleet-controller in the hands of one test.
type hub struct {
	*running
	t       *testing.T
	cluster *kube.Cluster
}

func getHub(t *testing.T) *hub {
	t.Helper()
	cluster := clusters.Get(t).Hub
	hubs.once.Do(func() { hubs.err = hubs.start(context.WithoutCancel(t.Context()), cluster) })
	if hubs.err != nil {
		t.Fatal(hubs.err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(hubs.log)
			t.Logf("end of the log of fleet-controller:\n%s", text[max(0, len(text)-20000):])
		}
	})
	return &hub{running: &hubs, t: t, cluster: cluster}
}

func (r *running) start(ctx context.Context, cluster *kube.Cluster) (err error) {
	if r.dir, err = os.MkdirTemp("", "fairlead-hub-"); err != nil {
		return err
	}
	programs, err := stack.BuildPrograms(ctx, os.Stderr)
	if err != nil {
		return err
	}
	r.program = programs.Controller
	if err := charts.InstallHub(ctx, cluster.Admin().Config, systemNamespace, nil); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), fleet.AddToScheme(scheme)); err != nil {
		return err
	}
	if r.client, err = client.New(cluster.Admin().Config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(r.dir, "git"), 0o700); err != nil {
		return err
	}
	if r.git, err = gitserver.Start(gitserver.Options{Dir: filepath.Join(r.dir, "git")}); err != nil {
		return err
	}
	return r.run(ctx, cluster)
}

// run starts the program with the identity of its chart.
func (r *running) run(ctx context.Context, cluster *kube.Cluster) error {
	account, err := cluster.ServiceAccount(ctx, systemNamespace, "fleet-controller")
	if err != nil {
		return err
	}
	if r.metrics, err = stack.FreeAddress(); err != nil {
		return err
	}
	r.parent = process.NewParent()
	r.log = filepath.Join(r.dir, "fleet-controller.log")
	r.process, err = r.parent.Start(process.Command{
		Name: "fleet-controller", Path: r.program, Dir: r.dir, Log: r.log,
		Args: []string{
			"--kubeconfig", account.Kubeconfig, "--cache-dir", filepath.Join(r.dir, "cache"), "--leader-elect=false",
			"--metrics-bind-address", r.metrics, "--health-probe-bind-address=0", "--listen=0", "--keep-unused-contents=15s",
		},
	})
	return err
}

func (r *running) kill() {
	if r.process != nil {
		_ = r.process.Kill()
		r.parent.Close()
	}
}

// restart ends the program and starts it anew, and returns when that has looked at every bundle: what a test waits for then
// may be as it was before.
func (h *hub) restart() {
	h.t.Helper()
	h.kill()
	if err := h.run(h.t.Context(), h.cluster); err != nil {
		h.t.Fatal(err)
	}
	kubetest.Eventually(h.t, "the new program has looked at all bundles", func(ctx context.Context) error {
		var bundles fleet.BundleList
		if err := h.client.List(ctx, &bundles); err != nil {
			return err
		}
		passes := 0
		for _, count := range h.results(`controller_runtime_reconcile_total{controller="bundle",`) {
			passes += count
		}
		if passes < len(bundles.Items) {
			return fmt.Errorf("%d passes over %d bundles", passes, len(bundles.Items))
		}
		return nil
	})
}

func (r *running) stop() {
	r.kill()
	if r.git != nil {
		_ = r.git.Close()
	}
	if r.dir != "" {
		_ = os.RemoveAll(r.dir)
	}
}

func (h *hub) create(objects ...client.Object) {
	h.t.Helper()
	for _, object := range objects {
		if err := h.client.Create(h.t.Context(), object); err != nil {
			h.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// workspace makes a namespace with clusters that carry the label env=<name>.
func (h *hub) workspace(clusterNames ...string) string {
	h.t.Helper()
	namespace := kubetest.Namespace(h.t, h.cluster)
	for _, name := range clusterNames {
		h.create(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{"env": name}}})
	}
	return namespace
}

func (h *hub) repo(files map[string]string) (*gitserver.Repo, string) {
	h.t.Helper()
	name := strings.ToLower(strings.NewReplacer("/", "-", " ", "-").Replace(h.t.Name()))
	repo, err := h.git.Repo(fmt.Sprintf("%s-%d", name, repositories.Add(1)))
	if err != nil {
		h.t.Fatal(err)
	}
	return repo, h.commit(repo, files)
}

func (h *hub) commit(repo *gitserver.Repo, files map[string]string) string {
	h.t.Helper()
	sha, err := repo.Commit(files, "change")
	if err != nil {
		h.t.Fatal(err)
	}
	return sha
}

func gitRepo(namespace, name, url string, change func(*fleet.GitRepoSpec)) *fleet.GitRepo {
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	repo.Spec = fleet.GitRepoSpec{
		Repo: url, Branch: "master",
		Targets:         []fleet.ClusterTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}},
		PollingInterval: &fleet.Duration{Duration: 1e9},
	}
	if change != nil {
		change(&repo.Spec)
	}
	return repo
}

// wait reads an object until check returns nil.
func wait[T client.Object](h *hub, object T, what string, check func(T) error) T {
	h.t.Helper()
	kubetest.Eventually(h.t, fmt.Sprintf("%T %s %s", object, object.GetName(), what), func(ctx context.Context) error {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		return check(object)
	})
	return object
}

func commitIs(sha string) func(*fleet.GitRepo) error {
	return func(repo *fleet.GitRepo) error {
		if repo.Status.Commit != sha {
			return fmt.Errorf("commit is %s, want %s; conditions %v", repo.Status.Commit, sha, repo.Status.Conditions)
		}
		return nil
	}
}

// readySays waits for a Ready condition that is False and says something.
func readySays(text string) func(*fleet.GitRepo) error {
	return func(repo *fleet.GitRepo) error {
		ready := status.Find(repo.Status.Conditions, fleet.ConditionReady)
		if ready == nil || ready.Status != corev1.ConditionFalse || !strings.Contains(ready.Message, text) {
			return fmt.Errorf("Ready is %v, want it to say %q", ready, text)
		}
		return nil
	}
}

// deployments lists the BundleDeployments of a bundle by cluster.
func (h *hub) deployments(bundle string, namespace string) map[string]fleet.BundleDeployment {
	h.t.Helper()
	var list fleet.BundleDeploymentList
	err := h.client.List(h.t.Context(), &list, client.MatchingLabels{fleet.BundleLabel: bundle, fleet.BundleNamespaceLabel: namespace})
	if err != nil {
		h.t.Fatal(err)
	}
	found := map[string]fleet.BundleDeployment{}
	for _, item := range list.Items {
		found[item.Labels[fleet.ClusterLabel]] = item
	}
	return found
}

func (h *hub) waitDeployments(bundle, namespace string, want ...string) map[string]fleet.BundleDeployment {
	h.t.Helper()
	var found map[string]fleet.BundleDeployment
	kubetest.Eventually(h.t, "deployments of "+bundle, func(context.Context) error {
		found = h.deployments(bundle, namespace)
		var have []string
		for name := range found {
			have = append(have, name)
		}
		slices.Sort(have)
		if !slices.Equal(have, want) {
			return fmt.Errorf("deployed to %v, want %v", have, want)
		}
		return nil
	})
	return found
}

// writes returns the writes of the hub's identity that the API server carried out so far.
func (h *hub) writes() []writes.Write {
	h.t.Helper()
	all, err := h.cluster.Writes()
	if err != nil {
		h.t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(w writes.Write) bool {
		return w.User != "system:serviceaccount:"+systemNamespace+":fleet-controller"
	})
}

// ctxT is short for the parameter of Eventually.
type ctxT = context.Context

// belongsTo says that a namespace is one of a cluster of a workspace.
func belongsTo(namespace, workspace string) bool {
	return strings.HasPrefix(namespace, "cluster-"+workspace+"-")
}
