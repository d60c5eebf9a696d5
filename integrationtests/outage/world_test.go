package outage

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/charts"
	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	systemNamespace = "cattle-fleet-system"
	hubUser         = "system:serviceaccount:" + systemNamespace + ":fleet-controller"
)

var (
	clusters = kubetest.Share(kubetest.Options{APIOnly: true})
	shared   installation
)

func TestMain(m *testing.M) { os.Exit(clusters.Run(m)) }

// installation is what all tests of this package use: a control plane with the charts, and the program.
type installation struct {
	once    sync.Once
	err     error
	program string
	client  client.WithWatch
	account kube.Access
}

func (i *installation) install(ctx context.Context, cluster *kube.Cluster) (err error) {
	programs, err := stack.BuildPrograms(ctx, os.Stderr)
	if err != nil {
		return err
	}
	i.program = programs.Controller
	if err := charts.InstallHub(ctx, cluster.Admin().Config, systemNamespace, chartValues); err != nil {
		return err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), fleet.AddToScheme(scheme)); err != nil {
		return err
	}
	config := cluster.Admin().Config
	if i.client, err = client.NewWithWatch(config, client.Options{Scheme: scheme}); err != nil {
		return err
	}
	i.account, err = cluster.ServiceAccount(ctx, systemNamespace, "fleet-controller")
	return err
}

// chartValues give the hub's identity what it needs in every mode.
var chartValues = map[string]any{
	"controller": map[string]any{"automaticShards": 8, "replicas": 2},
	"shards":     []any{map[string]any{"id": "blue"}},
}

// world is the installation in the hands of one test, with a workspace of its own.
type world struct {
	*installation
	t         *testing.T
	cluster   *kube.Cluster
	parent    *process.Parent
	namespace string
}

func newWorld(t *testing.T, clusterNames ...string) *world {
	t.Helper()
	cluster := clusters.Get(t).Hub
	shared.once.Do(func() { shared.err = shared.install(context.WithoutCancel(t.Context()), cluster) })
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	w := &world{installation: &shared, t: t, cluster: cluster, parent: process.NewParent(), namespace: kubetest.Namespace(t, cluster)}
	t.Cleanup(w.parent.Close)
	for _, name := range clusterNames {
		w.create(&fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"env": name}}})
	}
	return w
}

func (w *world) create(objects ...client.Object) {
	w.t.Helper()
	for _, object := range objects {
		if err := w.client.Create(w.t.Context(), object); err != nil {
			w.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// hub starts the program with the identity of its chart; it is killed when the test ends.
func (w *world) hub(name, kubeconfig string, env []string, args ...string) *process.Process {
	w.t.Helper()
	log := filepath.Join(w.t.TempDir(), name+".log")
	hub, err := w.parent.Start(process.Command{
		Name: name, Path: w.program, Dir: w.t.TempDir(), Log: log, Env: env,
		Args: append([]string{
			"--kubeconfig", kubeconfig, "--namespace", systemNamespace, "--cache-dir", w.t.TempDir(),
			"--disable-metrics", "--health-probe-bind-address=0", "--listen=0",
		}, args...),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = hub.Kill()
		if w.t.Failed() {
			text, _ := os.ReadFile(log)
			w.t.Logf("end of the log of %s:\n%s", name, text[max(0, len(text)-12000):])
		}
	})
	return hub
}

func logOf(hub *process.Process) string {
	text, _ := os.ReadFile(hub.Log()) // not there yet
	return string(text)
}

// bundle makes a bundle with one ConfigMap, of a version, for what targets name.
func (w *world) bundle(name, version string, targets ...fleet.ClusterTarget) *fleet.Bundle {
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	for _, target := range targets {
		bundle.Spec.Targets = append(bundle.Spec.Targets, fleet.BundleTarget{ClusterTarget: target})
	}
	bundle.Spec.Resources = resources(name, version)
	return bundle
}

func resources(name, version string) []fleet.BundleResource {
	const manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: default}\ndata: {value: %q}\n"
	return []fleet.BundleResource{{Name: "one.yaml", Content: fmt.Sprintf(manifest, name, version)}}
}

// change gives a bundle other files, as a person does, and one more target, which is no cluster's, so that no guard
// against deletions that no person asked for holds anything back.
func (w *world) change(name, version string) {
	w.t.Helper()
	const edit = `[{"op":"replace","path":"/spec/resources/0/content","value":%q},{"op":"add","path":"/spec/targets/-","value":{"clusterName":%q}}]`
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	patch := client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, edit, resources(name, version)[0].Content, "nobody-"+version))
	if err := w.client.Patch(w.t.Context(), bundle, patch); err != nil {
		w.t.Fatalf("change bundle %s: %v", name, err)
	}
}

// deployments lists those of the workspace's bundle by cluster.
func (w *world) deployments(ctx context.Context, bundle string) (map[string]fleet.BundleDeployment, error) {
	var list fleet.BundleDeploymentList
	err := w.client.List(ctx, &list, client.MatchingLabels{fleet.BundleLabel: bundle, fleet.BundleNamespaceLabel: w.namespace})
	found := map[string]fleet.BundleDeployment{}
	for _, item := range list.Items {
		found[item.Labels[fleet.ClusterLabel]] = item
	}
	return found, err
}

// awaitDeployed waits until a bundle is deployed to so many clusters, all with one id that starts otherwise
// than not, and returns the id.
func (w *world) awaitDeployed(bundle string, count int, not string) string {
	w.t.Helper()
	var id string
	kubetest.Eventually(w.t, fmt.Sprintf("%s is deployed to %d clusters", bundle, count), func(ctx context.Context) error {
		found, err := w.deployments(ctx, bundle)
		if err != nil {
			return err
		}
		ids := map[string]bool{}
		for _, deployment := range found {
			id = deployment.Spec.DeploymentID
			ids[id] = true
		}
		if len(found) != count || len(ids) > 1 || id == not {
			stored := &fleet.Bundle{}
			err := w.client.Get(ctx, client.ObjectKey{Namespace: w.namespace, Name: bundle}, stored)
			return fmt.Errorf("%d deployments with ids %v, not to be %s; generation %d, observed %d, %v, %w",
				len(found), ids, not, stored.Generation, stored.Status.ObservedGeneration, stored.Status.Conditions, err)
		}
		return nil
	})
	return id
}

// uids lists what must not be deleted: everything that the hub makes, in all namespaces, and its sources, but
// for contents that nothing refers to any more.
func (w *world) uids() map[string]string {
	w.t.Helper()
	var deployments fleet.BundleDeploymentList
	if err := w.client.List(w.t.Context(), &deployments); err != nil {
		w.t.Fatal(err)
	}
	used := map[string]bool{}
	for i := range deployments.Items {
		used[deployments.Items[i].Labels[fleet.ContentLabel]] = true
	}
	found := map[string]string{}
	for _, kind := range []string{"Bundle", "BundleDeployment", "Content", "Cluster", "ClusterGroup", "GitRepo", "Secret", "Namespace"} {
		list := &metav1.PartialObjectMetadataList{}
		list.APIVersion, list.Kind = fleet.GroupVersion.String(), kind+"List"
		if kind == "Secret" || kind == "Namespace" {
			list.APIVersion = "v1"
		}
		if err := w.client.List(w.t.Context(), list); err != nil {
			w.t.Fatal(err)
		}
		for i := range list.Items {
			item := &list.Items[i]
			if item.DeletionTimestamp.IsZero() && (kind != "Content" || used[item.Name]) {
				found[fmt.Sprintf("%s %s/%s", kind, item.Namespace, item.Name)] = string(item.UID)
			}
		}
	}
	return found
}

// writesSince returns the hub's writes after the first n, without leases.
func (w *world) writesSince(n int) []writes.Write {
	w.t.Helper()
	all, err := w.cluster.Writes()
	if err != nil {
		w.t.Fatal(err)
	}
	own := slices.DeleteFunc(all, func(write writes.Write) bool {
		return write.User != hubUser || !writes.NotLeases(write.Request)
	})
	return own[min(n, len(own)):]
}

// nothingDeleted compares what exists with what existed, and looks at what the hub did since.
func (w *world) nothingDeleted(before map[string]string, from int) {
	w.t.Helper()
	now := w.uids()
	for what, uid := range before {
		if now[what] != uid && !strings.HasPrefix(what, "Content ") {
			w.t.Errorf("%s with uid %s is gone; now %q", what, uid, now[what])
		}
	}
	for _, write := range w.writesSince(from) {
		_, inUse := before["Content /"+write.Name]
		if strings.HasPrefix(write.Verb, "delete") && !writes.Refused(write.Request) && (write.Resource != "contents" || inUse) {
			w.t.Errorf("the hub deleted: %s", write)
		}
	}
}
