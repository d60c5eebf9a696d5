package apply

import (
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/cli/charts"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

// flags are those of `fleet apply`.
type flags struct {
	file, bundleFile, output string
	labels                   map[string]string
	targetsFile              string
	compress                 bool
	serviceAccount           string
	syncGeneration           int64
	targetNamespace          string
	paused                   bool
	keepResources            bool
	deleteNamespace          bool
	correctDrift             fleet.CorrectDrift
	commit                   string
	ociRegistrySecret        string
	drivenScan               bool
	drivenScanSeparator      string
	concurrency              int
	imageScan                bool
	charts                   charts.Flags
}

func (f *flags) add(set *pflag.FlagSet, env session.Environment) {
	set.StringVarP(&f.file, "file", "f", "", "apply the Bundle in this file, as it is, instead of reading folders (- is standard input)")
	set.StringVarP(&f.bundleFile, "bundle-file", "b", "", "file, relative to each PATH, that takes the place of fleet.yaml")
	set.StringVarP(&f.output, "output", "o", "", "write the Bundles as YAML to this file (- is standard output) instead of to the hub; needs no cluster")
	set.StringToStringVarP(&f.labels, "label", "l", nil, "labels for every Bundle (key=value,…)")
	set.StringVar(&f.targetsFile, "targets-file", "", "YAML or JSON file with the targets of a GitRepo (targets, targetRestrictions)")
	set.BoolVarP(&f.compress, "compress", "c", false, "store every file compressed")
	set.StringVarP(&f.serviceAccount, "service-account", "a", "", "service account on the members that deploys the bundles")
	set.Int64Var(&f.syncGeneration, "sync-generation", 0, "redeploys everything when it is raised")
	set.StringVar(&f.targetNamespace, "target-namespace", "", "force every object into this namespace")
	set.BoolVar(&f.paused, "paused", false, "stage the bundles without rolling them out")
	set.BoolVar(&f.keepResources, "keep-resources", false, "leave the objects on the members when the bundles are removed")
	set.BoolVar(&f.deleteNamespace, "delete-namespace", false, "remove the release namespaces with the bundles")
	set.BoolVar(&f.correctDrift.Enabled, "correct-drift", false, "restore objects that are changed on a member")
	set.BoolVar(&f.correctDrift.Force, "correct-drift-force", false, "replace objects where restoring in place fails")
	set.BoolVar(&f.correctDrift.KeepFailHistory, "correct-drift-keep-fail-history", false, "keep the release record of a failed correction")
	set.StringVar(&f.commit, "commit", env.Commit, "commit the Bundles are made from; default: COMMIT, else HEAD of the git checkout")
	set.StringVar(&f.ociRegistrySecret, "oci-registry-secret", "", "Secret beside the Bundles with the registry that their contents are pushed to; default: ocistorage, where there is one")
	set.BoolVar(&f.drivenScan, "driven-scan", false, "each PATH is one bundle, base or base:options, and nothing else is searched")
	set.StringVar(&f.drivenScanSeparator, "driven-scan-sep", ":", "separates base and options")
	set.IntVar(&f.concurrency, "bundle-creation-max-concurrency", number(env.Concurrency, defaultConcurrency), "Bundles written at one time")
	set.BoolVar(&f.imageScan, "imagescan-enabled", false, "accept imageScans in fleet.yaml")
	f.charts.Add(set, env)
}

const (
	defaultConcurrency = 4
	defaultRetries     = 1
)

// number reads a setting; everything that is no positive number is the default.
func number(text string, fallback int) int {
	if value, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && value > 0 {
		return value
	}
	return fallback
}

// check finds combinations that make no sense.
func (f *flags) check(paths []string) error {
	switch {
	case f.ociRegistrySecret != "" && f.output != "":
		return session.Usage("with --output the contents stay in the Bundle, so --oci-registry-secret has no meaning with it")
	case f.file != "" && len(paths) > 0:
		return session.Usage("--file is a whole Bundle, so it takes no PATH")
	case f.file != "" && f.bundleFile != "":
		return session.Usage("--file is a whole Bundle, so --bundle-file has no meaning with it")
	case f.drivenScan && f.bundleFile != "":
		return session.Usage("with --driven-scan write PATH%sFILE instead of --bundle-file", f.drivenScanSeparator)
	case f.drivenScan && f.drivenScanSeparator == "":
		return session.Usage("--driven-scan-sep must not be empty")
	}
	return nil
}

// request returns what to make of the folders.
func (f *flags) request(name, namespace, commit string, paths []string, files fs.FS) (bundle.Request, error) {
	request := bundle.Request{
		Name: name, Namespace: namespace, Labels: f.labels, Commit: commit,
		Paths:               paths,
		TargetNamespace:     f.targetNamespace,
		ServiceAccount:      f.serviceAccount,
		ForceSyncGeneration: f.syncGeneration,
		CorrectDrift:        &f.correctDrift,
		Paused:              f.paused,
		KeepResources:       f.keepResources,
		DeleteNamespace:     f.deleteNamespace,
		Compress:            f.compress,
		InlineValues:        f.output != "",
		ImageScans:          f.imageScan,
	}
	var err error
	if request.Targets, request.Unrestricted, err = f.targets(); err != nil {
		return request, err
	}
	switch {
	case f.drivenScan:
		request.Paths = nil
		for _, entry := range paths {
			base, options, _ := strings.Cut(entry, f.drivenScanSeparator)
			request.Bundles = append(request.Bundles, fleet.BundlePath{Base: base, Options: options})
		}
	case f.bundleFile != "":
		request.Paths, request.NameByFolder = nil, true
		request.Bundles, err = withOptions(files, paths, f.bundleFile)
	}
	return request, err
}

// targets reads the targets file. Without one each fleet.yaml is on its own.
func (f *flags) targets() (targets []fleet.ClusterTarget, unrestricted bool, err error) {
	if f.targetsFile == "" {
		return nil, true, nil
	}
	data, err := os.ReadFile(f.targetsFile)
	if err != nil {
		return nil, false, fmt.Errorf("read targets file: %w", err)
	}
	var file struct {
		Targets            []fleet.ClusterTarget `json:"targets"`
		TargetRestrictions []fleet.ClusterTarget `json:"targetRestrictions"`
	}
	if err := yaml.UnmarshalStrict(data, &file); err != nil {
		return nil, false, fmt.Errorf("read targets file %s: %w", f.targetsFile, err)
	}
	if len(file.TargetRestrictions) > 0 && !sameTargets(file.Targets, file.TargetRestrictions) {
		return nil, false, fmt.Errorf("targets file %s: targets and targetRestrictions differ; the targets of a GitRepo restrict too, so write the same list, or targets alone", f.targetsFile)
	}
	return file.Targets, len(file.Targets) == 0, nil
}

func sameTargets(a, b []fleet.ClusterTarget) bool {
	first, err := yaml.Marshal(a)
	if err != nil {
		return false
	}
	second, err := yaml.Marshal(b)
	return err == nil && string(first) == string(second)
}

// withOptions returns every folder that the paths stand for as a bundle with a file of options.
func withOptions(files fs.FS, paths []string, options string) ([]fleet.BundlePath, error) {
	if len(paths) == 0 {
		paths = []string{"."}
	}
	var bundles []fleet.BundlePath
	for _, entry := range paths {
		dirs, err := tree.New(files).Dirs(entry)
		if err != nil {
			return nil, err
		}
		if len(dirs) == 0 {
			return nil, fmt.Errorf("%s: there is no such folder", entry)
		}
		for _, dir := range dirs {
			bundles = append(bundles, fleet.BundlePath{Base: dir, Options: options})
		}
	}
	return bundles, nil
}
