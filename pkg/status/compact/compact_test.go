package compact

import (
	"fmt"
	"runtime"
	"sync"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// deployment of a bundle on a cluster, decoded on its own: it shares no text with others.
func deployment(bundle, cluster int) *fleet.BundleDeployment {
	text := func(format string, args ...any) string { return fmt.Sprintf(format, args...) }
	name := text("bundle-%d", bundle)
	d := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: text("cluster-fleet-default-cluster-%04d-0123456789ab", cluster), Name: name, UID: "u", ResourceVersion: text("%d", cluster),
		ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "fleet-controller"}},
		Labels: map[string]string{
			text(fleet.BundleLabel): text("%s", name), text(fleet.BundleNamespaceLabel): text("fleet-default"),
			text(fleet.ClusterLabel): text("cluster-%04d", cluster), text(fleet.ClusterNamespaceLabel): text("fleet-default"),
			text(fleet.ManagedLabel): text("true"), text(fleet.ContentLabel): text("s-%061d", bundle),
		},
	}}
	options := func() fleet.BundleDeploymentOptions {
		return fleet.BundleDeploymentOptions{DefaultNamespace: text("apps"), Helm: &fleet.HelmOptions{
			Chart: text("chart"), ReleaseName: name, ValuesFiles: []string{text("a.yaml"), text("b.yaml")},
		}}
	}
	d.Spec.DeploymentID = text("s-%061d:%064d", bundle, 1)
	d.Spec.StagedDeploymentID, d.Spec.Options, d.Spec.StagedOptions = text("%s", d.Spec.DeploymentID), options(), options()
	d.Status.AppliedDeploymentID, d.Status.Ready, d.Status.NonModified = text("%s", d.Spec.DeploymentID), true, true
	for i := range 4 {
		d.Status.Conditions = append(d.Status.Conditions, fleet.Condition{Type: text("Condition%d", i), Status: "True", LastUpdateTime: text("2026-01-01T00:00:%02dZ", cluster%60)})
	}
	for i := range 10 {
		d.Status.Resources = append(d.Status.Resources, fleet.BundleDeploymentResource{
			Kind: text("ConfigMap"), APIVersion: text("v1"), Namespace: text("apps"), Name: text("%s-%d", name, i),
			CreatedAt: metav1.Unix(int64(cluster), 0),
		})
	}
	return d
}

// Nothing is lost but what the hub does not look at.
func TestNothingIsLost(t *testing.T) {
	var shared Deployments
	for bundle := range 3 {
		for cluster := range 3 {
			got, want := deployment(bundle, cluster), deployment(bundle, cluster)
			if bundle == 2 { // the same ids with other options, as after a change that is in no id
				got.Spec.Options.CorrectDrift = &fleet.CorrectDrift{Enabled: cluster%2 == 0}
				want.Spec.Options.CorrectDrift = &fleet.CorrectDrift{Enabled: cluster%2 == 0}
			}
			shared.Compact(got)
			if tally.Trim(got).State != tally.Trim(want).State {
				t.Error("the roll-up counts something else")
			}
			want.ManagedFields = nil
			for i := range want.Status.Resources {
				want.Status.Resources[i].CreatedAt = metav1.Time{}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("bundle %d on cluster %d: %s", bundle, cluster, diff)
			}
		}
	}
	shared.Compact(&fleet.BundleDeployment{})
}

func TestEqualPartsAreHeldOnce(t *testing.T) {
	var shared Deployments
	a, b := deployment(1, 1), deployment(1, 2)
	shared.Compact(a)
	shared.Compact(b)
	if a.Spec.Options.Helm != b.Spec.Options.Helm || a.Spec.Options.Helm != a.Spec.StagedOptions.Helm {
		t.Error("equal options are held twice")
	}
	if &a.Status.Resources[0] != &b.Status.Resources[0] {
		t.Error("equal lists of objects are held twice")
	}
	if unsafe.StringData(a.Labels[fleet.BundleLabel]) != unsafe.StringData(b.Labels[fleet.BundleLabel]) {
		t.Error("equal labels are held twice")
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	var shared Deployments
	var group sync.WaitGroup
	for part := range 2 {
		group.Go(func() {
			for i := range kept / 2 * 3 / 2 {
				shared.Compact(deployment(part*kept+i, 0))
			}
		})
	}
	group.Wait()
	if len(shared.options) > kept || len(shared.resources) > kept {
		t.Errorf("%d options and %d lists are remembered", len(shared.options), len(shared.resources))
	}
}

// BenchmarkMemory says what a pair takes in a cache.
func BenchmarkMemory(b *testing.B) {
	for name, compacted := range map[string]bool{"as decoded": false, "compact": true} {
		b.Run(name, func(b *testing.B) {
			const bundles, clusters = 20, 500
			for b.Loop() {
				var shared Deployments
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				all := make([]*fleet.BundleDeployment, 0, bundles*clusters)
				for bundle := range bundles {
					for cluster := range clusters {
						d := deployment(bundle, cluster)
						d.ManagedFields = nil
						if compacted {
							shared.Compact(d)
						}
						all = append(all, d)
					}
				}
				runtime.GC()
				runtime.ReadMemStats(&after)
				b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(all)), "B/pair")
			}
		})
	}
}
