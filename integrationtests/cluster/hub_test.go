package cluster

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/fairlead-dev/fairlead/integrationtests/charts"
	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster/controller"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
)

const systemNamespace = "cattle-fleet-system"

var clusters = kubetest.Share(kubetest.Options{})

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(clusters.Run(m))
}

// hub is the API server with the charts installed.
type hub struct {
	kube   *kube.Cluster
	client client.Client // the administrator's
	scheme *runtime.Scheme
}

var prepared struct {
	once sync.Once
	hub  *hub
	err  error
}

func getHub(t *testing.T) *hub {
	t.Helper()
	cluster := clusters.Get(t).Hub
	prepared.once.Do(func() { prepared.hub, prepared.err = prepare(t.Context(), cluster) })
	if prepared.err != nil {
		t.Fatal(prepared.err)
	}
	return prepared.hub
}

func prepare(ctx context.Context, cluster *kube.Cluster) (*hub, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), fleet.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	admin := cluster.Admin().Config
	values := map[string]any{"apiServerURL": cluster.URL(), "apiServerCA": string(cluster.CA())}
	if err := charts.InstallHub(ctx, admin, systemNamespace, values); err != nil {
		return nil, err
	}
	c, err := client.New(admin, client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	return &hub{kube: cluster, client: c, scheme: scheme}, nil
}

// clock is the wall clock and what a test adds to it.
type clock struct{ offset atomic.Int64 }

func (c *clock) now() time.Time          { return time.Now().Add(time.Duration(c.offset.Load())) }
func (c *clock) advance(d time.Duration) { c.offset.Add(int64(d)) }

// run starts the controllers, with the identity from the chart, until the test ends.
func (h *hub) run(t *testing.T, options controller.Options) *clock {
	t.Helper()
	access, err := h.kube.ServiceAccount(t.Context(), systemNamespace, "fleet-controller")
	if err != nil {
		t.Fatal(err)
	}
	moved := &clock{}
	options.Now = moved.now
	mgr, err := ctrl.NewManager(access.Config, ctrl.Options{
		Scheme:     h.scheme,
		Metrics:    metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		t.Fatal(err)
	}
	rollups, err := feed.New(mgr.GetCache(), nil, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if err := mgr.Add(rollups); err != nil {
		t.Fatal(err)
	}
	options.Rollups = rollups
	if err := controller.Register(mgr, options); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("manager: %v", err)
		}
	})
	return moved
}

// as returns a client for another identity.
func (h *hub) as(t *testing.T, config *rest.Config) client.Client {
	t.Helper()
	c, err := client.New(config, client.Options{Scheme: h.scheme})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// workspace makes a namespace whose Clusters are deleted while the controllers still run.
func (h *hub) workspace(t *testing.T) string {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "ws-"}}
	if err := h.client.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := h.client.DeleteAllOf(ctx, &fleet.Cluster{}, client.InNamespace(namespace.Name)); err != nil {
			t.Error(err)
		}
		if err := h.client.Delete(ctx, namespace); err != nil {
			t.Error(err)
		}
	})
	return namespace.Name
}

func (h *hub) create(t *testing.T, object client.Object) {
	t.Helper()
	if err := h.client.Create(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

// wait reads an object until it is as wanted.
func wait[T client.Object](t *testing.T, h *hub, object T, what string, ask func(T) error) T {
	t.Helper()
	kubetest.Eventually(t, fmt.Sprintf("%T %s %s", object, object.GetName(), what), func(ctx context.Context) error {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		return ask(object)
	})
	return object
}

func newCluster(namespace, name, clientID string) *fleet.Cluster {
	return &fleet.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec:       fleet.ClusterSpec{ClientID: clientID},
	}
}

func hasNamespace(c *fleet.Cluster) error {
	if c.Status.Namespace == "" {
		return fmt.Errorf("no namespace in status %+v", c.Status)
	}
	return nil
}
