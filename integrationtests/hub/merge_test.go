package hub

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/names"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// merging is a repository of four bundles on two clusters whose agents the test plays.
type merging struct {
	*hub
	namespace string
	repo      *gitserver.Repo
	object    *fleet.GitRepo
}

const mergedBundles = 4

func (m *merging) push(text string) {
	m.t.Helper()
	commit := m.commit(m.repo, mergedFiles(text))
	wait(m.hub, m.object, "has the commit", commitIs(commit))
}

func mergedFiles(text string) map[string]string {
	files := map[string]string{}
	for i := range mergedBundles {
		files[fmt.Sprintf("app%d/one.yaml", i)] = fmt.Sprintf(configMap, text)
		files[fmt.Sprintf("app%d/fleet.yaml", i)] = "defaultNamespace: one\n" +
			"targetCustomizations:\n- name: kept\n  clusterSelector: {matchLabels: {kept: \"yes\"}}\n  keepResources: true\n"
	}
	return files
}

// speaks renews the lease of a cluster's agent, with a version of the protocol.
func (m *merging) speaks(name string, protocol int) {
	m.t.Helper()
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: names.ClusterNamespace(m.namespace, name), Name: cluster.LeaseName}}
	patch := fmt.Sprintf(`{"metadata":{"annotations":{"fleet.cattle.io/protocol-version":"%d"}},"spec":{"leaseDurationSeconds":3600,"renewTime":%q}}`,
		protocol, metav1.NowMicro().UTC().Format(metav1.RFC3339Micro))
	kubetest.Eventually(m.t, name+" has its lease", func(ctx context.Context) error {
		return m.client.Patch(ctx, lease, client.RawPatch(types.MergePatchType, []byte(patch)))
	})
	wait(m.hub, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name}}, "is heard of", func(c *fleet.Cluster) error {
		if c.Status.Versions == nil || c.Status.Versions.Protocol != protocol {
			return fmt.Errorf("versions %+v", c.Status.Versions)
		}
		return nil
	})
}

// objects are those of a cluster.
func (m *merging) objects(name string) []fleet.BundleDeployment {
	m.t.Helper()
	var list fleet.BundleDeploymentList
	if err := m.client.List(m.t.Context(), &list, client.InNamespace(names.ClusterNamespace(m.namespace, name))); err != nil {
		m.t.Fatal(err)
	}
	return list.Items
}

// delivered waits until a cluster has so many merged objects and others, and every bundle once in the end.
func (m *merging) delivered(name string, merged, alone int) {
	m.t.Helper()
	kubetest.Eventually(m.t, fmt.Sprintf("%s has %d merged objects and %d others", name, merged, alone), func(context.Context) error {
		objects := m.objects(name)
		got := 0
		for i := range objects {
			if merge.IsMerged(&objects[i]) {
				got++
			}
		}
		if all := len(merge.ExplodeAll(objects)); got != merged || len(objects)-got != alone || all != mergedBundles {
			return fmt.Errorf("%d and %d, with %d deployments", got, len(objects)-got, all)
		}
		return nil
	})
}

// reports lets the agent of a cluster report what it is told, wherever it is told it. One of protocol 1 does not look into
// merged objects.
func (m *merging) reports(name string, protocol int) {
	m.t.Helper()
	objects := m.objects(name)
	for i := range objects {
		object := &objects[i]
		before := object.DeepCopy()
		if !merge.IsMerged(object) {
			object.Status = ready(object.Spec.DeploymentID)
		}
		for part, told := range object.Spec.Parts {
			if protocol < merge.Protocol {
				break
			}
			if object.Status.Parts == nil {
				object.Status.Parts = map[string]fleet.DeploymentPartStatus{}
			}
			object.Status.Parts[part] = ready(told.Spec.DeploymentID).DeploymentPartStatus
		}
		if err := m.client.Status().Patch(m.t.Context(), object, client.MergeFrom(before)); err != nil {
			m.t.Fatal(err)
		}
	}
}

func ready(id string) fleet.BundleDeploymentStatus {
	return fleet.BundleDeploymentStatus{DeploymentPartStatus: fleet.DeploymentPartStatus{
		AppliedDeploymentID: id, Ready: true, NonModified: true,
		Conditions: []fleet.Condition{{Type: fleet.ConditionDeployed, Status: corev1.ConditionTrue}},
	}}
}

// counted waits until every bundle counts so many ready clusters of two, and says about merging what is wanted.
func (m *merging) counted(readyClusters int, merged corev1.ConditionStatus, says string) {
	m.t.Helper()
	for i := range mergedBundles {
		bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: fmt.Sprintf("shop-app%d", i)}}
		wait(m.hub, bundle, "is counted", func(b *fleet.Bundle) error {
			var err error
			if b.Status.Summary.Ready != readyClusters || b.Status.Summary.DesiredReady != 2 {
				err = fmt.Errorf("summary %+v", b.Status.Summary)
			}
			told := status.Find(b.Status.Conditions, fleet.ConditionMerged)
			if merged == "" && told != nil || merged != "" && (told == nil || told.Status != merged || !strings.Contains(told.Message, says)) {
				err = errors.Join(err, fmt.Errorf("condition %+v", told))
			}
			return err
		})
	}
}

func (m *merging) mode(mode fleet.MergeMode) {
	m.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"merge":{"mode":%q}}}`, mode)
	if err := m.client.Patch(m.t.Context(), m.object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		m.t.Fatal(err)
	}
}

// Bundles of a repository are delivered in one object to a cluster whose agent understands it; agents are upgraded and
// downgraded, and merging is switched off, and nobody is ever without a deployment.
func TestMergedDelivery(t *testing.T) {
	h := getHub(t)
	m := &merging{hub: h, namespace: h.workspace("new", "old")}
	m.speaks("new", merge.Protocol)
	m.speaks("old", 1)
	m.repo, _ = h.repo(mergedFiles("v1"))
	m.object = gitRepo(m.namespace, "shop", m.repo.HTTPURL(), func(spec *fleet.GitRepoSpec) {
		spec.Merge = &fleet.MergeOptions{Mode: fleet.MergePerRepo}
	})
	h.create(m.object)
	m.delivered("new", 1, 0)
	m.delivered("old", 0, mergedBundles)
	m.reports("new", merge.Protocol)
	m.reports("old", 1)
	m.counted(2, corev1.ConditionFalse, m.namespace+"/old")

	m.push("v2")
	m.told("new")
	m.told("old")
	m.reports("new", merge.Protocol)
	m.reports("old", 1)
	m.counted(2, corev1.ConditionFalse, m.namespace+"/old")

	before := len(m.patches("new"))
	m.label("new", "kept", "yes") // one event, upon which all bundles tell the cluster something else
	m.told("new")
	if took := len(m.patches("new")) - before; took >= mergedBundles {
		t.Errorf("%d writes for %d bundles in one object", took, mergedBundles)
	}
	m.reports("new", merge.Protocol)
	m.counted(2, corev1.ConditionFalse, m.namespace+"/old")

	m.speaks("old", merge.Protocol) // its agent was upgraded
	m.delivered("old", 1, mergedBundles)
	m.counted(2, corev1.ConditionUnknown, "")
	h.restart()
	m.reports("old", merge.Protocol)
	m.delivered("old", 1, 0)
	m.counted(2, corev1.ConditionTrue, "")

	m.speaks("new", 1) // and this one downgraded
	m.delivered("new", 1, mergedBundles)
	m.reports("new", 1)
	m.delivered("new", 0, mergedBundles)
	m.counted(2, corev1.ConditionFalse, m.namespace+"/new")

	m.mode(fleet.MergePerPath)
	m.delivered("old", 1, mergedBundles)
	m.reports("old", merge.Protocol)
	m.delivered("old", 0, mergedBundles)
	m.counted(2, "", "")
	h.removeAll([]*fleet.GitRepo{m.object})
}

// told waits until a cluster is told something else than what it runs of every bundle.
func (m *merging) told(name string) {
	m.t.Helper()
	kubetest.Eventually(m.t, "the change is delivered to "+name, func(context.Context) error {
		for _, deployment := range merge.ExplodeAll(m.objects(name)) {
			if deployment.Spec.DeploymentID == deployment.Status.AppliedDeploymentID {
				return fmt.Errorf("%s is as it was", deployment.Name)
			}
		}
		return nil
	})
}

func (m *merging) label(name, key, value string) {
	m.t.Helper()
	object := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: m.namespace, Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	if err := m.client.Patch(m.t.Context(), object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		m.t.Fatal(err)
	}
}

// patches are the hub's writes of merged objects of a cluster that were carried out: one that is refused is tried again.
func (m *merging) patches(name string) []string {
	m.t.Helper()
	var found []string
	for _, write := range m.writes() {
		if write.Resource == "bundledeployments" && write.Namespace == names.ClusterNamespace(m.namespace, name) && write.Verb == "patch" && writes.CarriedOut(write.Request) {
			found = append(found, write.Name)
		}
	}
	slices.Sort(found)
	return found
}
