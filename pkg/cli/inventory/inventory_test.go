package inventory

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

const file = `apiVersion: v1
kind: List
items:
- {apiVersion: fleet.cattle.io/v1alpha1, kind: Cluster, metadata: {name: near}}
- {apiVersion: fleet.cattle.io/v1alpha1, kind: Cluster, metadata: {name: far, namespace: other}, status: {namespace: its-own}}
- {apiVersion: fleet.cattle.io/v1alpha1, kind: Cluster, metadata: {name: closed, namespace: third}}
- {apiVersion: fleet.cattle.io/v1alpha1, kind: ClusterGroup, metadata: {name: all}, spec: {selector: {}}}
- {apiVersion: fleet.cattle.io/v1alpha1, kind: BundleNamespaceMapping, metadata: {name: m}, bundleSelector: {matchLabels: {wide: "yes"}}, namespaceSelector: {matchLabels: {open: "yes"}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: other, labels: {open: "yes"}}}
- {apiVersion: v1, kind: Namespace, metadata: {name: third}}
`

func TestClustersOfAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "clusters.yaml")
	if err := os.WriteFile(name, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	known, err := Load(t.Context(), session.New(genericiooptions.NewTestIOStreamsDiscard(), session.Environment{}), name, "ws")
	if err != nil {
		t.Fatal(err)
	}
	near := names.ClusterNamespace("ws", "near")
	for name, test := range map[string]struct {
		labels map[string]string
		want   map[string]string
	}{
		"own namespace": {nil, map[string]string{"ws/near": near}},
		"mapped":        {map[string]string{"wide": "yes"}, map[string]string{"ws/near": near, "other/far": "its-own"}},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := &fleet.Bundle{}
			bundle.Namespace, bundle.Labels = "ws", test.labels
			clusters, groups, err := known.For(bundle)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, cluster := range clusters {
				got[cluster.Key()] = cluster.DeploymentNamespace
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("clusters (-want +got):\n%s", diff)
			}
			if len(groups) != 1 || groups[0].Namespace != "ws" {
				t.Errorf("groups %+v, want the one of the namespace", groups)
			}
		})
	}
}
