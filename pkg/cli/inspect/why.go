package inspect

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/report"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/status/cause"
)

type whyFlags struct{ format, cluster string }

type whyReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	cause.Chain
}

// Why returns `fleet why`.
func Why(s *session.Session) *cobra.Command {
	f := &whyFlags{}
	command := &cobra.Command{
		Use:   "why KIND NAME",
		Short: "Lead from a GitRepo, bundle, deployment, cluster or group to the first thing that is wrong",
		Example: `  fleet why repo shop
  fleet why deployment shop-web --cluster prod
  fleet why cluster prod
  fleet why group all`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 2 || len(args) == 1 && strings.Contains(args[0], "/") {
				return nil
			}
			return session.Usage("why needs a KIND and a NAME, such as `fleet why repo shop`")
		},
		RunE: func(command *cobra.Command, args []string) error {
			return f.run(command.Context(), s, args)
		},
	}
	command.Flags().StringVarP(&f.format, "output", "o", "", "json or yaml")
	command.Flags().StringVar(&f.cluster, "cluster", "", "cluster of a deployment")
	return command
}

func (f *whyFlags) run(ctx context.Context, s *session.Session, args []string) error {
	kind, name, err := KindAndName(args, cause.GitRepo)
	if err != nil {
		return err
	}
	namespace, err := s.Workspace()
	if err != nil {
		return err
	}
	hub, err := s.Client()
	if err != nil {
		return err
	}
	world, err := readWorld(ctx, hub, namespace)
	if err != nil {
		return err
	}
	in := namespace
	if kind == cause.Deployment {
		if in, err = f.deploymentNamespace(world, name); err != nil {
			return err
		}
	}
	chain, found := cause.New(world).Why(kind, in, name)
	if !found {
		return fmt.Errorf("%s %s not found in namespace %s", kind, name, namespace)
	}
	shown := whyReport{APIVersion: report.Version, Kind: "Why", Chain: chain}
	return report.Print(s, f.format, shown, func() string { return describe(chain) })
}

// deploymentNamespace finds the deployment of a bundle on the cluster that is meant.
func (f *whyFlags) deploymentNamespace(world cause.World, name string) (string, error) {
	var found, clusters []string
	for i := range world.Deployments {
		bd := &world.Deployments[i]
		on := bd.Labels[fleet.ClusterLabel]
		if bd.Name == name && (f.cluster == "" || f.cluster == on || f.cluster == bd.Labels[fleet.ClusterNamespaceLabel]+"/"+on) {
			found, clusters = append(found, bd.Namespace), append(clusters, on)
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("deployment %s not found", name)
	case 1:
		return found[0], nil
	}
	return "", session.Usage("bundle %s is deployed to %d clusters; say which one with --cluster: %s", name, len(found), strings.Join(clusters, ", "))
}

// describe tells a chain in sentences.
func describe(chain cause.Chain) string {
	var out strings.Builder
	for i, item := range chain.Steps {
		if i > 0 {
			out.WriteString("because ")
		}
		switch item.Kind {
		case cause.Object:
			fmt.Fprintf(&out, "%s", item.Message)
		default:
			fmt.Fprintf(&out, "%s is %s", named(item), item.State)
			if item.Message != "" {
				fmt.Fprintf(&out, ": %s", strings.ReplaceAll(item.Message, "\n", " "))
			}
		}
		if others := chain.Others[i]; others > 0 {
			fmt.Fprintf(&out, " (and %d more)", others)
		}
		out.WriteString("\n")
		if item.ComparePatch != nil {
			out.WriteString(acceptance(*item.ComparePatch))
		}
	}
	return out.String()
}

// acceptance says what to write into fleet.yaml so that a difference is none.
func acceptance(entry fleet.ComparePatch) string {
	text, err := yaml.Marshal(map[string]any{"diff": map[string]any{"comparePatches": []fleet.ComparePatch{entry}}})
	if err != nil {
		return ""
	}
	return "to accept that, have in fleet.yaml:\n  " + strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", "\n  ") + "\n"
}

func named(item cause.Item) string {
	if item.Kind == cause.Deployment {
		return fmt.Sprintf("%s %s on %s", item.Kind, item.Name, item.Cluster)
	}
	return fmt.Sprintf("%s %s/%s", item.Kind, item.Namespace, item.Name)
}
