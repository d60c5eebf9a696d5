package author

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/cli/inventory"
	"github.com/fairlead-dev/fairlead/pkg/cli/project"
	"github.com/fairlead-dev/fairlead/pkg/cli/report"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

type renderFlags struct {
	project        project.Flags
	format, folder string
}

// pairReport is an element of what -o json prints.
type pairReport struct {
	Bundle  string           `json:"bundle"`
	Cluster string           `json:"cluster"`
	Error   string           `json:"error,omitempty"`
	Objects []map[string]any `json:"objects"`
}

// Render returns `fleet render`.
func Render(s *session.Session) *cobra.Command {
	f := &renderFlags{}
	command := &cobra.Command{
		Use:   "render [FOLDER]",
		Short: "Print the objects of every bundle on every cluster, from a repository's folder",
		Example: `  fleet render --clusters clusters.yaml
  fleet render shop -g gitrepo.yaml --clusters clusters.yaml --cluster prod
  fleet render --output-dir rendered   # a file for each cluster and bundle, with the hub's clusters`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return f.run(command.Context(), s, folderOf(args))
		},
	}
	set := command.Flags()
	f.project.AddReading(set, s)
	f.project.AddTargeting(set)
	set.StringVarP(&f.format, "output", "o", "yaml", "yaml, json or name")
	set.StringVar(&f.folder, "output-dir", "", "write DIR/CLUSTER/BUNDLE.yaml instead of printing")
	return command
}

func folderOf(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return "."
}

// side is a folder, read and targeted.
type side struct {
	result *bundle.Result
	known  inventory.Inventory
	pairs  []project.Pair
}

// load reads a working tree and targets what it gives. With a side, the error is about bundles missing in it.
func load(ctx context.Context, s *session.Session, flags *project.Flags, dir string) (*side, error) {
	request, err := flags.Request(s, dir)
	if err != nil {
		return nil, err
	}
	files, err := project.Folder(dir)
	if err != nil {
		return nil, err
	}
	result, readErr := flags.Read(ctx, s, files, request)
	if result == nil {
		return nil, readErr
	}
	if err := flags.CheckBundles(result); err != nil {
		return nil, err
	}
	for _, warning := range result.Warnings {
		s.Warn("%s", warning)
	}
	known, err := flags.Inventory(ctx, s, request.Namespace)
	if err != nil {
		return nil, err
	}
	pairs, err := project.Pairs(result.Bundles, known)
	if err != nil {
		return nil, err
	}
	return &side{result: result, known: known, pairs: pairs}, readErr
}

func (f *renderFlags) run(ctx context.Context, s *session.Session, dir string) error {
	switch f.format {
	case "yaml", "json", "name":
	default:
		return session.Usage("--output %q is none of yaml, json and name", f.format)
	}
	loaded, readErr := load(ctx, s, &f.project, dir)
	if loaded == nil {
		return readErr
	}
	if len(loaded.pairs) == 0 && len(loaded.result.Bundles) > 0 {
		s.Say("The bundles reach none of the %d clusters; `fleet explain` says why.", len(loaded.known.Clusters))
	}
	problems := []error{readErr}
	renderer := f.project.Renderer()
	var reports []pairReport
	for _, pair := range loaded.pairs {
		objects, err := renderer.Objects(ctx, pair)
		shown := pairReport{Bundle: pair.Bundle.Object.Name, Cluster: pair.Cluster.Key(), Objects: contents(objects)}
		if err != nil {
			shown.Error = err.Error()
		}
		reports = append(reports, shown)
	}
	if err := f.print(s, reports); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(append(problems, failures(reports)...)...)
}

// failures returns each error once, with the clusters it is about.
func failures(reports []pairReport) []error {
	const shown = 3
	var messages []string
	clusters := map[string][]string{}
	for _, one := range reports {
		if one.Error == "" {
			continue
		}
		if clusters[one.Error] == nil {
			messages = append(messages, one.Error)
		}
		clusters[one.Error] = append(clusters[one.Error], one.Cluster)
	}
	var problems []error
	for _, message := range messages {
		on := clusters[message]
		names := "cluster " + on[0]
		if len(on) > 1 {
			names = "clusters " + strings.Join(on[:min(shown, len(on))], ", ")
		}
		if more := len(on) - shown; more > 0 {
			names += fmt.Sprintf(" and %d more", more)
		}
		problems = append(problems, fmt.Errorf("%s: %s", names, message))
	}
	return problems
}

func contents(objects []*unstructured.Unstructured) []map[string]any {
	list := make([]map[string]any, 0, len(objects))
	for _, object := range objects {
		list = append(list, object.Object)
	}
	return list
}

func (f *renderFlags) print(s *session.Session, reports []pairReport) error {
	if f.folder != "" {
		return writeFolder(f.folder, reports)
	}
	switch f.format {
	case "json":
		data, err := json.MarshalIndent(map[string]any{"apiVersion": report.Version, "kind": "Render", "items": reports}, "", "  ")
		if err != nil {
			return fmt.Errorf("print objects: %w", err)
		}
		_, err = fmt.Fprintf(s.Out, "%s\n", data)
		return err
	case "name":
		for _, one := range reports {
			for _, object := range one.Objects {
				if _, err := fmt.Fprintf(s.Out, "%s %s %s\n", one.Cluster, one.Bundle, nameOf(object)); err != nil {
					return err
				}
			}
		}
		return nil
	}
	for _, one := range reports {
		text, err := documents(one)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprint(s.Out, text); err != nil {
			return err
		}
	}
	return nil
}

// documents returns the objects of a pair as YAML documents, each of which says whose it is.
func documents(pair pairReport) (string, error) {
	var out strings.Builder
	for _, object := range pair.Objects {
		text, err := yaml.Marshal(object)
		if err != nil {
			return "", fmt.Errorf("print %s: %w", nameOf(object), err)
		}
		fmt.Fprintf(&out, "---\n# Cluster: %s, bundle: %s\n%s", pair.Cluster, pair.Bundle, text)
	}
	return out.String(), nil
}

func writeFolder(folder string, reports []pairReport) error {
	for _, one := range reports {
		if one.Error != "" {
			// A file without objects would say that there are none.
			continue
		}
		text, err := documents(one)
		if err != nil {
			return err
		}
		dir := filepath.Join(folder, filepath.FromSlash(one.Cluster))
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return fmt.Errorf("write objects: %w", err)
		}
		// Rendered Secrets are as secret as their values.
		if err := os.WriteFile(filepath.Join(dir, one.Bundle+".yaml"), []byte(text), 0o600); err != nil {
			return fmt.Errorf("write objects: %w", err)
		}
	}
	return nil
}

func nameOf(object map[string]any) string {
	u := unstructured.Unstructured{Object: object}
	name := u.GetName()
	if u.GetNamespace() != "" {
		name = u.GetNamespace() + "/" + name
	}
	return u.GetKind() + " " + name
}
