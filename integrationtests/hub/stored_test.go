package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
)

const recorded = "../../pkg/bundle/testdata/golden"

// The hub stores of every recorded repository the bundles that reading the folder offline gives, byte for byte.
func TestStoredBundlesAreThoseOfTheFolder(t *testing.T) {
	h := getHub(t)
	cases, err := filepath.Glob(filepath.Join(recorded, "*", "case.yaml"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("no recorded cases: %v", err)
	}
	for _, file := range cases {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			h := &hub{running: h.running, t: t, cluster: h.cluster}
			object, repo := h.recordedRepo(file)
			commit, err := repo.CommitDir(filepath.Join(dir, "repo"), "recorded")
			if err != nil {
				t.Fatal(err)
			}
			result, err := bundle.Read(t.Context(), os.DirFS(filepath.Join(dir, "repo")), bundle.RequestFor(object, commit), nil)
			if err != nil {
				t.Fatal(err)
			}
			h.create(object)
			wait(h, object, "has the commit", commitIs(commit))
			for _, made := range result.Bundles {
				if diff := cmp.Diff(specOf(t, made.Object), h.storedSpec(made.Object)); diff != "" {
					t.Errorf("bundle %s (-offline +hub):\n%s", made.Object.Name, diff)
				}
			}
			h.removeAll([]*fleet.GitRepo{object})
		})
	}
}

// recordedRepo returns the GitRepo of a case in a namespace of its own, and the repository it follows.
func (h *hub) recordedRepo(file string) (*fleet.GitRepo, interface {
	CommitDir(dir, message string) (string, error)
}) {
	h.t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		h.t.Fatal(err)
	}
	var read struct {
		GitRepo struct {
			Name   string
			Labels map[string]string
			fleet.GitRepoSpec
		} `json:"gitrepo"`
	}
	if err := yaml.Unmarshal(data, &read); err != nil {
		h.t.Fatal(err)
	}
	repo, err := h.git.Repo(fmt.Sprintf("recorded-%d", repositories.Add(1)))
	if err != nil {
		h.t.Fatal(err)
	}
	object := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: kubetest.Namespace(h.t, h.cluster), Name: read.GitRepo.Name, Labels: read.GitRepo.Labels}, Spec: read.GitRepo.GitRepoSpec}
	object.Spec.Repo, object.Spec.Branch = repo.HTTPURL(), "master"
	object.Spec.Revision, object.Spec.ClientSecretName = "", ""
	return object, repo
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
