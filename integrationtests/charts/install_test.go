package charts

import (
	"fmt"
	"os"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
)

var clusters = kubetest.Share(kubetest.Options{APIOnly: true})

func TestMain(m *testing.M) { os.Exit(clusters.Run(m)) }

// An API server checks each object against its own schemas, where a misspelt or misplaced field that a
// renderer lets pass is an error.
func TestAPIServerTakesEveryObject(t *testing.T) {
	hub := clusters.Get(t).Hub
	for chart, values := range releases {
		t.Run(chart, func(t *testing.T) {
			manifest, err := Render(dir(t, chart), chart, systemNamespace, values)
			if err != nil {
				t.Fatal(err)
			}
			namespace := fmt.Sprintf("apiVersion: v1\nkind: Namespace\nmetadata: {name: %s}\n", systemNamespace)
			if _, err := hub.Kubectl(t.Context(), strings.NewReader(namespace), "apply", "-f", "-"); err != nil {
				t.Fatal(err)
			}
			_, err = hub.Kubectl(t.Context(), strings.NewReader(manifest), "apply", "--server-side", "--dry-run=server", "--validate=strict", "-f", "-")
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestInstallAndUpgrade(t *testing.T) {
	hub := clusters.Get(t).Hub
	config := hub.Admin().Config
	for _, chart := range []string{"fleet-crd", "fleet", "fleet-agent"} {
		first, err := Install(t.Context(), config, dir(t, chart), chart, systemNamespace, releases[chart])
		if err != nil {
			t.Fatal(err)
		}
		second, err := Install(t.Context(), config, dir(t, chart), chart, systemNamespace, releases[chart])
		if err != nil {
			t.Fatal(err)
		}
		if first.Version != 1 || second.Version != 2 {
			t.Errorf("%s: revisions %d and %d", chart, first.Version, second.Version)
		}
		if first.Manifest != second.Manifest {
			t.Errorf("%s: an upgrade without a change changes the manifest", chart)
		}
	}
	clients := hub.Clients()
	for _, name := range []string{"fleet-controller", "fleet-agent"} {
		if _, err := clients.AppsV1().Deployments(systemNamespace).Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	if _, err := clients.CoreV1().Secrets(systemNamespace).Get(t.Context(), "fleet-agent-bootstrap", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := clients.CoreV1().Namespaces().Get(t.Context(), "cattle-fleet-clusters-system", metav1.GetOptions{}); apierrors.IsNotFound(err) {
		t.Error("there is no namespace for credentials")
	}
}
