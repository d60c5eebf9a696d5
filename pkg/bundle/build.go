package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/charts"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fleetyaml"
	"github.com/fairlead-dev/fairlead/pkg/bundle/layout"
	"github.com/fairlead-dev/fairlead/pkg/bundle/resources"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// maxValues bounds the Helm values of one target, in bytes of JSON: a deployment's Secret holds them twice,
// and all of it has to stay below content.MaxObject in base64.
const maxValues = 330 << 10

// errEmpty says that a folder has nothing to deploy.
var errEmpty = errors.New("no files")

// builder makes one bundle.
type builder struct {
	*reader
	layout.Candidate
	name     string
	warnings []Warning

	specFile string
	specSize int
	// spec is nil until it is read.
	spec *fleetyaml.File
	// valuesFiles were merged into the values and are not shipped; relative to the bundle.
	valuesFiles map[string]bool
	files       *resources.Set
}

func (b *builder) build(ctx context.Context) (*Bundle, error) {
	if b.spec == nil {
		if err := b.readSpec(); err != nil {
			return nil, err
		}
	}
	if len(b.spec.ImageScans) > 0 && !b.req.ImageScans {
		return nil, fault.New(fault.Stalled, ReasonImageScans, "%s: imageScans are used and image scanning is switched off", b.specFile)
	}
	if err := b.mergeValues(); err != nil {
		return nil, err
	}
	warnings, err := b.Load(b.tree, b.valuesFiles, b.files)
	b.warnings = append(b.warnings, warnings...)
	if err != nil {
		return nil, err
	}
	collector := &charts.Collector{Tree: b.tree, Source: b.charts, Files: b.files, Dir: b.Dir, SpecFile: b.specFile}
	if err := collector.Add(ctx, b.spec.Helm, b.customizations()); err != nil {
		return nil, err
	}
	if err := b.addBases(); err != nil {
		return nil, err
	}
	if len(b.files.Files()) == 0 {
		return nil, errEmpty
	}
	object := b.object()
	if err := b.files.Encode(object, b.req.Compress); err != nil {
		return nil, err
	}
	made := &Bundle{Object: object, Dir: b.Dir, File: b.specFile, ImageScans: b.scans()}
	if b.req.InlineValues {
		return made, nil
	}
	values, err := takeValues(object)
	if err != nil {
		return nil, err
	}
	made.Values = values
	if err := b.checkSizes(made); err != nil {
		return nil, err
	}
	return made, nil
}

// checkSizes refuses what would be too large for the objects that hold it, and says what is.
func (b *builder) checkSizes(made *Bundle) error {
	if err := content.CheckOptions(made.Object); err != nil {
		return fault.New(fault.Stalled, resources.ReasonTooLarge, "%s: %w", b.specFile, err)
	}
	total := 0
	for key, values := range made.Values {
		total += len(values)
		together := len(values)
		if key != rootValues {
			together += len(made.Values[rootValues])
		}
		if together > maxValues {
			return fault.New(fault.Stalled, resources.ReasonTooLarge, "%s: the Helm values for %s have %d KiB of JSON, and may have %d KiB", b.specFile, key, together>>10, maxValues>>10)
		}
	}
	if total > 2*maxValues {
		return fault.New(fault.Stalled, resources.ReasonTooLarge, "%s: the Helm values of all targets have %d KiB of JSON together, and may have %d KiB", b.specFile, total>>10, 2*maxValues>>10)
	}
	return nil
}

// readSpec finds and parses the file of options; a folder without one has none.
func (b *builder) readSpec() error {
	b.spec = &fleetyaml.File{}
	if b.Options != "" {
		b.specFile = path.Join(b.Dir, b.Options)
		if !b.tree.IsFile(b.specFile) {
			return fault.New(fault.Stalled, layout.ReasonInvalidPath, "options %s: there is no such file", b.specFile)
		}
	}
	entries, err := b.tree.ReadDir(b.Dir)
	if err != nil {
		return err
	}
	for _, name := range fleetyaml.Names {
		// By its entry, not by whether it can be read: a link to nothing must not count as no options.
		there := slices.ContainsFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() == name && !entry.IsDir() })
		switch {
		case b.Options != "" || !there:
		case b.specFile != "":
			b.warn(path.Join(b.Dir, name), "the file is not read, because %s is there too", path.Base(b.specFile))
		default:
			b.specFile = path.Join(b.Dir, name)
		}
	}
	if b.specFile == "" {
		return nil
	}
	data, err := b.tree.ReadFile(b.specFile)
	if errors.Is(err, fs.ErrNotExist) {
		return fault.New(fault.Stalled, tree.ReasonBrokenLink, "the link %s leads to nothing", b.specFile)
	}
	if err != nil {
		return err
	}
	spec, warnings, err := fleetyaml.Parse(data, b.specFile)
	b.warnings = append(b.warnings, warnings...)
	if err != nil {
		return err
	}
	b.spec, b.specSize = spec, len(data)
	if spec.Name != "" {
		b.name = spec.Name
	}
	return nil
}

func (b *builder) warn(file, format string, args ...any) {
	b.warnings = append(b.warnings, Warning{File: file, Message: fmt.Sprintf(format, args...)})
}

// object returns the Bundle without its files.
func (b *builder) object() *fleet.Bundle {
	object := &fleet.Bundle{Spec: b.spec.BundleSpec}
	object.APIVersion, object.Kind = fleet.GroupVersion.String(), "Bundle"
	object.Name, object.Namespace = b.name, b.req.Namespace
	object.Labels = b.labels()
	if len(b.spec.Annotations) > 0 {
		object.Annotations = b.spec.Annotations
	}
	spec := &object.Spec
	b.setTargets(spec)
	spec.ForceSyncGeneration = b.req.ForceSyncGeneration
	spec.Paused = spec.Paused || b.req.Paused
	spec.KeepResources = spec.KeepResources || b.req.KeepResources
	spec.DeleteNamespace = spec.DeleteNamespace || b.req.DeleteNamespace
	if b.req.ServiceAccount != "" {
		spec.ServiceAccount = b.req.ServiceAccount
	}
	if b.req.CorrectDrift != nil && b.req.CorrectDrift.Enabled {
		spec.CorrectDrift = b.req.CorrectDrift.DeepCopy()
	}
	if b.req.Validate != nil {
		spec.Validate = b.req.Validate
	}
	if b.req.Merge != nil && spec.Merge == nil {
		spec.Merge = b.req.Merge.DeepCopy()
	}
	if b.req.TargetNamespace != "" {
		spec.TargetNamespace = b.req.TargetNamespace
		for i := range spec.Targets {
			spec.Targets[i].TargetNamespace = b.req.TargetNamespace
		}
	}
	return object
}

func (b *builder) labels() map[string]string {
	labels := map[string]string{}
	maps.Copy(labels, b.req.Labels)
	maps.Copy(labels, b.spec.Labels)
	if b.req.Name != "" {
		labels[fleet.RepoLabel] = b.req.Name
	}
	if b.req.Commit != "" {
		labels[fleet.CommitLabel] = b.req.Commit
	}
	return labels
}

// customizations returns pointers to all targets that fleet.yaml customizes, in their final order.
func (b *builder) customizations() []*fleet.BundleTarget {
	var out []*fleet.BundleTarget
	for i := range b.spec.Targets {
		out = append(out, &b.spec.Targets[i])
	}
	for i := range b.spec.TargetCustomizations {
		out = append(out, &b.spec.TargetCustomizations[i])
	}
	return out
}

// setTargets puts customizations before destinations, and the destinations into the restrictions.
func (b *builder) setTargets(spec *fleet.BundleSpec) {
	var targets []fleet.BundleTarget
	for i, target := range b.customizations() {
		if target.Name == "" {
			target.Name = fmt.Sprintf("target%03d", i)
		}
		targets = append(targets, *target)
	}
	destinations := b.spec.OverrideTargets
	if destinations == nil && !b.req.Unrestricted {
		destinations = b.req.Targets
		if len(destinations) == 0 {
			destinations = hubDefaults()
		}
	}
	spec.TargetRestrictions = slices.Clone(destinations)
	if len(targets) == 0 && len(destinations) == 0 {
		destinations = hubDefaults()
	}
	for _, destination := range destinations {
		targets = append(targets, fleet.BundleTarget{ClusterTarget: *destination.DeepCopy()})
	}
	spec.Targets = targets
}
