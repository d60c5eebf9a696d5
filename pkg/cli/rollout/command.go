package rollout

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/pkg/cli/inspect"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/status/cause"
)

// subject is the bundle or the GitRepo that a command is about.
type subject struct {
	kind            cause.Kind
	namespace, name string
}

// String returns "bundle namespace/name".
func (s subject) String() string {
	return strings.ToLower(string(s.kind)) + " " + s.namespace + "/" + s.name
}

// Command returns `fleet rollout`.
func Command(s *session.Session) *cobra.Command {
	command := &cobra.Command{
		Use:   "rollout",
		Short: "Follow, pause and resume the rollout of a bundle or a GitRepo",
		Args: func(command *cobra.Command, args []string) error {
			if len(args) > 0 {
				return session.Usage("unknown command %q for %q; there are status, pause and resume", args[0], command.CommandPath())
			}
			return nil
		},
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(statusCommand(s), pauseCommand(s), resumeCommand(s))
	return command
}

// named checks the number of arguments of a subcommand.
func named(command *cobra.Command, args []string) error {
	if len(args) == 1 || len(args) == 2 {
		return nil
	}
	return session.Usage("%s needs the NAME of a GitRepo, or a KIND and a NAME, such as `%s bundle shop-web`", command.Name(), command.CommandPath())
}

func subjectOf(s *session.Session, args []string) (subject, error) {
	kind, name, err := inspect.KindAndName(args, cause.GitRepo)
	if err != nil {
		return subject{}, err
	}
	if kind != cause.GitRepo && kind != cause.Bundle {
		return subject{}, session.Usage("rollouts are those of bundles and GitRepos, not of %ss", strings.ToLower(string(kind)))
	}
	namespace, err := s.Workspace()
	if err != nil {
		return subject{}, err
	}
	return subject{kind, namespace, name}, nil
}
