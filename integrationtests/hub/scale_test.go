package hub

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	// One GitRepo has all folders, each of the others one of its own: many GitRepos and many bundles
	// without the product of both.
	manyFolders  = 200
	manyGitRepos = 50
	slice        = 1
	manyInterval = 3 * time.Second
	// quietTime is longer than any status is held back, and than a busy machine stands still.
	quietTime = 5 * time.Second
)

// Many GitRepos of one repository and branch: one listing of references in an interval, one fetch for a
// commit, and of everything that is stored only what the commit touches is written.
func TestManyGitReposOfOneRepository(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev")
	files := map[string]string{"README.md": "about\n"}
	for i := range manyFolders {
		files[folder(i)+"/one.yaml"] = fmt.Sprintf(configMap, "first")
		files[folder(i)+"/fleet.yaml"] = "defaultNamespace: many\n"
	}
	server := ownServer(t)
	repo, err := server.Repo("many")
	if err != nil {
		t.Fatal(err)
	}
	first := h.commit(repo, files)
	var repos []*fleet.GitRepo
	bundles := 0
	for i := range manyGitRepos {
		var paths []string
		for j := range slice {
			if i > 0 {
				paths = append(paths, folder((i-1)*slice+j))
			}
		}
		if i == 0 {
			paths, bundles = []string{"apps"}, bundles+manyFolders-slice
		}
		bundles += slice
		repos = append(repos, gitRepo(namespace, fmt.Sprintf("many-%02d", i), repo.HTTPURL(), func(s *fleet.GitRepoSpec) {
			s.Paths, s.PollingInterval = paths, &fleet.Duration{Duration: manyInterval}
		}))
	}
	t.Cleanup(func() { h.removeAll(repos) })
	for _, object := range repos {
		h.create(object)
	}
	h.waitSettled(repos, first, bundles)
	before := h.still(namespace)

	counts := countRequests(server, func() {
		second := h.commit(repo, map[string]string{folder(0) + "/one.yaml": fmt.Sprintf(configMap, "second")})
		h.waitSettled(repos, second, bundles)
	})
	if counts.fetches != 1 {
		t.Errorf("%d fetches for one commit", counts.fetches)
	}
	if counts.listings > counts.intervals {
		t.Errorf("%d listings in %d intervals", counts.listings, counts.intervals)
	}
	after := h.still(namespace)
	touched := map[string]bool{"many-00-apps-000": true, "many-01-apps-000": true}
	for key, was := range before {
		name := key[strings.LastIndex(key, "/")+1:]
		if now := after[key]; (now != was) != touched[name] {
			t.Errorf("%s was %+v, is %+v; touched is %v", key, was, now, touched[name])
		}
	}
	if len(after) != len(before) || len(before) != 2*bundles {
		t.Errorf("%d bundles and deployments, then %d, want %d", len(before), len(after), 2*bundles)
	}

	counts = countRequests(server, func() {
		third := h.commit(repo, map[string]string{"README.md": "more\n"})
		h.waitSettled(repos, third, bundles)
	})
	if counts.fetches != 1 || counts.listings > counts.intervals {
		t.Errorf("%d fetches, %d listings in %d intervals for a commit beside the bundles", counts.fetches, counts.listings, counts.intervals)
	}
	for key, now := range h.stored(namespace) {
		if now != after[key] {
			t.Errorf("a commit beside the bundles made %s %+v of %+v", key, now, after[key])
		}
	}
}

func folder(i int) string { return fmt.Sprintf("apps/%03d", i) }

// waitSettled waits until all GitRepos have a commit and everything of it is deployed by the hub.
func (h *hub) waitSettled(repos []*fleet.GitRepo, commit string, deployments int) {
	h.t.Helper()
	namespace := repos[0].Namespace
	kubetest.Eventually(h.t, "all GitRepos have the commit", func(ctx context.Context) error {
		var list fleet.GitRepoList
		if err := h.client.List(ctx, &list, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range list.Items {
			if err := commitIs(commit)(&list.Items[i]); err != nil {
				return fmt.Errorf("%s: %w", list.Items[i].Name, err)
			}
		}
		var bundles fleet.BundleList
		if err := h.client.List(ctx, &bundles, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range bundles.Items {
			b := &bundles.Items[i]
			if b.Status.ObservedGeneration != b.Generation || b.Status.Summary.DesiredReady != 1 {
				return fmt.Errorf("bundle %s is not deployed: %+v", b.Name, b.Status.Summary)
			}
		}
		if len(bundles.Items) != deployments {
			return fmt.Errorf("%d bundles, want %d", len(bundles.Items), deployments)
		}
		return nil
	})
}

// version is what must not change of an object that a commit does not touch.
type version struct{ id, resource string }

// stored returns the Bundles and BundleDeployments of a workspace by kind and name.
func (h *hub) stored(namespace string) map[string]version {
	h.t.Helper()
	found := map[string]version{}
	var bundles fleet.BundleList
	if err := h.client.List(h.t.Context(), &bundles, client.InNamespace(namespace)); err != nil {
		h.t.Fatal(err)
	}
	for _, b := range bundles.Items {
		found["bundle/"+b.Name] = version{resource: b.ResourceVersion}
	}
	var deployments fleet.BundleDeploymentList
	if err := h.client.List(h.t.Context(), &deployments, client.MatchingLabels{fleet.BundleNamespaceLabel: namespace}); err != nil {
		h.t.Fatal(err)
	}
	for _, d := range deployments.Items {
		found["deployment/"+d.Namespace+"/"+d.Labels[fleet.BundleLabel]] = version{d.Spec.DeploymentID, d.ResourceVersion}
	}
	return found
}

// still waits until nothing of what is stored changes any more, since statuses follow what they tell of, and returns it.
func (h *hub) still(namespace string) map[string]version {
	h.t.Helper()
	last, since := h.stored(namespace), time.Now()
	kubetest.Eventually(h.t, "statuses change no more", func(context.Context) error {
		if now := h.stored(namespace); !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		if quiet := time.Since(since); quiet < quietTime {
			return fmt.Errorf("they have not for %s", quiet)
		}
		return nil
	})
	return last
}

// requests are what the git server was asked, and how many intervals began meanwhile.
type requests struct{ listings, fetches, intervals int }

// ownServer returns a git server that GitRepos of other tests do not ask.
func ownServer(t *testing.T) *gitserver.Server {
	t.Helper()
	server, err := gitserver.Start(gitserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	return server
}

// countRequests counts what a git server is asked while something happens. The intervals are counted, not
// bounded: a slow machine sees more of them.
func countRequests(server *gitserver.Server, happens func()) requests {
	server.ResetCounts()
	began := time.Now()
	happens()
	counts := server.Counts()
	return requests{counts.InfoRefs, counts.UploadPack, int(time.Since(began)/manyInterval) + 2}
}

func (h *hub) removeAll(repos []*fleet.GitRepo) {
	ctx := context.WithoutCancel(h.t.Context())
	for _, object := range repos {
		if err := client.IgnoreNotFound(h.client.Delete(ctx, object)); err != nil {
			h.t.Errorf("delete GitRepo %s: %v", object.Name, err)
		}
	}
}
