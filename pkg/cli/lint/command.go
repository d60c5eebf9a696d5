package lint

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/pkg/cli/project"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

type flags struct {
	project project.Flags
	format  string
	strict  bool
}

// Command returns `fleet lint`.
func Command(s *session.Session) *cobra.Command {
	f := &flags{}
	command := &cobra.Command{
		Use:   "lint [FOLDER]",
		Short: "Find what is wrong in a repository's folder, with file and line",
		Long: `Find what is wrong in a repository's folder, with file and line. With --clusters everything is rendered for
them; without, what does not depend on a cluster is rendered. Exit code 1 says that there are errors, or with --strict anything.`,
		Example: `  fleet lint
  fleet lint -g gitrepo.yaml --clusters clusters.yaml --strict
  fleet lint -o github     # annotations in a pull request
  fleet lint -o sarif > lint.sarif`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			dir := "."
			if len(args) > 0 {
				dir = args[0]
			}
			return f.run(command.Context(), s, dir)
		},
	}
	set := command.Flags()
	f.project.AddReading(set, s)
	f.project.AddTargeting(set)
	set.StringVarP(&f.format, "output", "o", "text", "text, json, github or sarif")
	set.BoolVar(&f.strict, "strict", false, "warnings make the command fail too")
	return command
}

func (f *flags) run(ctx context.Context, s *session.Session, dir string) error {
	write, known := formats[f.format]
	if !known {
		return session.Usage("--output %q is none of text, json, github and sarif", f.format)
	}
	findings, err := f.find(ctx, s, dir)
	if err != nil {
		return err
	}
	if err := write(s.Out, findings); err != nil {
		return err
	}
	for _, finding := range findings {
		if finding.Severity == Error || f.strict {
			return &session.ExitError{Code: session.ExitFailed}
		}
	}
	return nil
}

func (f *flags) find(ctx context.Context, s *session.Session, dir string) ([]Finding, error) {
	request, err := f.project.Request(s, dir)
	if err != nil {
		return nil, err
	}
	files, err := project.Folder(dir)
	if err != nil {
		return nil, err
	}
	result, readErr := f.project.Read(ctx, s, files, request)
	if result == nil {
		return nil, readErr
	}
	if err := f.project.CheckBundles(result); err != nil {
		return nil, err
	}
	findings := read(result, request.Name)
	if f.project.Clusters != "" {
		inventory, err := f.project.Inventory(ctx, s, request.Namespace)
		if err != nil {
			return nil, err
		}
		more, err := targeted(ctx, result.Bundles, inventory, f.project.Renderer())
		if err != nil {
			return nil, err
		}
		return sorted(append(findings, more...)), nil
	}
	more, err := alone(ctx, result.Bundles, f.project.Renderer())
	if err != nil {
		return nil, err
	}
	findings = append(findings, more...)
	return sorted(findings), nil
}
