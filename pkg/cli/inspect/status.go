package inspect

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/report"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/status/cause"
)

type statusFlags struct {
	format             string
	allNamespaces, all bool
}

// statusReport is what -o json prints.
type statusReport struct {
	APIVersion string       `json:"apiVersion"`
	Kind       string       `json:"kind"`
	Items      []cause.Item `json:"items"`
}

// Status returns `fleet status`.
func Status(s *session.Session) *cobra.Command {
	f := &statusFlags{}
	command := &cobra.Command{
		Use:   "status [[KIND] NAME]",
		Short: "Show GitRepos, their bundles and clusters as a tree, worst first",
		Example: `  fleet status
  fleet status shop            # one GitRepo
  fleet status bundle shop-web --all`,
		Args: cobra.MaximumNArgs(2),
		RunE: func(command *cobra.Command, args []string) error {
			return f.run(command.Context(), s, args)
		},
	}
	set := command.Flags()
	set.StringVarP(&f.format, "output", "o", "", "json or yaml")
	set.BoolVarP(&f.allNamespaces, "all-namespaces", "A", false, "look in all namespaces")
	set.BoolVar(&f.all, "all", false, "show what is ready too")
	return command
}

func (f *statusFlags) run(ctx context.Context, s *session.Session, args []string) error {
	kind, name, err := KindAndName(args, cause.GitRepo)
	if err != nil {
		return err
	}
	if f.allNamespaces && name != "" {
		return session.Usage("--all-namespaces and a NAME exclude each other")
	}
	namespace := ""
	if !f.allNamespaces {
		if namespace, err = s.Workspace(); err != nil {
			return err
		}
	}
	hub, err := s.Client()
	if err != nil {
		return err
	}
	world, err := readWorld(ctx, hub, namespace)
	if err != nil {
		return err
	}
	graph := cause.New(world)
	items := graph.Sources()
	if name != "" {
		item, found := graph.Tree(kind, namespace, name)
		if !found {
			return fmt.Errorf("%s %s not found in namespace %s", kind, name, namespace)
		}
		items = []cause.Item{item}
	}
	if len(items) == 0 {
		s.Say("No GitRepos, HelmOps or Bundles found in %s.", place(namespace))
	}
	shown := statusReport{APIVersion: report.Version, Kind: "Status", Items: items}
	return report.Print(s, f.format, shown, func() string {
		var out strings.Builder
		for _, item := range items {
			f.write(&out, item, 0)
		}
		return out.String()
	})
}

// write prints an item and what is below it; what is ready is only counted.
func (f *statusFlags) write(out *strings.Builder, item cause.Item, depth int) {
	fmt.Fprintf(out, "%s%s  %s", indent(depth), title(item, depth), item.State)
	if item.Message != "" {
		fmt.Fprintf(out, "  %s", strings.ReplaceAll(item.Message, "\n", " "))
	}
	out.WriteString("\n")
	ready := map[cause.Kind]int{}
	for _, child := range item.Children {
		if child.IsReady() && child.Message == "" && !f.all {
			ready[child.Kind]++
			continue
		}
		f.write(out, child, depth+1)
	}
	for _, kind := range []cause.Kind{cause.Cluster, cause.Bundle, cause.Deployment} {
		if n := ready[kind]; n > 0 {
			fmt.Fprintf(out, "%s%d %s  %s\n", indent(depth+1), n, plural(kind, n, item.Kind), fleet.Ready)
		}
	}
}

// title names an item; what its place in the tree says already is left out.
func title(item cause.Item, depth int) string {
	switch {
	case item.Kind == cause.Deployment && depth > 0:
		return "on " + item.Cluster
	case item.Kind == cause.Object:
		return item.Name
	case depth == 0 && item.Namespace != "":
		return string(item.Kind) + " " + item.Namespace + "/" + item.Name
	}
	return string(item.Kind) + " " + item.Name
}

func plural(kind cause.Kind, n int, parent cause.Kind) string {
	word := strings.ToLower(string(kind))
	switch {
	case kind == cause.Deployment && parent == cause.Bundle:
		word = "cluster"
	case kind == cause.Deployment:
		word = "bundle"
	}
	if n == 1 {
		return word
	}
	return word + "s"
}

// KindAndName reads "NAME", "KIND NAME" or "KIND/NAME"; a NAME alone is of the kind fallback.
func KindAndName(args []string, fallback cause.Kind) (cause.Kind, string, error) {
	if len(args) == 1 {
		word, name, both := strings.Cut(args[0], "/")
		if !both {
			return fallback, args[0], nil
		}
		args = []string{word, name}
	}
	if len(args) == 0 {
		return fallback, "", nil
	}
	kind, err := resourceNamed(args[0])
	if err != nil {
		return "", "", err
	}
	return cause.Kind(kind.kind), args[1], nil
}

func indent(depth int) string { return strings.Repeat("  ", depth) }
