package records

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/client-go/kubernetes/fake"
	clientgotesting "k8s.io/client-go/testing"

	"github.com/fairlead-dev/fairlead/pkg/fault"
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
			Metadata:  &chart.Metadata{Name: "c", Version: "1.2.3", Annotations: map[string]string{"fleet.cattle.io/deployment-id": "id"}},
			Values:    map[string]any{"one": "two"},
			Templates: []*chart.File{{Name: "templates/a", Data: noise}},
			Files:     []*chart.File{{Name: "b", Data: noise}},
			Schema:    noise,
		},
	}
	clients := fake.NewClientset()
	records := For(clients.CoreV1().Secrets("n"), nil)
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
	read, err := For(clients.CoreV1().Secrets("n"), nil).Get("r", 1)
	if err != nil {
		t.Fatal(err)
	}
	if read.Manifest != made.Manifest || read.Chart.Metadata.Annotations["fleet.cattle.io/deployment-id"] != "id" || read.Chart.Values["one"] != "two" || read.Info.Status != release.StatusDeployed {
		t.Errorf("read %+v with chart %+v", read, read.Chart)
	}
}

// A record that does not fit is not tried again, and the error says what to do; others stay what they are.
func TestRecordsThatDoNotFit(t *testing.T) {
	kind := schema.GroupKind{Kind: "Secret"}
	for name, test := range map[string]struct {
		refusal error
		wanted  bool
	}{
		"request":      {apierrors.NewRequestEntityTooLargeError("limit is 3145728"), true},
		"secret":       {apierrors.NewInvalid(kind, "s", field.ErrorList{field.TooLong(field.NewPath("data"), "", 1<<20)}), true},
		"another rule": {apierrors.NewInvalid(kind, "s", field.ErrorList{field.Required(field.NewPath("data"), "")}), false},
		"forbidden":    {apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "s", nil), false},
	} {
		clients := fake.NewClientset()
		clients.PrependReactor("create", "secrets", func(clientgotesting.Action) (bool, runtime.Object, error) { return true, nil, test.refusal })
		err := For(clients.CoreV1().Secrets("n"), nil).Create(&release.Release{Name: "r", Namespace: "n", Version: 1, Info: &release.Info{}})
		if !strings.Contains(fmt.Sprint(err), test.refusal.Error()) {
			t.Errorf("%s: %v", name, err)
		}
		explained := fault.ReasonOf(err) == "ReleaseTooLarge" && fault.ClassOf(err) == fault.Stalled && strings.Contains(fmt.Sprint(err), "split the bundle")
		if explained != test.wanted {
			t.Errorf("%s: class %s, reason %s: %v", name, fault.ClassOf(err), fault.ReasonOf(err), err)
		}
	}
}
