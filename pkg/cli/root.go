package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/pkg/cli/apply"
	"github.com/fairlead-dev/fairlead/pkg/cli/author"
	"github.com/fairlead-dev/fairlead/pkg/cli/inspect"
	"github.com/fairlead-dev/fairlead/pkg/cli/lint"
	"github.com/fairlead-dev/fairlead/pkg/cli/preview"
	"github.com/fairlead-dev/fairlead/pkg/cli/rollout"
	"github.com/fairlead-dev/fairlead/pkg/cli/schema"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

// groups are the headings of the help, in order.
var groups = []struct{ id, title string }{
	{"author", "Write and check, without a cluster:"},
	{"inspect", "Look at a hub and steer it:"},
	{"other", "Other commands:"},
}

func newRoot(s *session.Session) *cobra.Command {
	root := &cobra.Command{
		Use:   "fleet",
		Short: "Bundles from git, for many clusters",
		Long: `fleet shows what folders become on your clusters before anything is pushed, and what runs where afterwards.

Exit codes: 0 done, 1 failed, 2 wrong command line (fleet diff: 0 same, 1 different, 2 failed;
fleet rollout status: 0 complete, 3 progressing, 4 halted).`,
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(command, args[0])
		},
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	root.SetFlagErrorFunc(flagError)
	s.AddFlags(root.PersistentFlags())
	root.SetUsageTemplate(usageTemplate)
	for _, group := range groups {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
	}
	for group, commands := range map[string][]*cobra.Command{
		"author": {apply.Command(s), preview.Target(s), preview.Deploy(s), preview.Test(s), author.Render(s), author.Explain(s), author.Diff(s),
			lint.Command(s), schema.Command(s)},
		"inspect": {inspect.Get(s), inspect.Status(s), inspect.Why(s), inspect.Version(s), rollout.Command(s)},
	} {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	root.AddCommand(options(s))
	root.SetHelpCommandGroupID("other")
	root.SetCompletionCommandGroupID("other")
	usageErrors(root)
	return root
}

// unknownCommand returns the error for a word that is no command, with those that were probably meant.
func unknownCommand(command *cobra.Command, word string) error {
	command.SuggestionsMinimumDistance = 2
	if near := command.SuggestionsFor(word); len(near) > 0 {
		return session.Usage("unknown command %q for %q; did you mean %s?", word, command.CommandPath(), strings.Join(near, " or "))
	}
	return session.Usage("unknown command %q for %q", word, command.CommandPath())
}

// usageErrors makes a wrong number of arguments a usage error everywhere.
func usageErrors(command *cobra.Command) {
	if check := command.Args; check != nil {
		command.Args = func(command *cobra.Command, args []string) error {
			err := check(command, args)
			if err == nil || session.CodeOf(err) == session.ExitUsage {
				return err
			}
			return session.Usage("%s", strings.TrimSuffix(err.Error(), "\n"))
		}
	}
	for _, child := range command.Commands() {
		usageErrors(child)
	}
}

// options returns the command that lists the flags of all commands, so that no other help has to.
func options(s *session.Session) *cobra.Command {
	return &cobra.Command{
		Use:     "options",
		Short:   "List the flags that every command has",
		GroupID: "other",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(s.Out, "Flags of every command:\n%s", command.Root().PersistentFlags().FlagUsages())
			return err
		},
	}
}

// usageTemplate is cobra's without the flags that every command has.
const usageTemplate = `Usage:{{if .Runnable}}
  {{.UseLine}}{{end}}{{if .HasAvailableSubCommands}}
  {{.CommandPath}} [command]{{end}}{{if gt (len .Aliases) 0}}

Aliases:
  {{.NameAndAliases}}{{end}}{{if .HasExample}}

Examples:
{{.Example}}{{end}}{{if .HasAvailableSubCommands}}{{$commands := .Commands}}{{range $group := .Groups}}

{{.Title}}{{range $commands}}{{if (and (eq .GroupID $group.ID) (or .IsAvailableCommand (eq .Name "help")))}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{if not .AllChildCommandsHaveGroup}}
{{range $commands}}{{if (and (eq .GroupID "") .IsAvailableCommand)}}
  {{rpad .Name .NamePadding}} {{.Short}}{{end}}{{end}}{{end}}{{end}}{{if and .HasParent .HasAvailableLocalFlags}}

Flags:
{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}{{end}}

Use "{{.Root.Name}} options" for the flags of every command{{if .HasAvailableSubCommands}}, "{{.CommandPath}} [command] --help" for one command{{end}}.
`
