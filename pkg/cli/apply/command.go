package apply

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/cli/stream"
	"github.com/fairlead-dev/fairlead/pkg/cli/worktree"
)

// Command returns `fleet apply`.
func Command(s *session.Session) *cobra.Command {
	f := &flags{}
	command := &cobra.Command{
		Use:   "apply NAME [PATH...]",
		Short: "Make Bundles from folders and write them to the hub, or print them",
		Example: `  # What would the folder app become? No cluster is asked.
  fleet apply shop app -o -

  # Write the bundles of two folders to the hub, as a GitRepo named shop would
  fleet apply shop app database --targets-file targets.yaml

  # Apply a Bundle that is in a file already
  fleet apply shop -f bundle.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 && f.file == "" {
				return session.Usage("apply needs the NAME of the bundles' owner, and may have PATHs")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			return run(command.Context(), s, f, args)
		},
	}
	f.add(command.Flags(), s.Env)
	return command
}

func run(ctx context.Context, s *session.Session, f *flags, args []string) error {
	name, paths := "", []string(nil)
	if len(args) > 0 {
		name, paths = args[0], args[1:]
	}
	if problems := validation.IsValidLabelValue(name); len(problems) > 0 {
		return session.Usage("NAME %q becomes a label of every Bundle and cannot be one: at most 63 letters, digits, dashes, dots and underscores", name)
	}
	if err := f.check(paths); err != nil {
		return err
	}
	read := func(take func(bundle.Bundle) error) (*bundle.Result, error) {
		return f.readFolders(ctx, s, name, paths, take)
	}
	if f.file != "" {
		read = func(take func(bundle.Bundle) error) (*bundle.Result, error) { return f.readBundle(s, name, take) }
	}
	if f.output != "" {
		return f.print(s, read)
	}
	return f.write(ctx, s, name, read)
}

// reading makes Bundles one at a time and hands them on.
type reading func(take func(bundle.Bundle) error) (*bundle.Result, error)

// print writes the Bundles and what belongs to them as YAML, all of them or nothing.
func (f *flags) print(s *session.Session, read reading) (err error) {
	texts := stream.NewWriter()
	defer func() { err = errors.Join(err, texts.Close()) }()
	result, err := read(func(made bundle.Bundle) error {
		if err := texts.Add(made.Object); err != nil {
			return err
		}
		for _, scan := range made.ImageScans {
			if err := texts.Add(scan); err != nil {
				return err
			}
		}
		return nil
	})
	if result != nil {
		warn(s, result)
	}
	if err != nil {
		return err
	}
	if err := s.WriteFrom(f.output, texts.Copy); err != nil {
		return fmt.Errorf("write bundles: %w", err)
	}
	return nil
}

func warn(s *session.Session, result *bundle.Result) {
	for _, warning := range result.Warnings {
		s.Warn("%s", warning)
	}
}

func (f *flags) readFolders(ctx context.Context, s *session.Session, name string, paths []string, take func(bundle.Bundle) error) (*bundle.Result, error) {
	commit := f.commit
	if commit == "" {
		commit = worktree.Head(".")
	}
	files := os.DirFS(".")
	request, err := f.request(name, s.Namespace(session.LocalNamespace), commit, paths, files)
	if err != nil {
		return nil, err
	}
	source, err := f.charts.Source(s.Env)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	bundles, err := bundle.Open(ctx, files, request, source)
	if err != nil {
		return nil, err
	}
	return bundles.Each(ctx, take)
}

// readBundle reads the Bundles of --file and puts on them what the flags say.
func (f *flags) readBundle(s *session.Session, name string, take func(bundle.Bundle) error) (*bundle.Result, error) {
	data, err := s.ReadFile(f.file)
	if err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	objects, err := stream.Decode(f.file, data)
	if err != nil {
		return nil, fmt.Errorf("read bundle: %w", err)
	}
	s.WarnAll(objects.Warnings)
	if len(objects.Bundles) == 0 {
		return nil, fmt.Errorf("read bundle: %s holds no Bundle", f.file)
	}
	targets, _, err := f.targets()
	if err != nil {
		return nil, err
	}
	for _, object := range objects.Bundles {
		if object.Name == "" {
			object.Name = name
		}
		if object.Name == "" {
			return nil, session.Usage("the Bundle in %s has no name, and none is given", f.file)
		}
		object.Namespace = s.NamespaceOf(object.Namespace)
		f.override(object, name, targets)
		if err := take(bundle.Bundle{Object: object, File: f.file}); err != nil {
			return nil, err
		}
	}
	return &bundle.Result{}, nil
}

func (f *flags) override(object *fleet.Bundle, name string, targets []fleet.ClusterTarget) {
	labels := maps.Clone(object.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	maps.Copy(labels, f.labels)
	if name != "" {
		labels[fleet.RepoLabel] = name
	}
	if f.commit != "" {
		labels[fleet.CommitLabel] = f.commit
	}
	object.Labels = labels
	spec := &object.Spec
	spec.Paused = spec.Paused || f.paused
	spec.KeepResources = spec.KeepResources || f.keepResources
	spec.DeleteNamespace = spec.DeleteNamespace || f.deleteNamespace
	spec.ServiceAccount = orElse(f.serviceAccount, spec.ServiceAccount)
	spec.TargetNamespace = orElse(f.targetNamespace, spec.TargetNamespace)
	if f.syncGeneration != 0 {
		spec.ForceSyncGeneration = f.syncGeneration
	}
	if f.correctDrift.Enabled {
		spec.CorrectDrift = f.correctDrift.DeepCopy()
	}
	for _, target := range targets {
		spec.Targets = append(spec.Targets, fleet.BundleTarget{ClusterTarget: target})
		spec.TargetRestrictions = append(spec.TargetRestrictions, target)
	}
}

func orElse(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}
