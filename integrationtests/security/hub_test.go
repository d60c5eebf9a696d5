package security

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/integrationtests/charts"
	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const systemNamespace = "cattle-fleet-system"

var clusters = kubetest.Share(kubetest.Options{})

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	code := clusters.Run(m)
	theHub.stop()
	os.Exit(code)
}

// theHub is the one fleet-controller all tests of this package use.
var theHub running

type running struct {
	once sync.Once
	err  error

	dir    string
	log    string
	parent *process.Parent
	// program is the running hub.
	program *process.Process
	kube    *kube.Cluster
	scheme  *runtime.Scheme
	client  client.WithWatch // the administrator's
}

// hub is the running hub in the hands of one test.
type hub struct {
	*running
	t *testing.T
}

func getHub(t *testing.T) *hub {
	t.Helper()
	cluster := clusters.Get(t).Hub
	theHub.once.Do(func() { theHub.err = theHub.start(context.WithoutCancel(t.Context()), cluster) })
	if theHub.err != nil {
		t.Fatal(theHub.err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			text, _ := os.ReadFile(theHub.log)
			t.Logf("end of the log of fleet-controller:\n%s", text[max(0, len(text)-20000):])
		}
	})
	return &hub{&theHub, t}
}

func (r *running) start(ctx context.Context, cluster *kube.Cluster) (err error) {
	r.kube = cluster
	if r.dir, err = os.MkdirTemp("", "fairlead-security-"); err != nil {
		return err
	}
	programs, err := stack.BuildPrograms(ctx, os.Stderr)
	if err != nil {
		return err
	}
	values := map[string]any{"apiServerURL": cluster.URL(), "apiServerCA": string(cluster.CA())}
	if err := charts.InstallHub(ctx, cluster.Admin().Config, systemNamespace, values); err != nil {
		return err
	}
	r.scheme = runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(r.scheme), fleet.AddToScheme(r.scheme)); err != nil {
		return err
	}
	if r.client, err = client.NewWithWatch(cluster.Admin().Config, client.Options{Scheme: r.scheme}); err != nil {
		return err
	}
	return r.run(ctx, programs.Controller)
}

// run starts the program with the identity of its chart.
func (r *running) run(ctx context.Context, path string) error {
	account, err := r.kube.ServiceAccount(ctx, systemNamespace, "fleet-controller")
	if err != nil {
		return err
	}
	r.parent = process.NewParent()
	r.log = filepath.Join(r.dir, "fleet-controller.log")
	r.program, err = r.parent.Start(process.Command{
		Name: "fleet-controller", Path: path, Dir: r.dir, Log: r.log,
		Args: []string{
			"--kubeconfig", account.Kubeconfig, "--cache-dir", filepath.Join(r.dir, "cache"), "--leader-elect=false",
			"--disable-metrics", "--health-probe-bind-address=0", "--listen=0",
		},
	})
	return err
}

func (r *running) stop() {
	if r.program != nil {
		_ = r.program.Kill()
		r.parent.Close()
	}
	if r.dir != "" {
		_ = os.RemoveAll(r.dir)
	}
}

// as returns a client with another identity.
func (h *hub) as(config *rest.Config) client.WithWatch {
	h.t.Helper()
	c, err := client.NewWithWatch(config, client.Options{Scheme: h.scheme})
	if err != nil {
		h.t.Fatal(err)
	}
	return c
}

func (h *hub) create(objects ...client.Object) {
	h.t.Helper()
	for _, object := range objects {
		if err := h.client.Create(h.t.Context(), object); err != nil {
			h.t.Fatalf("create %T %s: %v", object, object.GetName(), err)
		}
	}
}

// workspace makes a namespace whose Clusters go when the test ends.
func (h *hub) workspace() string {
	h.t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "ws-"}}
	h.create(namespace)
	h.t.Cleanup(func() {
		ctx := context.WithoutCancel(h.t.Context())
		for _, kind := range []client.Object{&fleet.Bundle{}, &fleet.Cluster{}} {
			if err := h.client.DeleteAllOf(ctx, kind, client.InNamespace(namespace.Name)); err != nil {
				h.t.Error(err)
			}
		}
		if err := h.client.Delete(ctx, namespace); err != nil {
			h.t.Error(err)
		}
	})
	return namespace.Name
}

// wait reads an object, as administrator, until it is as wanted.
func wait[T client.Object](h *hub, object T, what string, ask func(T) error) T {
	h.t.Helper()
	kubetest.Eventually(h.t, fmt.Sprintf("%T %s %s", object, object.GetName(), what), func(ctx context.Context) error {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		return ask(object)
	})
	return object
}

// gone waits until an object is not there.
func (h *hub) gone(object client.Object) {
	h.t.Helper()
	kubetest.Eventually(h.t, fmt.Sprintf("%T %s is gone", object, object.GetName()), func(ctx context.Context) error {
		err := h.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if err == nil {
			return fmt.Errorf("it is there with finalizers %v", object.GetFinalizers())
		}
		return client.IgnoreNotFound(err)
	})
}

// bundle makes a Bundle for every cluster of its namespace.
func (h *hub) bundle(namespace, name string) *fleet.Bundle {
	h.t.Helper()
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{fleet.RepoLabel: "repo"}}}
	bundle.Spec.Targets = []fleet.BundleTarget{{ClusterTarget: fleet.ClusterTarget{Name: "all", ClusterSelector: &metav1.LabelSelector{}}}}
	bundle.Spec.Resources = []fleet.BundleResource{{
		Name: "a.yaml", Content: "{apiVersion: v1, kind: ConfigMap, metadata: {name: " + name + "}}",
	}}
	h.create(bundle)
	return bundle
}

// deployment waits for a bundle's deployment in a cluster's namespace.
func (h *hub) deployment(bundle *fleet.Bundle, namespace string) *fleet.BundleDeployment {
	h.t.Helper()
	return wait(h, &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bundle.Name}}, "is there",
		func(*fleet.BundleDeployment) error { return nil })
}
