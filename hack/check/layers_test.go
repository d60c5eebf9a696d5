package check

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"strings"
	"testing"
)

const module = "github.com/fairlead-dev/fairlead/"

type layer int

const (
	words layer = iota
	pure
	edge
	control
	shell
	outside // hack, integrationtests: may import anything, nothing imports them
)

// layers is the table of docs/architecture.md. A longer path wins over its prefix.
var layers = map[string]layer{
	"pkg/apis":               words,
	"pkg/names":              words,
	"pkg/fault":              words,
	"pkg/version":            words,
	"pkg/bundle":             pure,
	"pkg/bundle/fetch":       edge,
	"pkg/bundle/judge":       edge,
	"pkg/bundle/controller":  control,
	"pkg/target":             pure,
	"pkg/status":             pure,
	"pkg/status/feed":        control,
	"pkg/status/gauges":      control,
	"pkg/telemetry":          edge,
	"pkg/cluster":            pure,
	"pkg/cluster/controller": control,
	"pkg/policy":             pure,
	"pkg/policy/reader":      edge,
	"pkg/content":            pure,
	"pkg/content/store":      edge,
	"pkg/content/registry":   edge,
	"pkg/cached":             edge,
	"pkg/confirm":            edge,
	"pkg/merge":              pure,
	"pkg/merge/view":         edge,
	"pkg/merge/carrier":      edge,
	"pkg/shard":              edge,
	"pkg/agent/diff":         pure,
	"pkg/agent/fieldpath":    pure,
	"pkg/agent/health":       pure,
	"pkg/agent/manifest":     pure,
	"pkg/agent/ownership":    pure,
	"pkg/agent/synced":       pure,
	"pkg/agent/apply":        edge,
	"pkg/agent/await":        edge,
	"pkg/agent/concede":      edge,
	"pkg/agent/hub":          edge,
	"pkg/depends":            pure,
	"pkg/agent/handover":     pure,
	"pkg/agent/pace":         pure,
	"pkg/agent/report":       pure,
	"pkg/agent/helm":         edge,
	"pkg/agent/access":       edge,
	"pkg/agent/namespace":    edge,
	"pkg/agent/records":      edge,
	"pkg/agent/live":         edge,
	"pkg/agent/spot":         edge,
	"pkg/agent/roster":       edge,
	"pkg/agent/sight":        edge,
	"pkg/agent/removal":      edge,
	"pkg/agent/identity":     edge,
	"pkg/agent/heartbeat":    edge,
	"pkg/agent/join":         edge,
	"pkg/agent/controller":   control,
	"pkg/gitjob/git":         edge,
	"pkg/gitjob/webhook":     edge,
	"pkg/gitjob/controller":  control,
	"pkg/cli":                shell,
	"pkg/dashboard":          shell,
	"cmd":                    shell,
	"charts":                 outside,
	"hack":                   outside,
	"integrationtests":       outside,

	// Parts of controllers that only decide.
	"pkg/gitjob/controller/progress": pure,
}

// sides says which program a package belongs to; packages of the two sides meet in pure layers only.
var hubSide = []string{"pkg/bundle/controller", "pkg/bundle/judge", "pkg/bundle/fetch", "pkg/cluster/controller", "pkg/gitjob", "pkg/status/feed", "pkg/status/gauges"}

// outsideWorld is what a pure package must not import.
var outsideWorld = []string{
	"k8s.io/client-go/", "sigs.k8s.io/controller-runtime", "github.com/go-logr/", "log", "log/slog",
	"net/http", "os", "os/exec", "helm.sh/helm/v3/pkg/action", "github.com/go-git/",
}

type goPackage struct {
	ImportPath string
	Name       string
	Doc        string
	Imports    []string
}

func TestImportsGoDown(t *testing.T) {
	for _, pkg := range listPackages(t) {
		path := strings.TrimPrefix(pkg.ImportPath, module)
		from, known := layerOf(path)
		if !known {
			t.Errorf("%s is in no layer; add it to the table here and in docs/architecture.md", path)
			continue
		}
		for _, imported := range pkg.Imports {
			checkImport(t, path, from, imported)
		}
	}
}

func checkImport(t *testing.T, path string, from layer, imported string) {
	t.Helper()
	if from == pure {
		for _, forbidden := range outsideWorld {
			if imported == strings.TrimSuffix(forbidden, "/") || strings.HasSuffix(forbidden, "/") && strings.HasPrefix(imported, forbidden) ||
				strings.HasPrefix(imported, forbidden+"/") && strings.Contains(forbidden, ".") {
				t.Errorf("pure package %s imports %s", path, imported)
			}
		}
	}
	target, own := strings.CutPrefix(imported, module)
	if !own || from == outside {
		return
	}
	to, _ := layerOf(target)
	if to > from {
		t.Errorf("%s imports %s of a higher layer", path, target)
	}
	if from == control && to == control && target != "pkg/status/feed" && !strings.HasPrefix(target, controllerOf(path)+"/") {
		t.Errorf("controller %s imports controller %s", path, target)
	}
	if strings.HasPrefix(path, "pkg/agent/") && isHub(target) || isHub(path) && strings.HasPrefix(target, "pkg/agent/") && to != pure {
		t.Errorf("%s and %s are on different sides and meet outside the pure layers", path, target)
	}
}

// controllerOf returns the folder of the controller that a package is, or is a part of. The parts of one may import each
// other, since they are one program that is cut by purpose, and Go refuses cycles; those of another they may not.
func controllerOf(path string) string {
	if before, _, found := strings.Cut(path+"/", "/controller/"); found {
		return before + "/controller"
	}
	return path
}

func isHub(path string) bool {
	for _, prefix := range hubSide {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return true
		}
	}
	return false
}

func TestEveryPackageSaysWhatItIsFor(t *testing.T) {
	for _, pkg := range listPackages(t) {
		if pkg.Doc == "" && !strings.HasSuffix(pkg.ImportPath, "/testdata") {
			t.Errorf("%s has no package comment", pkg.ImportPath)
		}
	}
}

func layerOf(path string) (found layer, ok bool) {
	best := -1
	for prefix, l := range layers {
		if (path == prefix || strings.HasPrefix(path, prefix+"/")) && len(prefix) > best {
			best, found, ok = len(prefix), l, true
		}
	}
	return found, ok
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Doc,Imports", "./...")
	command.Dir = "../.."
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var packages []goPackage
	decoder := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var pkg goPackage
		if err := decoder.Decode(&pkg); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		packages = append(packages, pkg)
	}
	if len(packages) < 10 {
		t.Fatalf("go list found %d packages", len(packages))
	}
	return packages
}
