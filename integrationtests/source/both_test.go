package source

import (
	"bytes"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	gogit "github.com/go-git/go-git/v5"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
	"github.com/fairlead-dev/fairlead/integrationtests/gitserver/gitservertest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/cli"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/cli/stream"
	"github.com/fairlead-dev/fairlead/pkg/cli/worktree"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git"
)

// repositories is how many random ones are made.
const repositories = 30

// Equal input gives equal bundles, byte for byte, or the same error: as `fleet apply -o -` reads a checkout,
// as `fleet diff` reads its commits, and as the hub reads its mirror.
func TestSameOfflineAndOnTheHub(t *testing.T) {
	server, err := gitserver.Start(gitserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	service, err := git.New(git.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Close() })
	targets := filepath.Join(t.TempDir(), "targets.yaml")
	if err := os.WriteFile(targets, []byte("targets: [{name: all, clusterSelector: {}}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	made, failed := 0, 0
	for seed := range uint64(repositories) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			repo := gitservertest.NewRepo(t, server, fmt.Sprintf("random-%d", seed))
			commit := repo.Commit(randomFiles(rand.New(rand.NewPCG(seed, 7))))
			dir := t.TempDir()
			if _, err := gogit.PlainClone(dir, false, &gogit.CloneOptions{URL: repo.HTTPURL()}); err != nil {
				t.Fatal(err)
			}
			object := &fleet.GitRepo{}
			object.Name, object.Namespace = "shop", session.LocalNamespace
			object.Spec.Targets = []fleet.ClusterTarget{{Name: "all", ClusterSelector: everything}}
			request := bundle.RequestFor(object, commit)
			// The command line shows values where the hub has a Secret.
			request.InlineValues = true

			tree, err := service.Checkout(t.Context(), git.Source{URL: repo.HTTPURL()}, commit)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tree.Close() }()
			hub := documents(t, tree, request)
			local, err := worktree.At(dir, "HEAD")
			if err != nil {
				t.Fatal(err)
			}
			if diff := documents(t, local.FS, request); diff != hub {
				t.Errorf("commit of the checkout:\n%s\nmirror:\n%s", diff, hub)
			}
			if offline := apply(t, dir, targets); offline != hub {
				t.Errorf("fleet apply:\n%s\nhub:\n%s", offline, hub)
			}
			if strings.HasPrefix(hub, "error") {
				failed++
			} else {
				made += strings.Count(hub, "kind: Bundle\n")
			}
		})
	}
	if made < repositories/2 || failed > repositories*2/3 {
		t.Errorf("%d bundles of %d repositories, %d of which fail: there is little to compare", made, repositories, failed)
	}
}

func documents(t *testing.T, files fs.FS, request bundle.Request) string {
	t.Helper()
	result, err := bundle.Read(t.Context(), files, request, nil)
	if err != nil {
		return "error: " + err.Error() + "\n"
	}
	var objects []any
	for _, made := range result.Bundles {
		objects = append(objects, made.Object)
	}
	text, err := stream.Encode(objects...)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// apply runs `fleet apply -o -` in a folder, without anything of the surroundings.
func apply(t *testing.T, dir, targets string) string {
	t.Helper()
	t.Chdir(dir)
	var out, said bytes.Buffer
	code := cli.Run(t.Context(), []string{"apply", "shop", "-o", "-", "--targets-file", targets},
		genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &said}, session.Environment{})
	if code == 0 {
		return out.String()
	}
	_, message, _ := strings.Cut(said.String(), "error: ")
	return "error: " + message
}

// randomFiles is a repository with a little of everything, some of it wrong.
func randomFiles(random *rand.Rand) map[string]string {
	pick := func(from ...string) string { return from[random.IntN(len(from))] }
	files := map[string]string{"README.md": "about\n", "base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": object, "shared/Chart.yaml": chart, "shared/templates/a.yaml": object}
	folders := []string{"one", "two", "one/nested", "ünï çode", "deep/er/still", "-dash", "UPPER"}
	for range 2 + random.IntN(4) {
		dir := pick(folders...)
		add := func(name, content string) { files[path.Join(dir, name)] = content }
		add(pick("a.yaml", "b.yml", "c.json", "sub/d.yaml", ".hidden.yaml"), pick(object, "{}", "a: [1, 2]\n---\n---\nb: ~\n", "x: 1\r\ny: 2\r\n", "\xef\xbb\xbf"+object, "- list\n", "\t\n"))
		for range random.IntN(4) {
			switch random.IntN(12) {
			case 0:
				add("Chart.yaml", chart)
				add("templates/t.yaml", "a: {{ .Values.a }}\n")
				add("values.yaml", "a: 1\n")
			case 1:
				add("fleet.yaml", "helm: {chart: ../shared, values: {a: 1.0, b: '007', c: 1e3, d: yes, e: 0x1f}, valuesFiles: [v.yaml]}\n")
				add("v.yaml", "a: {b: [1, 2.50, null]}\nc: on\nd: 12345678901234567890\n")
			case 2:
				add("fleet.yaml", "kustomize: {dir: k}\n")
				add("k/b.yaml", object)
				add("k/kustomization.yaml", pick("resources: [../../base]\n", "resources: [b.yaml]\n", "resources: [../../../base]\n"))
			case 3:
				add(pick("kustomization.yml", "Kustomization"), "resources: [a.yaml]\n")
				add("a.yaml", object)
			case 4:
				add("link", "-> "+pick("a.yaml", "a.yaml", "script.sh", "nothing", "../..", "."))
			case 5:
				add("script.sh", "#!/bin/sh\n")
				add("link2", "-> script.sh")
				add("binary", "\x00\xff\xfe\x01")
				add("empty", "")
			case 6:
				add(".fleetignore", pick("*.yml\n", "sub\n", "# none\n\n", "/a.yaml\n", "sub/*\n", "!a.yaml\n"))
			case 7:
				add(pick("fleet.yaml", "fleet.yml"), pick("", "name: given\n", "name: given-"+fmt.Sprint(random.IntN(9))+"\nlabels: {x: y}\n", "targetCustomizations: [{name: d, clusterSelector: {}, helm: {values: {z: 1}}}, {clusterName: q, doNotDeploy: true}]\n", "unknown: 1\n", "labels: {a: b}\n", "a: [\n"))
			case 8:
				add("fleet.yaml", "yaml: {overlays: [dev]}\n")
				add("overlays/dev/a_patch.yaml", "data: {a: c}\n")
			case 9:
				add("large.txt", strings.Repeat(fmt.Sprintf("%d line\n", random.IntN(9)), 150_000))
			case 10:
				add("fleet.yaml", pick("helm: {valuesFiles: [missing.yaml]}\n", "helm: {values: {a: ${ .ClusterName }}}\n", "namespace: n\npaused: true\n", "keepResources: true\n"))
			case 11:
				add("fleet.yaml", "overrideTargets: [{clusterName: a}]\nrolloutStrategy: {maxUnavailable: 10%}\ndependsOn: [{name: b}]\n")
			}
		}
	}
	for name := range files {
		// A folder cannot be a file too.
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			delete(files, dir)
		}
	}
	return files
}

const (
	object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n"
	chart  = "apiVersion: v2\nname: c\nversion: 1.0.0\n"
)

// A file that git stores as the difference to another one is whole, whether it is read as a stream or not.
func TestLargeDifferencesAreWhole(t *testing.T) {
	server, err := gitserver.Start(gitserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	service, err := git.New(git.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = service.Close() })
	repo := gitservertest.NewRepo(t, server, "differences")
	text := noise(1, 3*mib)
	files := map[string]string{"a": text, "b": "changed" + text, "c": text[:mib] + "x" + text[mib:], "d": text[:mib-10]}
	for range 2 {
		commit := repo.Commit(files)
		tree, err := service.Checkout(t.Context(), git.Source{URL: repo.HTTPURL()}, commit)
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range files {
			if got, err := tree.ReadFile(name); err != nil || string(got) != want {
				t.Errorf("%s has %d bytes, %v, want the %d that were committed", name, len(got), err, len(want))
			}
			if got, err := fs.ReadFile(struct{ fs.FS }{tree}, name); err != nil || string(got) != want {
				t.Errorf("%s, opened, has %d bytes, %v", name, len(got), err)
			}
		}
		_ = tree.Close()
		files["a"], files["e"] = "again"+text, text+"more"
	}
}
