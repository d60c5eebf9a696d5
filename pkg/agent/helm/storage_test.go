package helm

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A release's record fits into a Secret whatever files its chart has, at every write of it, and Helm keeps the
// chart it works with. What is read later on is there: the manifest, and the chart's metadata and values.
func TestRecordsHoldNoFilesOfCharts(t *testing.T) {
	const limit = 1 << 20
	noise := make([]byte, 3*limit)
	_, _ = rand.Read(noise)
	made := &release.Release{
		Name: "r", Namespace: "n", Version: 1, Manifest: "kind: ConfigMap", Info: &release.Info{Status: release.StatusPendingInstall},
		Chart: &chart.Chart{
			Metadata:  &chart.Metadata{Name: "c", Version: "1.2.3", Annotations: map[string]string{deploymentIDAnnotation: "id"}},
			Values:    map[string]any{"one": "two"},
			Templates: []*chart.File{{Name: "templates/a", Data: noise}},
			Files:     []*chart.File{{Name: "b", Data: noise}},
			Schema:    noise,
		},
	}
	clients := fake.NewClientset()
	records := storageFor(&Identity{Clients: clients}, "n")
	check := func(when string) {
		t.Helper()
		secret, err := clients.CoreV1().Secrets("n").Get(t.Context(), keyOf(made), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if data, err := json.Marshal(secret); err != nil || len(data) > limit {
			t.Errorf("%s: the Secret has %d bytes, %v", when, len(data), err)
		}
	}
	if err := records.Create(made); err != nil {
		t.Fatal(err)
	}
	check("created")
	made.Info.Status = release.StatusDeployed
	if err := records.Update(made); err != nil {
		t.Fatal(err)
	}
	check("updated")
	if len(made.Chart.Files) != 1 || !bytes.Equal(made.Chart.Templates[0].Data, noise) {
		t.Error("Helm's chart was changed")
	}
	read, err := storageFor(&Identity{Clients: clients}, "n").Get("r", 1)
	if err != nil {
		t.Fatal(err)
	}
	if read.Manifest != made.Manifest || read.Chart.Metadata.Annotations[deploymentIDAnnotation] != "id" || read.Chart.Values["one"] != "two" || read.Info.Status != release.StatusDeployed {
		t.Errorf("read %+v with chart %+v", read, read.Chart)
	}
}
