package preview

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/cli/charts"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/cli/stream"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/target/match"
	"github.com/fairlead-dev/fairlead/pkg/target/options"
	"github.com/fairlead-dev/fairlead/pkg/target/values"
)

type testFlags struct {
	file, bundleFile, group, name, target string
	labels, groupLabels                   map[string]string
	quiet                                 bool
}

// Test returns the deprecated `fleet test`.
func Test(s *session.Session) *cobra.Command {
	f := &testFlags{}
	command := &cobra.Command{
		Use:    "test [PATH]",
		Short:  "Match a bundle's targets to one cluster and print its objects (deprecated)",
		Hidden: true,
		Args:   cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			s.Warn("test is deprecated; fleet explain and fleet render apply the hub's rules")
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return f.run(command.Context(), s, dir)
		},
	}
	set := command.Flags()
	set.StringVarP(&f.file, "file", "f", "", "file, relative to PATH, that takes the place of fleet.yaml")
	set.StringVarP(&f.bundleFile, "bundle-file", "b", "", "file with a Bundle, instead of PATH (- is standard input)")
	set.BoolVarP(&f.quiet, "quiet", "q", false, "print which target matched, and no objects")
	set.StringVarP(&f.group, "group", "g", "default", "cluster group the cluster is in")
	set.StringVarP(&f.name, "name", "N", "", "name of the cluster")
	set.StringToStringVarP(&f.labels, "label", "l", nil, "labels of the cluster (key=value,…)")
	set.StringToStringVarP(&f.groupLabels, "group-label", "L", nil, "labels of the cluster group (key=value,…)")
	set.StringVarP(&f.target, "target", "t", "", "name of the target to use, whether it matches or not")
	return command
}

func (f *testFlags) run(ctx context.Context, s *session.Session, dir string) error {
	object, err := f.read(ctx, s, dir)
	if err != nil {
		return err
	}
	chosen, err := f.match(object)
	if err != nil {
		return err
	}
	s.Say("# Matched: %s", chosen.Name)
	if f.quiet {
		return nil
	}
	merged := options.Resolve(object.Spec.BundleDeploymentOptions, chosen.BundleDeploymentOptions)
	rendered, err := values.Compile(merged.Helm).Render(values.Cluster{
		Namespace: object.Namespace, Name: f.name, Labels: f.labels,
	})
	if err != nil {
		return err
	}
	merged.Helm = rendered.Helm
	if object.Spec.ContentsID != "" {
		return fmt.Errorf("test bundle %s: its files are stored apart from it; make it with `fleet apply -o`, which leaves them in the Bundle", object.Name)
	}
	manifest := content.Manifest{Resources: object.Spec.Resources}
	stored, err := manifest.Store()
	if err != nil {
		return err
	}
	objects, err := render.Objects(ctx, render.Input{
		BundleID: object.Name, ManifestID: stored.ID, Manifest: manifest, Options: merged,
	}, render.Capabilities{}, nil)
	if err != nil {
		return err
	}
	for _, one := range objects {
		text, err := stream.Encode(one.Object)
		if err != nil {
			return err
		}
		if _, err := s.Out.Write(text); err != nil {
			return err
		}
	}
	return nil
}

func (f *testFlags) read(ctx context.Context, s *session.Session, dir string) (*fleet.Bundle, error) {
	if f.bundleFile != "" {
		data, err := s.ReadFile(f.bundleFile)
		if err != nil {
			return nil, fmt.Errorf("read bundle: %w", err)
		}
		objects, err := stream.Decode(f.bundleFile, data)
		if err != nil {
			return nil, fmt.Errorf("read bundle: %w", err)
		}
		s.WarnAll(objects.Warnings)
		if len(objects.Bundles) != 1 {
			return nil, fmt.Errorf("read bundle: %s holds %d Bundles, want one", f.bundleFile, len(objects.Bundles))
		}
		return objects.Bundles[0], nil
	}
	source, err := (&charts.Flags{}).Source(s.Env)
	if err != nil {
		return nil, err
	}
	defer source.Close()
	result, err := bundle.Read(ctx, os.DirFS(dir), bundle.Request{
		Name: "test", Namespace: s.Namespace(session.LocalNamespace),
		Bundles: []fleet.BundlePath{{Base: ".", Options: f.file}}, Unrestricted: true, InlineValues: true, ImageScans: true,
	}, source)
	if err != nil {
		return nil, err
	}
	for _, warning := range result.Warnings {
		s.Warn("%s", warning)
	}
	if len(result.Bundles) == 0 {
		return nil, fmt.Errorf("%s gives no bundle", dir)
	}
	return result.Bundles[0].Object, nil
}

// match returns the first target that selects the cluster of the flags; customizations count like targets.
func (f *testFlags) match(object *fleet.Bundle) (*fleet.BundleTarget, error) {
	cluster := match.Cluster{Namespace: object.Namespace, Name: f.name, Labels: f.labels}
	groups, _ := match.Groups([]fleet.ClusterGroup{{
		ObjectMeta: metav1.ObjectMeta{Namespace: object.Namespace, Name: f.group, Labels: f.groupLabels},
		Spec:       fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{}},
	}})
	for i := range object.Spec.Targets {
		candidate := &object.Spec.Targets[i]
		if f.target != "" {
			if candidate.Name == f.target {
				return candidate, nil
			}
			continue
		}
		selector, err := match.NewSelector(candidate.ClusterTarget)
		if err != nil {
			return nil, fmt.Errorf("target %q: %w", candidate.Name, err)
		}
		if selector.Matches(cluster, groups) {
			return candidate, nil
		}
	}
	return nil, errors.New("no match found")
}
