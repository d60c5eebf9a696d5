package preview

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/inventory"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/cli/stream"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

type targetFlags struct {
	bundleFile, clusters string
	list                 bool
}

// Target returns `fleet target`.
func Target(s *session.Session) *cobra.Command {
	f := &targetFlags{}
	command := &cobra.Command{
		Use:   "target -b FILE",
		Short: "Print the Content and the BundleDeployments that a Bundle gives",
		Long: `Print the Content and the BundleDeployments that a Bundle gives: for every cluster it reaches, with all options
merged and templates rendered. Clusters and groups come from the hub, or from a file.`,
		Example: `  # Without a cluster: bundles from folders, clusters from a file
  fleet apply shop app -o - | fleet target -b - --clusters clusters.yaml

  # With the clusters of the hub
  fleet target -b bundle.yaml -n fleet-default`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if f.bundleFile == "" {
				return session.Usage("target needs a Bundle: --bundle-file FILE, or - for standard input")
			}
			return f.run(command.Context(), s)
		},
	}
	set := command.Flags()
	set.StringVarP(&f.bundleFile, "bundle-file", "b", "", "file with Bundles, as `fleet apply -o` writes them (- is standard input)")
	set.BoolVarP(&f.list, "list-inputs", "l", false, "print the clusters and groups that were looked at on standard error")
	set.StringVar(&f.clusters, "clusters", "", "file with Clusters, ClusterGroups, BundleNamespaceMappings and Namespaces that stand in for the hub")
	return command
}

func (f *targetFlags) run(ctx context.Context, s *session.Session) error {
	data, err := s.ReadFile(f.bundleFile)
	if err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	objects, err := stream.Decode(f.bundleFile, data)
	if err != nil {
		return fmt.Errorf("read bundle: %w", err)
	}
	s.WarnAll(objects.Warnings)
	if len(objects.Bundles) == 0 {
		return fmt.Errorf("read bundle: %s holds no Bundle", f.bundleFile)
	}
	var namespaces []string
	for _, bundle := range objects.Bundles {
		bundle.Namespace = s.NamespaceOf(bundle.Namespace)
		namespaces = append(namespaces, bundle.Namespace)
	}
	known, err := inventory.Load(ctx, s, f.clusters, namespaces...)
	if err != nil {
		return err
	}
	if f.list {
		if err := f.printInputs(s, objects.Bundles, known); err != nil {
			return err
		}
	}
	var problems []error
	for _, bundle := range objects.Bundles {
		problems = append(problems, printTargets(s, bundle, known))
	}
	return errors.Join(problems...)
}

func (f *targetFlags) printInputs(s *session.Session, bundles []*fleet.Bundle, known inventory.Inventory) error {
	var all []any
	for i := range known.Clusters {
		known.Clusters[i].SetGroupVersionKind(fleet.GroupVersion.WithKind("Cluster"))
		all = append(all, known.Clusters[i])
	}
	for i := range known.Groups {
		known.Groups[i].SetGroupVersionKind(fleet.GroupVersion.WithKind("ClusterGroup"))
		all = append(all, known.Groups[i])
	}
	for i := range known.Mappings {
		known.Mappings[i].SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleNamespaceMapping"))
		all = append(all, known.Mappings[i])
	}
	for _, bundle := range bundles {
		all = append(all, map[string]any{
			"bundle": bundle.Namespace + "/" + bundle.Name,
			"spec": map[string]any{
				"targets": bundle.Spec.Targets, "targetRestrictions": bundle.Spec.TargetRestrictions,
				"targetCustomizationMode": bundle.Spec.TargetCustomizationMode,
			},
		})
	}
	text, err := stream.Encode(all...)
	if err != nil {
		return err
	}
	_, err = s.ErrOut.Write(text)
	return err
}

// printTargets prints what one Bundle gives.
func printTargets(s *session.Session, bundle *fleet.Bundle, known inventory.Inventory) error {
	if bundle.Spec.ValuesHash != "" {
		return fmt.Errorf("target bundle %s/%s: its Helm values are in a Secret of the hub; make it with `fleet apply -o`, which leaves them in the Bundle", bundle.Namespace, bundle.Name)
	}
	if bundle.Spec.ContentsID != "" {
		return fmt.Errorf("target bundle %s/%s: its files are stored apart from it; make it with `fleet apply -o`, which leaves them in the Bundle", bundle.Namespace, bundle.Name)
	}
	stored, err := content.Manifest{Resources: bundle.Spec.Resources}.Store()
	if err != nil {
		return fmt.Errorf("target bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	objects, err := stored.Objects()
	if err != nil {
		return err
	}
	deployments, failed := deploymentsOf(s, bundle, stored.ID, known)
	if deployments == nil && failed != nil {
		return failed
	}
	var all []any
	for _, object := range append(objects.Chunks, objects.Head) {
		object.SetGroupVersionKind(fleet.GroupVersion.WithKind("Content"))
		all = append(all, object)
	}
	for _, deployment := range deployments {
		all = append(all, deployment)
	}
	text, err := stream.Encode(all...)
	if err != nil {
		return err
	}
	_, err = s.Out.Write(text)
	return errors.Join(failed, err)
}

// deploymentsOf returns the deployments that the hub would create for a new Bundle in its first pass, with
// their values in place. With deployments, the error is about clusters that are missing among them.
func deploymentsOf(s *session.Session, bundle *fleet.Bundle, manifestID string, known inventory.Inventory) ([]*fleet.BundleDeployment, error) {
	clusters, groups, err := known.For(bundle)
	if err != nil {
		return nil, err
	}
	snapshot := target.Snapshot{Bundle: withoutLimit(bundle, len(clusters)), ManifestID: manifestID, Clusters: clusters, Groups: groups}
	targeted, _, err := target.Targets(snapshot)
	if err != nil {
		return nil, err
	}
	plan, err := target.NewPlan(snapshot)
	if err != nil {
		return nil, err
	}
	options := map[string]fleet.BundleDeploymentOptions{}
	for _, one := range targeted {
		options[one.Cluster.Key()] = one.Options
	}
	var list []*fleet.BundleDeployment
	for _, created := range plan.Create {
		list = append(list, withValues(created, options[created.Cluster]))
	}
	for _, warning := range plan.Warnings {
		s.Warn("%v", warning)
	}
	for _, cluster := range plan.Waiting {
		s.Warn("cluster %s has no namespace for deployments yet, so %s is not deployed there", cluster, bundle.Name)
	}
	return list, failures(bundle, plan.Failed)
}

func failures(bundle *fleet.Bundle, failed []target.Failure) error {
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("target bundle %s/%s on cluster %s: %w%s", bundle.Namespace, bundle.Name, failed[0].Cluster, failed[0].Err, andMore(len(failed)-1))
}

func andMore(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %d more)", n)
}

// withoutLimit returns the bundle with a rollout that creates everything in one pass, as far as its
// partitions let it; steps of other kinds would show only the first.
func withoutLimit(bundle *fleet.Bundle, clusters int) *fleet.Bundle {
	strategy := &fleet.RolloutStrategy{}
	if bundle.Spec.RolloutStrategy != nil {
		strategy = bundle.Spec.RolloutStrategy.DeepCopy()
	}
	limit := max(clusters, 1)
	strategy.MaxNew, strategy.MaxConcurrency = &limit, nil
	if kind := strategy.Type; kind != nil && *kind != fleet.RolloutPartitioned {
		all := fleet.RolloutAll
		strategy.Type = &all
	}
	changed := *bundle
	changed.Spec.RolloutStrategy = strategy
	return &changed
}

// withValues returns the object of a deployment with the values that the hub would keep in a Secret.
func withValues(deployment target.Deployment, options fleet.BundleDeploymentOptions) *fleet.BundleDeployment {
	object := deployment.Object
	object.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeployment"))
	object.Spec.ValuesHash = ""
	if object.Spec.StagedDeploymentID != "" {
		object.Spec.StagedOptions = options
	}
	if object.Spec.DeploymentID != "" {
		object.Spec.Options = options
	}
	return object
}
