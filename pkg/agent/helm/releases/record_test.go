package releases

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"k8s.io/client-go/rest"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/synced"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// What is noted in a release is read from it when the options are gone.
func TestRecordTellsWhatWasNoted(t *testing.T) {
	member, err := access.NewMember(&rest.Config{Host: "https://127.0.0.1:1"}, "agents", synced.New())
	if err != nil {
		t.Fatal(err)
	}
	reader := NewReader(member, Agent{Namespace: "agents"})
	for name, options := range map[string]fleet.BundleDeploymentOptions{
		"nothing":     {},
		"definitions": {DeleteCRDResources: true},
		"namespace":   {DeleteNamespace: true},
		"both":        {DeleteCRDResources: true, DeleteNamespace: true},
	} {
		annotations := map[string]string{fleet.ReleaseBundleIDAnnotation: "b", fleet.ReleaseServiceAccountAnnotation: "tenant"}
		Note(annotations, "id", options)
		record, err := reader.Record(&release.Release{
			Name: "r", Namespace: "n", Version: 3, Info: &release.Info{Status: release.StatusDeployed},
			Chart: &chart.Chart{Metadata: &chart.Metadata{Annotations: annotations}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if record.BundleID != "b" || record.DeploymentID != "id" || record.ServiceAccount != "tenant" || !record.Deployed || record.String() != "n/r:3" {
			t.Errorf("%s: record %+v", name, record)
		}
		if want := PolicyOf(options); record.Policy != want {
			t.Errorf("%s: policy %+v, want %+v", name, record.Policy, want)
		}
	}
}

// A label that the API server would refuse is left out: the release is found by its annotations then.
func TestLabelsThatDoNotFit(t *testing.T) {
	reader := NewReader(nil, Agent{Namespace: "agents", Scope: "scope"})
	if got := reader.Labels("b"); len(got) != 3 || got[bundleIDLabel] != "b" || got[agentNamespaceLabel] != "agents" || got[agentScopeLabel] != "scope" {
		t.Errorf("labels %v", got)
	}
	if got := reader.Labels(strings.Repeat("b", 64)); len(got) != 2 || got[bundleIDLabel] != "" {
		t.Errorf("labels %v", got)
	}
}
