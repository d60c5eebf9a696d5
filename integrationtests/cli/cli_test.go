package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/integrationtests/charts"
	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

var clusters = kubetest.Share(kubetest.Options{APIOnly: true})

func TestMain(m *testing.M) {
	log.SetLogger(logr.Discard())
	os.Exit(clusters.Run(m))
}

// allKinds is how many kinds the definitions have.
const allKinds = 14

// hub is the API server with our definitions, and a namespace of the test's own.
type hub struct {
	client.Client
	kube      *kube.Cluster
	namespace string
}

var prepared struct {
	once   sync.Once
	client client.Client
	err    error
}

func getHub(t *testing.T) *hub {
	t.Helper()
	cluster := clusters.Get(t).Hub
	prepared.once.Do(func() { prepared.client, prepared.err = prepare(context.WithoutCancel(t.Context()), cluster) })
	if prepared.err != nil {
		t.Fatal(prepared.err)
	}
	kubetest.Eventually(t, "all kinds are served", func(context.Context) error {
		served, err := cluster.Clients().Discovery().ServerResourcesForGroupVersion(fleet.GroupVersion.String())
		if err != nil {
			return err
		}
		kinds := map[string]bool{}
		for _, resource := range served.APIResources {
			kinds[resource.Kind] = true
		}
		if len(kinds) < allKinds {
			return fmt.Errorf("%d kinds are served, want %d", len(kinds), allKinds)
		}
		return nil
	})
	return &hub{Client: prepared.client, kube: cluster, namespace: kubetest.Namespace(t, cluster)}
}

func prepare(ctx context.Context, cluster *kube.Cluster) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), fleet.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	dir, err := charts.Dir("fleet-crd")
	if err != nil {
		return nil, err
	}
	if _, err := charts.Install(ctx, cluster.Admin().Config, dir, "fleet-crd", "cattle-fleet-system", nil); err != nil {
		return nil, err
	}
	return client.New(cluster.Admin().Config, client.Options{Scheme: scheme})
}

type outcome struct {
	code        int
	out, errOut string
}

// output is what a program has printed so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// run runs the program as the administrator, in the test's namespace.
func (h *hub) run(t *testing.T, args ...string) outcome {
	t.Helper()
	return h.runInto(t.Context(), &output{}, args...)
}

// runInto is run with an output that can be read meanwhile.
func (h *hub) runInto(ctx context.Context, out *output, args ...string) outcome {
	var errOut bytes.Buffer
	args = append([]string{"--kubeconfig", h.kube.Admin().Kubeconfig, "--namespace", h.namespace}, args...)
	code := cli.Run(ctx, args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: out, ErrOut: &errOut}, session.Environment{})
	return outcome{code, out.String(), errOut.String()}
}

func (h *hub) must(t *testing.T, args ...string) outcome {
	t.Helper()
	got := h.run(t, args...)
	if got.code != 0 {
		t.Fatalf("fleet %s: exit code %d\n%s%s", strings.Join(args, " "), got.code, got.out, got.errOut)
	}
	return got
}

func (h *hub) create(t *testing.T, objects ...client.Object) {
	t.Helper()
	for _, object := range objects {
		wanted := object.DeepCopyObject().(client.Object)
		if err := h.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		wanted.SetResourceVersion(object.GetResourceVersion())
		wanted.SetUID(object.GetUID())
		if err := h.Status().Update(t.Context(), wanted); err != nil {
			t.Fatal(err)
		}
	}
}

// repository makes a folder of files the working directory.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		write(t, dir, name, text)
	}
	t.Chdir(dir)
	return dir
}

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func wantText(t *testing.T, got, want string) {
	t.Helper()
	if !strings.Contains(got, want) {
		t.Errorf("output lacks %q:\n%s", want, got)
	}
}
