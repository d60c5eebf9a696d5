package hub

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {value: %q}\n"

func twoBundles() map[string]string {
	return map[string]string{
		"README.md":                     "about\n",
		"apps/raw/one.yaml":             fmt.Sprintf(configMap, "first"),
		"apps/raw/fleet.yaml":           "defaultNamespace: raw\n",
		"apps/chart/Chart.yaml":         "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
		"apps/chart/templates/one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {env: {{ .Values.env | quote }}}\n",
		"apps/chart/fleet.yaml":         "defaultNamespace: chart\nhelm:\n  values:\n    env: ${ .ClusterLabels.env }\n",
	}
}

// A push becomes one BundleDeployment for each bundle and cluster with one create each; a commit that
// touches one bundle writes that bundle's pairs only; one that touches none writes nothing but the
// GitRepo's status.
func TestPushBecomesDeployments(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev", "prod", "test")
	repo, first := h.repo(twoBundles())
	object := gitRepo(namespace, "shop", repo.HTTPURL(), func(s *fleet.GitRepoSpec) { s.Paths = []string{"apps"} })
	h.create(object)
	wait(h, object, "has the commit", commitIs(first))
	raw := h.waitDeployments("shop-apps-raw", namespace, "dev", "prod", "test")
	chart := h.waitDeployments("shop-apps-chart", namespace, "dev", "prod", "test")
	if raw["dev"].Spec.DeploymentID == "" || raw["dev"].Spec.DeploymentID != raw["prod"].Spec.DeploymentID {
		t.Errorf("ids of one content with the same options: %q and %q", raw["dev"].Spec.DeploymentID, raw["prod"].Spec.DeploymentID)
	}
	if chart["dev"].Spec.DeploymentID == chart["prod"].Spec.DeploymentID {
		t.Error("ids with different values are the same")
	}
	var values corev1.Secret
	dev := chart["dev"]
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(&dev), &values); err != nil {
		t.Fatal(err)
	}
	if got := string(values.Data["values"]); got != `{"env":"dev"}` || values.Type != fleet.DeploymentValuesSecretType {
		t.Errorf("values of the deployment are %s of type %s", got, values.Type)
	}
	wait(h, object, "counts its deployments", func(r *fleet.GitRepo) error {
		if r.Status.Summary.DesiredReady != 6 || r.Status.DesiredReadyClusters != 3 {
			return fmt.Errorf("summary %+v, clusters %d", r.Status.Summary, r.Status.DesiredReadyClusters)
		}
		return nil
	})
	h.checkPairWrites("first push", nil, namespace, map[string]int{"create": 6})

	before := h.writes()
	second := h.commit(repo, map[string]string{"apps/raw/one.yaml": fmt.Sprintf(configMap, "second")})
	wait(h, object, "has the second commit", commitIs(second))
	kubetest.Eventually(t, "the touched bundle's pairs change", func(ctxT) error {
		for name, deployment := range h.deployments("shop-apps-raw", namespace) {
			if deployment.Spec.DeploymentID == raw[name].Spec.DeploymentID {
				return fmt.Errorf("cluster %s still has the old id", name)
			}
		}
		return nil
	})
	for name, deployment := range h.deployments("shop-apps-chart", namespace) {
		if was := chart[name]; deployment.ResourceVersion != was.ResourceVersion {
			t.Errorf("deployment of the untouched bundle on %s was written", name)
		}
	}
	h.checkPairWrites("second push", before, namespace, map[string]int{"patch": 3})

	used := map[string]bool{} // contents
	for _, bundle := range []string{"shop-apps-raw", "shop-apps-chart"} {
		for _, deployment := range h.deployments(bundle, namespace) {
			used[deployment.Labels[fleet.ContentLabel]] = true
		}
	}
	before = h.writes()
	third := h.commit(repo, map[string]string{"README.md": "more\n"})
	wait(h, object, "has the third commit", commitIs(third))
	for _, write := range after(before, h.writes()) {
		// The roll-up of the push before may still be on its way to the clusters' statuses, the contents of the first push on
		// their way out, and other tests' contents on their way in or out. What is new of ours would be told to clusters.
		ours := write.Namespace == namespace || belongsTo(write.Namespace, namespace) || write.Resource == "contents" && used[write.Name]
		if ours && write.Resource != "gitrepos" && write.Resource != "events" && write.Subresource != "status" {
			t.Errorf("a commit that touches no bundle causes %s", write)
		}
	}
}

// checkPairWrites counts the hub's writes of BundleDeployments of a workspace since before.
func (h *hub) checkPairWrites(what string, before []writes.Write, workspace string, want map[string]int) {
	h.t.Helper()
	var got, unknown map[string]int // of those an API server out of breath gave up on
	kubetest.Eventually(h.t, "the audit log has the writes", func(ctxT) error {
		got, unknown = map[string]int{}, map[string]int{}
		for _, write := range after(before, h.writes()) {
			switch {
			case write.Resource != "bundledeployments" || write.Subresource != "" || !belongsTo(write.Namespace, workspace):
			case writes.CarriedOut(write.Request):
				got[write.Verb]++
			case writes.OutcomeUnknown(write.Request):
				unknown[write.Verb]++
			}
		}
		for verb, n := range want {
			if got[verb]+unknown[verb] < n {
				return fmt.Errorf("%s: %v and perhaps %v, want %v", what, got, unknown, want)
			}
		}
		return nil
	})
	for verb, n := range got {
		if n > want[verb] || n+unknown[verb] < want[verb] {
			h.t.Errorf("%s: %d %s of deployments, want %d", what, n, verb, want[verb])
		}
	}
}

// after returns the writes of now that are not in before.
func after(before, now []writes.Write) []writes.Write { return slices.Clone(now[len(before):]) }

// A Bundle that somebody deletes or edits comes back as the source has it; a folder that leaves the source
// is pruned; the GitRepo takes everything with it.
func TestSourceIsTheTruth(t *testing.T) {
	t.Parallel()
	h := getHub(t)
	namespace := h.workspace("dev")
	repo, first := h.repo(twoBundles())
	object := gitRepo(namespace, "truth", repo.HTTPURL(), func(s *fleet.GitRepoSpec) { s.Paths = []string{"apps"} })
	h.create(object)
	wait(h, object, "has the commit", commitIs(first))
	h.waitDeployments("truth-apps-raw", namespace, "dev")

	raw := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "truth-apps-raw"}}
	wait(h, raw, "exists", func(*fleet.Bundle) error { return nil })
	uid := raw.UID
	if err := h.client.Delete(t.Context(), raw); err != nil {
		t.Fatal(err)
	}
	wait(h, raw, "is made again", func(b *fleet.Bundle) error {
		if b.UID == uid {
			return fmt.Errorf("it is the old one")
		}
		return nil
	})
	edited := raw.DeepCopy()
	edited.Spec.DefaultNamespace = "elsewhere"
	if err := h.client.Patch(t.Context(), edited, client.MergeFrom(raw)); err != nil {
		t.Fatal(err)
	}
	wait(h, raw, "is what the source says again", func(b *fleet.Bundle) error {
		if b.Spec.DefaultNamespace != "raw" {
			return fmt.Errorf("default namespace %s", b.Spec.DefaultNamespace)
		}
		return nil
	})
	if _, err := repo.Remove("drop", "apps/chart"); err != nil {
		t.Fatal(err)
	}
	h.waitDeployments("truth-apps-chart", namespace)
	if err := h.client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the GitRepo and all it made is gone", func(ctx ctxT) error {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the GitRepo is there"), err)
		}
		if left := h.deployments("truth-apps-raw", namespace); len(left) > 0 {
			return fmt.Errorf("deployments left: %d", len(left))
		}
		return nil
	})
}

// A cluster that gets or loses a label gains or loses the deployments it matches; the others see no write.
func TestLabelsMoveDeployments(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev", "prod")
	repo, first := h.repo(map[string]string{"app/one.yaml": fmt.Sprintf(configMap, "x")})
	object := gitRepo(namespace, "labels", repo.HTTPURL(), func(s *fleet.GitRepoSpec) {
		s.Targets = []fleet.ClusterTarget{{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"env": "prod"}}}}
	})
	h.create(object)
	wait(h, object, "has the commit", commitIs(first))
	h.waitDeployments("labels", namespace, "prod")
	h.checkPairWrites("first commit", nil, namespace, map[string]int{"create": 1})
	before := h.writes()
	h.setLabel(namespace, "dev", "env", "prod")
	h.waitDeployments("labels", namespace, "dev", "prod")
	h.checkPairWrites("relabelling", before, namespace, map[string]int{"create": 1})
	h.setLabel(namespace, "dev", "env", "dev")
	h.waitDeployments("labels", namespace, "prod")
}

// setLabel changes one label of a cluster.
func (h *hub) setLabel(namespace, name, key, value string) {
	h.t.Helper()
	cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, key, value)
	if err := h.client.Patch(h.t.Context(), cluster, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		h.t.Fatal(err)
	}
}
