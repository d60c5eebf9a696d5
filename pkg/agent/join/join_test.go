package join_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/integrationtests/charts"
	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/pkg/agent/heartbeat"
	"github.com/fairlead-dev/fairlead/pkg/agent/hub"
	"github.com/fairlead-dev/fairlead/pkg/agent/identity"
	"github.com/fairlead-dev/fairlead/pkg/agent/join"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	clustercontroller "github.com/fairlead-dev/fairlead/pkg/cluster/controller"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
)

// One cluster is hub and member.
var clusters = kubetest.Share(kubetest.Options{})

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(clusters.Run(m))
}

const systemNamespace = "cattle-fleet-system"

var prepared struct {
	once sync.Once
	err  error
}

// site is a hub that runs the real controllers, and a workspace with a token.
type site struct {
	t         *testing.T
	kube      *kube.Cluster
	client    client.Client
	workspace string
	// namespace of the agent on the member.
	namespace string
}

// join registers, as often as an agent would that does not get its answer from a busy hub in time.
func (s *site) join(now time.Time) *identity.Credential {
	s.t.Helper()
	var credential *identity.Credential
	kubetest.Eventually(s.t, "the agent is registered", func(ctx context.Context) (err error) {
		if credential, err = s.joiner().Ensure(ctx, now); fault.NeedsPerson(err) {
			s.t.Fatal(err)
		}
		return err
	})
	return credential
}

func newSite(t *testing.T) *site {
	t.Helper()
	cluster := clusters.Get(t).Hub
	prepared.once.Do(func() { prepared.err = installCharts(t.Context(), cluster) })
	if prepared.err != nil {
		t.Fatal(prepared.err)
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), fleet.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(cluster.Admin().Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, kube: cluster, client: c, workspace: kubetest.Namespace(t, cluster), namespace: kubetest.Namespace(t, cluster)}
	s.runHub(scheme)
	return s
}

func installCharts(ctx context.Context, cluster *kube.Cluster) error {
	for name, values := range map[string]map[string]any{
		"fleet-crd": nil,
		"fleet":     {"apiServerURL": cluster.URL(), "apiServerCA": string(cluster.CA())},
	} {
		dir, err := charts.Dir(name)
		if err != nil {
			return err
		}
		if _, err := charts.Install(ctx, cluster.Admin().Config, dir, name, systemNamespace, values); err != nil {
			return err
		}
	}
	return nil
}

func (s *site) runHub(scheme *runtime.Scheme) {
	s.t.Helper()
	access, err := s.kube.ServiceAccount(s.t.Context(), systemNamespace, "fleet-controller")
	if err != nil {
		s.t.Fatal(err)
	}
	mgr, err := ctrl.NewManager(access.Config, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: ptr.To(true)},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	rollups, err := feed.New(mgr.GetCache(), nil, time.Now)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := mgr.Add(rollups); err != nil {
		s.t.Fatal(err)
	}
	if err := clustercontroller.Register(mgr, clustercontroller.Options{Rollups: rollups}); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- mgr.Start(ctx) }()
	s.t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			s.t.Error(err)
		}
	})
}

// offer makes a token and puts what the chart would make of it into the agent's namespace.
func (s *site) offer(name string) {
	s.t.Helper()
	ctx := s.t.Context()
	token := &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: s.workspace, Name: name}}
	if err := s.client.Create(ctx, token); err != nil {
		s.t.Fatal(err)
	}
	values := map[string]any{}
	kubetest.Eventually(s.t, "the token has its values", func(ctx context.Context) error {
		var secret corev1.Secret
		if err := s.client.Get(ctx, client.ObjectKey{Namespace: s.workspace, Name: name}, &secret); err != nil {
			return err
		}
		return yaml.Unmarshal(secret.Data["values"], &values)
	})
	data := map[string][]byte{}
	for _, key := range []string{"clusterNamespace", "apiServerURL", "apiServerCA", "token", "tokenName", "systemRegistrationNamespace"} {
		data[key] = []byte(fmt.Sprint(values[key]))
	}
	s.bootstrap(data)
}

func (s *site) bootstrap(data map[string][]byte) {
	s.t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: join.BootstrapSecret}, Data: data}
	if err := s.client.Create(s.t.Context(), secret); err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) joiner() *join.Joiner {
	return &join.Joiner{
		Member: s.kube.Clients(), Namespace: s.namespace, AgentVersion: "test", UserAgent: "test",
		Log: testr.New(s.t),
	}
}

func (s *site) exists(secret string) bool {
	s.t.Helper()
	err := s.client.Get(s.t.Context(), client.ObjectKey{Namespace: s.namespace, Name: secret}, &corev1.Secret{})
	if client.IgnoreNotFound(err) != nil {
		s.t.Fatal(err)
	}
	return err == nil
}

func list(ctx context.Context, config *rest.Config, namespace string) error {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	return c.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(namespace))
}

func TestRegistration(t *testing.T) {
	s := newSite(t)
	s.offer("token")
	credential := s.join(time.Now())
	if credential.ClusterName == "" || credential.ClusterNamespace != s.workspace || credential.DeploymentNamespace == "" {
		t.Errorf("cluster %q in %q, deployments in %q", credential.ClusterName, credential.ClusterNamespace, credential.DeploymentNamespace)
	}
	for _, secret := range []string{join.BootstrapSecret, join.RegistrationSecret} {
		if s.exists(secret) {
			t.Errorf("secret %s is left", secret)
		}
	}
	connection, err := identity.Connect(*credential, "test")
	if err != nil {
		t.Fatal(err)
	}
	// An API server learns of new rights a moment after they are stored.
	kubetest.Eventually(t, "the agent may list its deployments", func(ctx context.Context) error {
		return list(ctx, connection.Config(), credential.DeploymentNamespace)
	})
	if err := list(t.Context(), connection.Config(), s.workspace); !apierrors.IsForbidden(err) {
		t.Errorf("list deployments of others: %v, want it forbidden", err)
	}
	if _, err := hub.New(connection.Config(), credential.DeploymentNamespace, registry.Client{}); err != nil {
		t.Error(err)
	}
	again, err := s.joiner().Ensure(t.Context(), time.Now())
	if err != nil || string(again.Kubeconfig) != string(credential.Kubeconfig) {
		t.Errorf("a restart did not find the identity: %v", err)
	}

	// The certificate has ended, and somebody gave the agent a new token: same cluster, new certificate.
	s.offer("second")
	renewed := s.join(time.Now().AddDate(10, 0, 0))
	if renewed.ClusterName != credential.ClusterName || string(renewed.Kubeconfig) == string(credential.Kubeconfig) {
		t.Errorf("registered again as %q, want a new certificate of %q", renewed.ClusterName, credential.ClusterName)
	}
}

// An agent that is stopped at any moment of its registration goes on with it: there is one request.
func TestInterruptedRegistration(t *testing.T) {
	s := newSite(t)
	s.offer("token")
	for attempt := 0; ; attempt++ {
		ctx, cancel := context.WithTimeout(t.Context(), rand.N(150*time.Millisecond)+time.Duration(attempt)*20*time.Millisecond)
		_, err := s.joiner().Ensure(ctx, time.Now())
		cancel()
		if err == nil {
			break
		}
		if attempt > 200 {
			t.Fatal(err)
		}
	}
	var requests fleet.ClusterRegistrationList
	if err := s.client.List(t.Context(), &requests, client.InNamespace(s.workspace)); err != nil {
		t.Fatal(err)
	}
	if len(requests.Items) != 1 {
		t.Errorf("%d registrations were made, want one", len(requests.Items))
	}
	var members fleet.ClusterList
	if err := s.client.List(t.Context(), &members, client.InNamespace(s.workspace)); err != nil || len(members.Items) != 1 {
		t.Errorf("%d clusters, want one: %v", len(members.Items), err)
	}
}

func TestRefusedToken(t *testing.T) {
	s := newSite(t)
	s.bootstrap(map[string][]byte{
		"clusterNamespace": []byte(s.workspace), "apiServerURL": []byte(s.kube.URL()), "apiServerCA": s.kube.CA(),
		"token": []byte("no-token"), "tokenName": []byte("none"),
	})
	_, err := s.joiner().Ensure(t.Context(), time.Now())
	if fault.ClassOf(err) != fault.Stalled || fault.ReasonOf(err) != "TokenRefused" {
		t.Errorf("got %v (%s), want TokenRefused", err, fault.ClassOf(err))
	}
	empty := &join.Joiner{Member: s.kube.Clients(), Namespace: s.workspace, Log: logr.Discard()}
	if _, err := empty.Ensure(t.Context(), time.Now()); fault.ClassOf(err) != fault.Waiting {
		t.Errorf("without anything: %v, want to wait", err)
	}
}

// shifted is the wall clock, moved.
type shifted struct {
	clock.RealClock
	by atomic.Int64
}

func (s *shifted) Now() time.Time { return time.Now().Add(time.Duration(s.by.Load())) }

func TestRenewal(t *testing.T) {
	s := newSite(t)
	s.offer("token")
	credential := s.join(time.Now())
	connection, err := identity.Connect(*credential, "test")
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := credential.Certificate()
	if err != nil {
		t.Fatal(err)
	}
	moved := &shifted{}
	moved.by.Store(int64(time.Until(certificate.Leaf.NotAfter) - time.Hour))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	renewer := join.NewRenewer(s.joiner(), connection, *credential, moved)
	go func() { done <- renewer.Run(ctx) }()
	kubetest.Eventually(t, "the certificate is renewed", func(ctx context.Context) error {
		stored, err := identity.Load(ctx, s.kube.Clients(), s.namespace)
		if err == nil && string(stored.Kubeconfig) == string(credential.Kubeconfig) {
			err = errors.New("still the old one")
		}
		return err
	})
	if err := list(t.Context(), connection.Config(), credential.DeploymentNamespace); err != nil {
		t.Errorf("list deployments with the new certificate: %v", err)
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// A hub that has forgotten the agent refuses it; with a new bootstrap Secret the running agent gets a new
// identity.
func TestRefusedIdentity(t *testing.T) {
	s := newSite(t)
	s.offer("token")
	credential := s.join(time.Now())
	connection, err := identity.Connect(*credential, "test")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	renewer := join.NewRenewer(s.joiner(), connection, *credential, clock.RealClock{})
	go func() { done <- renewer.Run(ctx) }()
	var member fleet.Cluster
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: s.workspace, Name: credential.ClusterName}, &member); err != nil {
		t.Fatal(err)
	}
	if err := s.client.Delete(t.Context(), &member); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the cluster is gone and refuses the agent", func(ctx context.Context) error {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(&member), &member)
		if !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("still there"), err)
		}
		if err := list(ctx, connection.Config(), credential.DeploymentNamespace); !apierrors.IsForbidden(err) {
			return errors.Join(errors.New("not refused"), err)
		}
		return nil
	})
	s.offer("second")
	renewer.Refused()
	kubetest.Eventually(t, "the agent has an identity again", func(ctx context.Context) error {
		return list(ctx, connection.Config(), credential.DeploymentNamespace)
	})
	cancel()
	if err := <-done; err != nil && !errors.Is(err, join.ErrMoved) {
		t.Error(err)
	}
}

func TestRenewAt(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	day := 24 * time.Hour
	for name, test := range map[string]struct {
		life     time.Duration
		fraction float64
		want     time.Duration
	}{
		"ninety days":        {90 * day, 0, 60 * day},
		"a year":             {360 * day, 0, 330 * day},
		"an hour":            {time.Hour, 0, 40 * time.Minute},
		"ninety days, early": {90 * day, 1, 51 * day},
	} {
		t.Run(name, func(t *testing.T) {
			at := join.RenewAt(&x509.Certificate{NotBefore: start, NotAfter: start.Add(test.life)}, test.fraction)
			if got := at.Sub(start); got != test.want {
				t.Errorf("renewed after %s, want %s", got, test.want)
			}
		})
	}
}

func TestHeartbeat(t *testing.T) {
	s := newSite(t)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	beat := &heartbeat.Sender{
		Hub: s.kube.Clients(), Namespace: s.namespace, Holder: "pod", Interval: 100 * time.Millisecond,
		AgentVersion: "v1", AgentNamespace: "ns", KubernetesVersion: func() string { return "v1.37" },
		Clock: clock.RealClock{}, Log: testr.New(t),
	}
	go func() {
		defer close(done)
		beat.Run(ctx)
	}()
	var first time.Time
	kubetest.Eventually(t, "the lease was renewed twice", func(ctx context.Context) error {
		lease, err := s.kube.Clients().CoordinationV1().Leases(s.namespace).Get(ctx, cluster.LeaseName, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if lease.Annotations["fleet.cattle.io/agent-version"] != "v1" || *lease.Spec.HolderIdentity != "pod" || *lease.Spec.LeaseDurationSeconds != 1 {
			return fmt.Errorf("lease %+v", lease)
		}
		if first.IsZero() {
			first = lease.Spec.RenewTime.Time
		}
		if !lease.Spec.RenewTime.After(first) {
			return errors.New("renewed once")
		}
		return nil
	})
	cancel()
	<-done
}
