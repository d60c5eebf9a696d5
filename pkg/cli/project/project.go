package project

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/cli/charts"
	"github.com/fairlead-dev/fairlead/pkg/cli/inventory"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/cli/stream"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// Flags say how a folder is read and which clusters count.
type Flags struct {
	// Clusters is a file that stands in for the hub.
	Clusters string

	gitRepo, name string
	paths         []string
	bundles       []string
	clusters      []string
	kubeVersion   string
	charts        charts.Flags
}

// AddReading adds the flags about the folder.
func (f *Flags) AddReading(set *pflag.FlagSet, s *session.Session) {
	set.StringVarP(&f.gitRepo, "gitrepo", "g", "", "file with the GitRepo that reads the folder: its name, namespace, paths, targets and options count")
	set.StringVar(&f.name, "name", "", "name of the GitRepo (default: that of the folder)")
	set.StringSliceVarP(&f.paths, "path", "p", nil, "paths of the GitRepo (default: the whole folder)")
	set.StringSliceVar(&f.bundles, "bundle", nil, "only these bundles, by name or folder")
	f.charts.Add(set, s.Env)
}

// AddTargeting adds the flags about clusters.
func (f *Flags) AddTargeting(set *pflag.FlagSet) {
	set.StringVar(&f.Clusters, "clusters", "", "file with Clusters, ClusterGroups, BundleNamespaceMappings and Namespaces that stand in for the hub")
	set.StringSliceVar(&f.clusters, "cluster", nil, "only these clusters")
	set.StringVar(&f.kubeVersion, "kube-version", "", "Kubernetes version that charts see (default "+render.DefaultKubeVersion+")")
}

// Request returns what to make of a folder. Without a GitRepo every cluster is a target.
func (f *Flags) Request(s *session.Session, dir string) (bundle.Request, error) {
	request := bundle.Request{
		Namespace: s.Namespace(session.LocalNamespace),
		Targets:   []fleet.ClusterTarget{{Name: "all", ClusterSelector: &metav1.LabelSelector{}}},
	}
	if f.gitRepo != "" {
		repo, err := readGitRepo(s, f.gitRepo)
		if err != nil {
			return request, err
		}
		request = bundle.RequestFor(repo, "")
		request.Namespace = s.NamespaceOf(repo.Namespace)
	}
	if f.name != "" {
		request.Name = f.name
	}
	if request.Name == "" {
		absolute, err := filepath.Abs(dir)
		if err != nil {
			return request, fmt.Errorf("find %s: %w", dir, err)
		}
		request.Name = filepath.Base(absolute)
	}
	if len(f.paths) > 0 {
		request.Paths, request.Bundles = f.paths, nil
	}
	// What cannot be read without a hub's settings would only be in the way here.
	request.InlineValues, request.ImageScans = true, true
	return request, nil
}

func readGitRepo(s *session.Session, file string) (*fleet.GitRepo, error) {
	data, err := s.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read GitRepo: %w", err)
	}
	objects, err := stream.Decode(file, data)
	if err != nil {
		return nil, fmt.Errorf("read GitRepo: %w", err)
	}
	s.WarnAll(objects.Warnings)
	if len(objects.GitRepos) != 1 {
		return nil, fmt.Errorf("read GitRepo: %s holds %d GitRepos, want one", file, len(objects.GitRepos))
	}
	return objects.GitRepos[0], nil
}

// Folder returns the files of a folder.
func Folder(dir string) (fs.FS, error) {
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("read folder %s: there is no such folder", dir)
	case err != nil:
		return nil, fmt.Errorf("read folder: %w", err)
	case !info.IsDir():
		return nil, fmt.Errorf("read folder %s: it is a file; name the folder that the repository or the bundle is in", dir)
	}
	return os.DirFS(dir), nil
}

// Read reads a tree. With a result, the error is about bundles that are missing in it.
func (f *Flags) Read(ctx context.Context, s *session.Session, files fs.FS, request bundle.Request) (*bundle.Result, error) {
	source, err := f.charts.Source(s.Env)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	result, err := bundle.Read(ctx, files, request, source)
	if result == nil || len(f.bundles) == 0 {
		return result, err
	}
	// What is wrong with bundles that were not asked for is not asked for either.
	result.Bundles = slices.DeleteFunc(result.Bundles, func(made bundle.Bundle) bool {
		return !f.wants(made.Object.Name, made.Dir)
	})
	result.Failed = slices.DeleteFunc(result.Failed, func(failure bundle.Failure) bool {
		return !f.wants(failure.BundleName, failure.Dir)
	})
	return result, result.Err()
}

func (f *Flags) wants(name, dir string) bool {
	return slices.ContainsFunc(f.bundles, func(wanted string) bool { return isBundle(wanted, name, dir) })
}

func isBundle(wanted, name, dir string) bool {
	return wanted == name || path.Clean(wanted) == dir
}

// CheckBundles returns an error for a bundle that was asked for and is in none of the results.
func (f *Flags) CheckBundles(results ...*bundle.Result) error {
	for _, wanted := range f.bundles {
		found := slices.ContainsFunc(results, func(result *bundle.Result) bool {
			return slices.ContainsFunc(result.Bundles, func(made bundle.Bundle) bool { return isBundle(wanted, made.Object.Name, made.Dir) }) ||
				slices.ContainsFunc(result.Failed, func(failure bundle.Failure) bool {
					return isBundle(wanted, failure.BundleName, failure.Dir)
				})
		})
		if !found {
			return fmt.Errorf("bundle %s is not known: no bundle has this name or is made from this folder", wanted)
		}
	}
	return nil
}

// Inventory returns the clusters that count.
func (f *Flags) Inventory(ctx context.Context, s *session.Session, namespace string) (inventory.Inventory, error) {
	known, err := inventory.Load(ctx, s, f.Clusters, namespace)
	if err != nil || len(f.clusters) == 0 {
		return known, err
	}
	for _, wanted := range f.clusters {
		if !slices.ContainsFunc(known.Clusters, func(c fleet.Cluster) bool { return isCluster(&c, wanted) }) {
			return known, fmt.Errorf("cluster %s is not known", wanted)
		}
	}
	known.Clusters = slices.DeleteFunc(known.Clusters, func(cluster fleet.Cluster) bool {
		return !slices.ContainsFunc(f.clusters, func(wanted string) bool { return isCluster(&cluster, wanted) })
	})
	return known, nil
}

func isCluster(cluster *fleet.Cluster, wanted string) bool {
	return wanted == cluster.Name || wanted == cluster.Namespace+"/"+cluster.Name || wanted == cluster.Labels[fleet.DisplayNameLabel]
}

// Pair is a bundle on a cluster.
type Pair struct {
	Bundle bundle.Bundle
	target.Targeted
}

// Pairs returns the pairs that bundles give, by bundle and then by cluster. A pair whose options could not be
// made has its Err set; the error is about targets that cannot be read.
func Pairs(bundles []bundle.Bundle, known inventory.Inventory) ([]Pair, error) {
	var pairs []Pair
	for _, made := range bundles {
		snapshot, err := SnapshotOf(made.Object, known)
		if err != nil {
			return nil, err
		}
		targets, _, err := target.Targets(snapshot)
		if err != nil {
			return nil, err
		}
		for _, targeted := range targets {
			pairs = append(pairs, Pair{Bundle: made, Targeted: targeted})
		}
	}
	return pairs, nil
}

// SnapshotOf returns what targeting a bundle depends on.
func SnapshotOf(object *fleet.Bundle, known inventory.Inventory) (target.Snapshot, error) {
	clusters, groups, err := known.For(object)
	if err != nil {
		return target.Snapshot{}, err
	}
	stored, err := content.Manifest{Resources: object.Spec.Resources}.Store()
	if err != nil {
		return target.Snapshot{}, fmt.Errorf("target bundle %s: %w", object.Name, err)
	}
	return target.Snapshot{Bundle: object, ManifestID: stored.ID, Clusters: clusters, Groups: groups}, nil
}

// Renderer renders pairs, each distinct one once.
type Renderer struct {
	capabilities render.Capabilities
	known        map[string]rendered
}

type rendered struct {
	objects []*unstructured.Unstructured
	err     error
}

// Renderer returns a renderer for the Kubernetes version of the flags.
func (f *Flags) Renderer() *Renderer {
	return &Renderer{capabilities: render.Capabilities{KubeVersion: f.kubeVersion}, known: map[string]rendered{}}
}

// Objects returns what a pair deploys. The objects are shared and must not be changed.
func (r *Renderer) Objects(ctx context.Context, pair Pair) ([]*unstructured.Unstructured, error) {
	if pair.Err != nil {
		return nil, pair.Err
	}
	key := pair.Bundle.Object.Name + "\x00" + pair.DeploymentID
	if known, ok := r.known[key]; ok {
		return known.objects, known.err
	}
	manifestID, _, _ := strings.Cut(pair.DeploymentID, ":")
	objects, err := render.Objects(ctx, render.Input{
		BundleID:   pair.Bundle.Object.Name,
		ManifestID: manifestID,
		Commit:     pair.Bundle.Object.Labels[fleet.CommitLabel],
		Manifest:   content.Manifest{Resources: pair.Bundle.Object.Spec.Resources},
		Options:    pair.Options,
	}, r.capabilities, nil)
	r.known[key] = rendered{objects, err}
	return objects, err
}
