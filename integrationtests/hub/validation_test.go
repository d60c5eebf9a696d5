package hub

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/ociserver"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
)

// setKubernetes does what an agent's report does.
func (h *hub) setKubernetes(namespace, name, version string) {
	h.t.Helper()
	object := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	wait(h, object, "has a version", func(c *fleet.Cluster) error {
		c.Status.Versions = &fleet.ClusterVersions{Kubernetes: version}
		return h.client.Status().Update(h.t.Context(), c)
	})
}

// renders reads how many bundles were rendered, by result.
func (h *hub) renders() map[string]int {
	h.t.Helper()
	return h.results("fleet_validation_renders_total{")
}

// results reads a counter of the hub's by the label result, given the start of its lines before that label.
func (h *hub) results(counter string) map[string]int {
	h.t.Helper()
	counts := map[string]int{}
	kubetest.Eventually(h.t, "metrics", func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+h.metrics+"/metrics", nil)
		if err != nil {
			return err
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			rest, found := strings.CutPrefix(line, counter+`result="`)
			if result, count, ok := strings.Cut(rest, `"} `); found && ok {
				if counts[result], err = strconv.Atoi(strings.TrimSpace(count)); err != nil {
					return err
				}
			}
		}
		if len(counts) == 0 {
			return fmt.Errorf("no counter among %d bytes", len(text))
		}
		return nil
	})
	return counts
}

func chartFiles(dir, chartYAML, data, values string) map[string]string {
	return map[string]string{
		dir + "/Chart.yaml":       "apiVersion: v2\nname: chart\nversion: 1.0.0\n" + chartYAML,
		dir + "/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {x: " + data + "}\n",
		dir + "/fleet.yaml":       "defaultNamespace: " + dir + "\nhelm:\n  values:\n    env: ${ .ClusterLabels.env }\n    tier: ${ get .ClusterLabels \"tier\" }\n" + values,
	}
}

func join(trees ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, tree := range trees {
		for name, text := range tree {
			all[name] = text
		}
	}
	return all
}

// held waits until a Bundle says why a cluster is held back, and in which state it counts.
func (h *hub) held(namespace, bundle, text string, count func(*fleet.BundleSummary) int) {
	h.t.Helper()
	object := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: bundle}}
	wait(h, object, "names the cluster and the error", func(b *fleet.Bundle) error {
		ready := status.Find(b.Status.Conditions, fleet.ConditionReady)
		want := "[Cluster " + namespace + "/prod: held back: render bundle " + bundle + ": "
		if ready == nil || ready.Reason != fleet.ReasonError || !strings.Contains(ready.Message, want) || !strings.Contains(ready.Message, text) {
			return fmt.Errorf("Ready is %+v, want %q and %q", ready, want, text)
		}
		if count(&b.Status.Summary) != 1 || len(b.Status.Summary.NonReadyResources) == 0 {
			return fmt.Errorf("summary is %+v", b.Status.Summary)
		}
		return nil
	})
}

// keptFrom waits until a cluster's own numbers name exactly the bundles that it is kept from.
func (h *hub) keptFrom(namespace, name string, bundles ...string) {
	h.t.Helper()
	object := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	wait(h, object, "counts what it is kept from", func(c *fleet.Cluster) error {
		var held []string
		for i := range c.Status.Summary.NonReadyResources {
			if _, is := parent.HeldBack(&c.Status.Summary.NonReadyResources[i]); is {
				held = append(held, c.Status.Summary.NonReadyResources[i].Name)
			}
		}
		if fmt.Sprint(held) != fmt.Sprint(bundles) {
			return fmt.Errorf("summary is %+v, want %v", c.Status.Summary, bundles)
		}
		return nil
	})
}

// ids are the deployment ids by bundle of one cluster.
func (h *hub) ids(namespace, cluster string, bundles ...string) map[string]string {
	ids := map[string]string{}
	for _, bundle := range bundles {
		ids[bundle] = h.deployments(bundle, namespace)[cluster].Spec.DeploymentID
	}
	return ids
}

func outOfSync(s *fleet.BundleSummary) int { return s.OutOfSync }
func pending(s *fleet.BundleSummary) int   { return s.Pending }

// A bundle that does not render for one of three clusters, because of a value, a template or the version of
// Kubernetes, reaches the two others; the third keeps what it has, and Bundle and GitRepo say why. The next
// commit heals it, a restart changes nothing, and who does not want this switches it off.
func TestWhatDoesNotRenderIsHeldBack(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev", "prod", "test")
	h.setKubernetes(namespace, "dev", "v1.33.1")
	h.setKubernetes(namespace, "prod", "v1.25.0")
	for _, name := range []string{"dev", "test"} {
		h.setLabel(namespace, name, "tier", "gold")
	}
	value := chartFiles("value", "", `{{ required "no tier" .Values.tier | quote }}`, "")
	repo, first := h.repo(join(value, chartFiles("template", "", "1", ""), chartFiles("version", "", "1", "")))
	object := gitRepo(namespace, "held", repo.HTTPURL(), nil)
	h.create(object)
	wait(h, object, "has the commit", commitIs(first))
	h.waitDeployments("held-value", namespace, "dev", "test")
	h.waitDeployments("held-template", namespace, "dev", "prod", "test")
	h.waitDeployments("held-version", namespace, "dev", "prod", "test")
	h.held(namespace, "held-value", "no tier", pending)
	wait(h, object, "says it too", readySays("Bundle held-value: Pending(1) [Cluster "+namespace+"/prod: held back: render bundle held-value: "))

	h.keptFrom(namespace, "prod", "held-value")
	h.answer(namespace, "held-template", "held-version")

	before, running, seen := h.renders(), h.ids(namespace, "prod", "held-template", "held-version"), len(h.writes())
	others := h.ids(namespace, "dev", "held-template", "held-version")
	second := h.commit(repo, join(
		chartFiles("template", "", `{{ if eq .Values.env "prod" }}{{ include "missing" . }}{{ end }}2`, ""),
		chartFiles("version", "kubeVersion: '>=1.30.0-0'\n", "2", "")))
	wait(h, object, "has the second commit", commitIs(second))
	h.held(namespace, "held-template", "missing", outOfSync)
	h.held(namespace, "held-version", "wants Kubernetes >=1.30.0-0, this is v1.25.0", outOfSync)
	if now := h.ids(namespace, "dev", "held-template", "held-version"); now["held-template"] == others["held-template"] || now["held-version"] == others["held-version"] {
		t.Errorf("dev runs %v and ran %v", now, others)
	}
	h.keeps(namespace, running, seen)
	after := h.renders()
	// The template is rendered for three values of env, and the chart for the same with its version, known or not.
	if passed, failed := after["passed"]-before["passed"], after["failed"]-before["failed"]; passed != 4 || failed != 2 {
		t.Errorf("%d renderings passed and %d failed, want 4 and 2", passed, failed)
	}

	seen = len(h.writes())
	h.restart()
	kubetest.Eventually(t, "verdicts after a restart", func(context.Context) error {
		if counts := h.renders(); counts["failed"] < 3 {
			return fmt.Errorf("renderings: %v", counts)
		}
		return nil
	})
	h.keeps(namespace, running, seen)
	h.held(namespace, "held-template", "missing", outOfSync)

	third := h.commit(repo, join(
		chartFiles("value", "", `{{ .Values.tier | default "silver" | quote }}`, ""),
		chartFiles("version", "kubeVersion: '>=1.20.0-0'\n", "3", "")))
	wait(h, object, "has the third commit", commitIs(third))
	h.waitDeployments("held-value", namespace, "dev", "prod", "test")
	h.changes(namespace, "held-version", running)
	wait(h, object, "still says what is left", readySays("Bundle held-template: OutOfSync(1) "))

	wait(h, object, "is switched off", func(r *fleet.GitRepo) error {
		off := false
		r.Spec.Validate = &off
		return h.client.Update(t.Context(), r)
	})
	h.changes(namespace, "held-template", running)
	wait(h, object, "speaks of nothing held back", func(r *fleet.GitRepo) error {
		if ready := status.Find(r.Status.Conditions, fleet.ConditionReady); ready == nil || strings.Contains(ready.Message, "held back") {
			return fmt.Errorf("Ready is %+v", ready)
		}
		return nil
	})
	h.keptFrom(namespace, "prod")
}

// answer does what agents do that apply everything.
func (h *hub) answer(namespace string, bundles ...string) {
	h.t.Helper()
	for _, bundle := range bundles {
		for _, deployment := range h.deployments(bundle, namespace) {
			wait(h, &deployment, "is applied", func(bd *fleet.BundleDeployment) error {
				bd.Status.AppliedDeploymentID, bd.Status.Ready, bd.Status.NonModified = bd.Spec.DeploymentID, true, true
				return h.client.Status().Update(h.t.Context(), bd)
			})
		}
	}
}

// keeps checks that prod runs what it ran and that nothing was written there since.
func (h *hub) keeps(namespace string, running map[string]string, since int) {
	h.t.Helper()
	for bundle, id := range running {
		if now := h.ids(namespace, "prod", bundle)[bundle]; now != id {
			h.t.Errorf("prod ran %s of %s and runs %s", id, bundle, now)
		}
	}
	prod := &fleet.Cluster{}
	if err := h.client.Get(h.t.Context(), client.ObjectKey{Namespace: namespace, Name: "prod"}, prod); err != nil {
		h.t.Fatal(err)
	}
	for _, write := range h.writes()[since:] {
		if write.Namespace == prod.Status.Namespace && write.Resource == "bundledeployments" {
			h.t.Errorf("written in spite of it: %+v", write)
		}
	}
}

// changes waits until prod runs something else.
func (h *hub) changes(namespace, bundle string, running map[string]string) {
	h.t.Helper()
	kubetest.Eventually(h.t, bundle+" changes on prod", func(context.Context) error {
		if now := h.ids(namespace, "prod", bundle)[bundle]; now == running[bundle] {
			return fmt.Errorf("still runs %s", now)
		}
		return nil
	})
}

// Bundles in a registry are rendered too, and what takes all memory there is ends with the process that renders
// it: the hub goes on, and says why.
func TestWhatDoesNotRenderFromARegistry(t *testing.T) {
	h := getHub(t)
	oci := ociserver.Start(writer, reader)
	t.Cleanup(oci.Close)
	namespace := h.workspace("dev", "prod")
	h.setLabel(namespace, "dev", "tier", "gold")
	h.create(oci.Secret(namespace, "registry", writer, &reader))
	// It asks for its memory at once: what takes long is let through, and a busy machine takes long to fill memory.
	const bomb = `{{ if eq .Values.env "prod" }}{{ repeat 2000000000 "x" | len }}{{ end }}1`
	repo, _ := h.repo(join(
		chartFiles("value", "", `{{ required "no tier" .Values.tier | quote }}`, ""), chartFiles("bomb", "", bomb, "")))
	h.create(gitRepo(namespace, "far", repo.HTTPURL(), func(s *fleet.GitRepoSpec) { s.OCIRegistrySecret = "registry" }))
	h.waitDeployments("far-value", namespace, "dev")
	h.held(namespace, "far-value", "no tier", pending)
	h.held(namespace, "far-bomb", "MiB of memory", pending)
	h.waitDeployments("far-bomb", namespace, "dev")
}
