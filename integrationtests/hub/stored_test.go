package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
)

const recorded = "../../pkg/bundle/testdata/golden"

// recording is a recorded case: what went in, and the ids that a compatible engine made of it, by bundle and
// cluster.
type recording struct {
	GitRepo struct {
		Name   string
		Labels map[string]string
		fleet.GitRepoSpec
	} `json:"gitrepo"`
	Clusters []struct {
		Name                string
		Labels, Annotations map[string]string
		TemplateValues      *fleet.GenericMap
	}
	ClusterGroups []struct {
		Name     string
		Labels   map[string]string
		Selector *metav1.LabelSelector
	}

	ids map[string]map[string]ids
}

type ids struct{ StagedDeploymentID, ValuesHash, Namespace string }

// recordedIn is the namespace of all cases: namespaces of clusters are named after it.
const recordedIn = "golden-ws"

func readRecording(t *testing.T, dir string) *recording {
	t.Helper()
	c := &recording{}
	for file, into := range map[string]any{"case.yaml": c, filepath.Join("expected", "ids.yaml"): &c.ids} {
		data, err := os.ReadFile(filepath.Join(dir, file))
		if err == nil {
			err = yaml.Unmarshal(data, into)
		}
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
	}
	return c
}

// The hub stores of every recorded repository the bundles that reading the folder offline gives, byte for byte,
// and sends them with the recorded ids to the recorded namespaces.
func TestRecordedRepositories(t *testing.T) {
	t.Parallel()
	h := getHub(t)
	cases, err := filepath.Glob(filepath.Join(recorded, "*", "case.yaml"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("no recorded cases: %v", err)
	}
	h.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: recordedIn}})
	for _, file := range cases {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			h := &hub{running: h.running, t: t, cluster: h.cluster}
			c := readRecording(t, dir)
			repo, err := h.git.Repo(fmt.Sprintf("recorded-%d", repositories.Add(1)))
			if err != nil {
				t.Fatal(err)
			}
			commit, err := repo.CommitDir(filepath.Join(dir, "repo"), "recorded")
			if err != nil {
				t.Fatal(err)
			}
			object := c.gitRepo(repo.HTTPURL())
			result, err := bundle.Read(t.Context(), os.DirFS(filepath.Join(dir, "repo")), bundle.RequestFor(object, commit), nil)
			if err != nil {
				t.Fatal(err)
			}
			targets := c.targets()
			h.create(append(targets, object)...)
			defer h.removeCase(append(targets, object))
			wait(h, object, "has the commit", commitIs(commit))
			for _, made := range result.Bundles {
				if diff := cmp.Diff(specOf(t, made.Object), h.storedSpec(made.Object)); diff != "" {
					t.Errorf("bundle %s (-offline +hub):\n%s", made.Object.Name, diff)
				}
				h.sentAs(made.Object, c.ids[made.Object.Name])
			}
		})
	}
}

func (c *recording) gitRepo(url string) *fleet.GitRepo {
	object := &fleet.GitRepo{
		ObjectMeta: metav1.ObjectMeta{Namespace: recordedIn, Name: c.GitRepo.Name, Labels: c.GitRepo.Labels},
		Spec:       c.GitRepo.GitRepoSpec,
	}
	object.Spec.Repo, object.Spec.Branch = url, "master"
	object.Spec.Revision, object.Spec.ClientSecretName = "", ""
	return object
}

// targets are the clusters and groups of a case.
func (c *recording) targets() []client.Object {
	var all []client.Object
	for _, cluster := range c.Clusters {
		all = append(all, &fleet.Cluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: recordedIn, Name: cluster.Name, Labels: cluster.Labels, Annotations: cluster.Annotations},
			Spec:       fleet.ClusterSpec{TemplateValues: cluster.TemplateValues},
		})
	}
	for _, group := range c.ClusterGroups {
		all = append(all, &fleet.ClusterGroup{
			ObjectMeta: metav1.ObjectMeta{Namespace: recordedIn, Name: group.Name, Labels: group.Labels},
			Spec:       fleet.ClusterGroupSpec{Selector: group.Selector},
		})
	}
	return all
}

// sentAs waits until a bundle's deployments are those that were recorded. Of a rollout in partitions no more
// than the first one comes: nobody is ready here.
func (h *hub) sentAs(made *fleet.Bundle, want map[string]ids) {
	h.t.Helper()
	inParts := made.Spec.RolloutStrategy != nil && len(made.Spec.RolloutStrategy.Partitions) > 0
	kubetest.Eventually(h.t, "bundle "+made.Name+" is sent as recorded", func(context.Context) error {
		got := map[string]ids{}
		for cluster, deployment := range h.deployments(made.Name, made.Namespace) {
			got[cluster] = ids{deployment.Spec.StagedDeploymentID, deployment.Spec.ValuesHash, deployment.Namespace}
		}
		expected := want
		if inParts {
			expected = maps.Clone(want)
			maps.DeleteFunc(expected, func(cluster string, _ ids) bool { _, there := got[cluster]; return !there })
		}
		if diff := cmp.Diff(expected, got, cmpopts.EquateEmpty()); diff != "" || inParts && len(got) == 0 {
			return fmt.Errorf("(-recorded +hub):\n%s", diff)
		}
		return nil
	})
}

// removeCase deletes what a case needed and waits until the clusters are gone: those of one are no targets of
// the next.
func (h *hub) removeCase(objects []client.Object) {
	ctx := context.WithoutCancel(h.t.Context())
	for _, object := range slices.Backward(objects) {
		if err := client.IgnoreNotFound(h.client.Delete(ctx, object)); err != nil {
			h.t.Errorf("delete %s: %v", object.GetName(), err)
		}
	}
	kubetest.Eventually(h.t, "the case is gone", func(context.Context) error {
		var problems []error
		for _, object := range objects {
			if err := h.client.Get(ctx, client.ObjectKeyFromObject(object), object); err == nil {
				problems = append(problems, errors.New(object.GetName()+" is there"))
			}
		}
		return errors.Join(problems...)
	})
}

// storedSpec returns the spec of the Bundle that the hub stored.
func (h *hub) storedSpec(wanted *fleet.Bundle) string {
	h.t.Helper()
	stored := &fleet.Bundle{}
	if err := h.client.Get(context.WithoutCancel(h.t.Context()), client.ObjectKeyFromObject(wanted), stored); err != nil {
		h.t.Errorf("read bundle %s: %v", wanted.Name, err)
		return ""
	}
	return specOf(h.t, stored)
}

// specOf returns a spec as JSON, with what the API server fills in.
func specOf(t *testing.T, object *fleet.Bundle) string {
	t.Helper()
	spec := *object.Spec.DeepCopy()
	if spec.TargetCustomizationMode == "" {
		spec.TargetCustomizationMode = fleet.FirstMatch
	}
	data, err := json.MarshalIndent(spec, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
