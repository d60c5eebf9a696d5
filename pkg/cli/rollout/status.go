package rollout

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/report"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/status/cause"
)

type statusFlags struct {
	format, commit string
	watch          bool
	timeout        time.Duration
}

// document is what -o json prints.
type document struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Items      any    `json:"items"`
}

func statusCommand(s *session.Session) *cobra.Command {
	f := &statusFlags{}
	command := &cobra.Command{
		Use:   "status [KIND] NAME",
		Short: "Say how far a rollout is, or follow it to its end",
		Long: `Say how far the rollout of a GitRepo's bundles, or of one bundle, is.

Exit codes: 0 complete, 1 failed to find out, 2 wrong command line, 3 still progressing (with --watch: when
--timeout is over), 4 halted: paused, more failures than maxFailures, or an error that a person must mend.`,
		Example: `  fleet rollout status shop
  fleet rollout status bundle shop-web -o json
  git push && fleet rollout status shop --commit "$(git rev-parse HEAD)" --watch --timeout 30m`,
		Args: named,
		RunE: func(command *cobra.Command, args []string) error {
			return f.run(command.Context(), s, args)
		},
	}
	set := command.Flags()
	set.StringVarP(&f.format, "output", "o", "", "json or yaml; with --watch only how it ended is printed")
	set.StringVar(&f.commit, "commit", "", "a GitRepo's commit (or the start of it) to wait for, before its bundles count")
	set.BoolVarP(&f.watch, "watch", "w", false, "wait until the rollout is complete or halted")
	set.DurationVar(&f.timeout, "timeout", 0, "how long to wait with --watch; 0 waits without end")
	return command
}

func (f *statusFlags) run(ctx context.Context, s *session.Session, args []string) error {
	about, err := subjectOf(s, args)
	if err != nil {
		return err
	}
	switch {
	case f.commit != "" && about.kind != cause.GitRepo:
		return session.Usage("--commit is for GitRepos")
	case f.timeout != 0 && !f.watch:
		return session.Usage("--timeout goes with --watch")
	case f.format != "" && f.format != "json" && f.format != "yaml":
		return session.Usage("--output %q is none of json and yaml", f.format)
	}
	hub, err := s.Client()
	if err != nil {
		return err
	}
	ended, err := f.wait(ctx, s, follower{hub: hub, about: about, commit: f.commit})
	if err != nil {
		return err
	}
	if f.format != "" || !f.watch {
		err = report.Print(s, f.format, document{report.Version, "Rollout", []Progress{ended}}, ended.text)
	}
	return errors.Join(err, codeOf(ended))
}

// wait returns the progress as it is, or with --watch as it is at the end.
func (f *statusFlags) wait(ctx context.Context, s *session.Session, follow follower) (Progress, error) {
	if !f.watch {
		now, err := follow.read(ctx)
		return now.progress(f.commit), err
	}
	limited := ctx
	if f.timeout > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, f.timeout)
		defer cancel()
	}
	last := ""
	follow.show = func(p Progress) error {
		if text := p.text(); f.format == "" && text != last {
			last = text
			_, err := fmt.Fprint(s.Out, text)
			return err
		}
		return nil
	}
	ended, err := follow.toTheEnd(ctx, limited)
	if err != nil && errors.Is(limited.Err(), context.DeadlineExceeded) && ctx.Err() == nil && ended.Name != "" {
		s.Say("%s is still progressing after %s", follow.about, f.timeout)
		return ended, nil
	}
	return ended, err
}

// codeOf returns the error whose exit code tells how a rollout is.
func codeOf(p Progress) error {
	switch p.Phase {
	case fleet.RolloutComplete:
		return nil
	case fleet.RolloutHalted:
		return &session.ExitError{Code: session.ExitHalted}
	}
	return &session.ExitError{Code: session.ExitProgressing}
}
