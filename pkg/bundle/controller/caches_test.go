package controller

import (
	"fmt"
	"runtime"
	"testing"

	toolscache "k8s.io/client-go/tools/cache"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// What the indexes of deployments take, beside the deployments.
func BenchmarkIndexes(b *testing.B) {
	const clusters, bundles = 1000, 20
	var all []*fleet.BundleDeployment
	for cluster := range clusters {
		for bundle := range bundles {
			deployment := &fleet.BundleDeployment{}
			deployment.Namespace, deployment.Name = fmt.Sprintf("cluster-fleet-default-c%d-0123456789ab", cluster), fmt.Sprintf("bundle-%d", bundle)
			deployment.Labels = map[string]string{fleet.BundleNamespaceLabel: "fleet-default", fleet.BundleLabel: deployment.Name}
			deployment.Spec.DeploymentID = fmt.Sprintf("s-%062d:1", bundle)
			all = append(all, deployment)
		}
	}
	taken := func(indexers toolscache.Indexers) float64 {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		store := toolscache.NewIndexer(toolscache.MetaNamespaceKeyFunc, indexers)
		for _, deployment := range all {
			if err := store.Add(deployment); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(store)
		return float64(after.HeapAlloc) - float64(before.HeapAlloc)
	}
	indexers := toolscache.Indexers{}
	for name, index := range indexesOfDeployments() {
		indexers[name] = func(object any) ([]string, error) { return index(object.(*fleet.BundleDeployment)), nil }
	}
	for b.Loop() {
		b.ReportMetric((taken(indexers)-taken(nil))/(clusters*bundles), "B/deployment")
	}
	runtime.KeepAlive(all)
}
