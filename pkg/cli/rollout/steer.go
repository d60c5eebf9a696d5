package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/report"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/status/cause"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// Change is what was done to one object.
type Change struct {
	Kind      cause.Kind `json:"kind"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	// Changed says that something was written.
	Changed bool `json:"changed"`
	Paused  bool `json:"paused"`
	// AcceptedFailures is up to how many failures the rollout goes on although that is more than maxFailures.
	AcceptedFailures int `json:"acceptedFailures,omitempty"`
}

func pauseCommand(s *session.Session) *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:   "pause [KIND] NAME",
		Short: "Stop a rollout: changes are staged and go nowhere until it is resumed",
		Long: `Stop the rollout of a GitRepo's bundles, or of one bundle, by its spec.paused. Clusters keep what they run,
and later commits do not end the pause.`,
		Example: "  fleet rollout pause shop\n  fleet rollout pause bundle shop-web",
		Args:    named,
		RunE: func(command *cobra.Command, args []string) error {
			return steer(command.Context(), s, args, format, pause)
		},
	}
	command.Flags().StringVarP(&format, "output", "o", "", "json or yaml")
	return command
}

func resumeCommand(s *session.Session) *cobra.Command {
	var format string
	command := &cobra.Command{
		Use:   "resume [KIND] NAME",
		Short: "Let a paused or halted rollout go on",
		Long: `End the pause of a GitRepo or a bundle. A rollout that halted because more failed than maxFailures allows goes
on too: until more fail than have failed now. A change of the bundle ends that.`,
		Example: "  fleet rollout resume shop\n  fleet rollout resume bundle shop-web",
		Args:    named,
		RunE: func(command *cobra.Command, args []string) error {
			return steer(command.Context(), s, args, format, resume)
		},
	}
	command.Flags().StringVarP(&format, "output", "o", "", "json or yaml")
	return command
}

// steering changes what a view holds.
type steering func(ctx context.Context, hub client.Client, seen view) ([]Change, error)

func steer(ctx context.Context, s *session.Session, args []string, format string, what steering) error {
	about, err := subjectOf(s, args)
	if err != nil {
		return err
	}
	if format != "" && format != "json" && format != "yaml" {
		return session.Usage("--output %q is none of json and yaml", format)
	}
	hub, err := s.Client()
	if err != nil {
		return err
	}
	seen, err := follower{hub: hub, about: about}.read(ctx)
	if err != nil {
		return err
	}
	changes, err := what(ctx, hub, seen)
	printed := report.Print(s, format, document{report.Version, "RolloutChange", changes}, func() string { return text(changes) })
	return errors.Join(err, printed)
}

func text(changes []Change) string {
	var out strings.Builder
	for _, change := range changes {
		word := "resumed"
		switch {
		case !change.Changed && change.Paused:
			word = "is paused already"
		case !change.Changed:
			word = "is not paused, and not halted by failures"
		case change.Paused:
			word = "paused"
		case change.AcceptedFailures > 0:
			word = fmt.Sprintf("resumed: goes on until more than %d fail", change.AcceptedFailures)
		}
		fmt.Fprintf(&out, "%s %s/%s %s\n", strings.ToLower(string(change.Kind)), change.Namespace, change.Name, word)
	}
	return out.String()
}

func pause(ctx context.Context, hub client.Client, seen view) ([]Change, error) {
	if repo := seen.repo; repo != nil {
		change := Change{Kind: cause.GitRepo, Namespace: repo.Namespace, Name: repo.Name, Paused: true, Changed: !repo.Spec.Paused}
		if !change.Changed {
			return []Change{change}, nil
		}
		return []Change{change}, patch(ctx, hub, repo, map[string]any{"spec": map[string]any{"paused": true}})
	}
	var changes []Change
	for _, bundle := range seen.bundles {
		change := Change{Kind: cause.Bundle, Namespace: bundle.Namespace, Name: bundle.Name, Paused: true}
		change.Changed = !bundle.Spec.Paused || bundle.Annotations[fleet.HoldAnnotation] != "true"
		changes = append(changes, change)
		if !change.Changed {
			continue
		}
		if err := patch(ctx, hub, bundle, hold("true", true)); err != nil {
			return changes, err
		}
	}
	return changes, nil
}

// hold is the patch that pauses a bundle and keeps it paused, or with nil and false the opposite.
func hold(annotation any, paused bool) map[string]any {
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{fleet.HoldAnnotation: annotation}},
		"spec":     map[string]any{"paused": paused},
	}
}

func resume(ctx context.Context, hub client.Client, seen view) ([]Change, error) {
	var changes []Change
	if repo := seen.repo; repo != nil {
		return resumeRepo(ctx, hub, repo, seen.bundles)
	}
	for _, bundle := range seen.bundles {
		change, err := resumeBundle(ctx, hub, bundle)
		if err != nil {
			return changes, err
		}
		changes = append(changes, change)
	}
	return changes, nil
}

// resumeRepo ends the pause of a GitRepo, and lets its bundles go on that failures halt. They come first: whoever
// writes the end of the pause into a bundle keeps what is accepted by then.
func resumeRepo(ctx context.Context, hub client.Client, repo *fleet.GitRepo, bundles map[string]*fleet.Bundle) ([]Change, error) {
	var changes []Change
	for _, name := range slices.Sorted(maps.Keys(bundles)) {
		bundle := bundles[name]
		accepted, err := acceptFailures(ctx, hub, bundle, breach(bundle))
		if err != nil {
			return changes, err
		}
		if accepted > 0 {
			changes = append(changes, Change{Kind: cause.Bundle, Namespace: bundle.Namespace, Name: bundle.Name, Changed: true, AcceptedFailures: accepted})
		}
	}
	change := Change{Kind: cause.GitRepo, Namespace: repo.Namespace, Name: repo.Name, Changed: repo.Spec.Paused}
	if change.Changed {
		if err := patch(ctx, hub, repo, map[string]any{"spec": map[string]any{"paused": false}}); err != nil {
			return changes, err
		}
	}
	return slices.Insert(changes, 0, change), nil
}

// resumeBundle ends the pause of a bundle, unless its GitRepo is paused: that would pause it again.
func resumeBundle(ctx context.Context, hub client.Client, bundle *fleet.Bundle) (Change, error) {
	change := Change{Kind: cause.Bundle, Namespace: bundle.Namespace, Name: bundle.Name}
	if name := bundle.Labels[fleet.RepoLabel]; name != "" && bundle.Spec.Paused {
		var repo fleet.GitRepo
		err := hub.Get(ctx, client.ObjectKey{Namespace: bundle.Namespace, Name: name}, &repo)
		if client.IgnoreNotFound(err) != nil {
			return change, fmt.Errorf("read gitrepo %s/%s: %w", bundle.Namespace, name, err)
		}
		if err == nil && repo.Spec.Paused {
			return change, fmt.Errorf("bundle %s/%s is paused with all of its GitRepo; `fleet rollout resume gitrepo %s` ends that", bundle.Namespace, bundle.Name, name)
		}
	}
	failures := breach(bundle) // of the version that the end of the pause rolls out
	if bundle.Spec.Paused || bundle.Annotations[fleet.HoldAnnotation] != "" {
		change.Changed = true
		if err := patch(ctx, hub, bundle, hold(nil, false)); err != nil {
			return change, err
		}
	}
	accepted, err := acceptFailures(ctx, hub, bundle, failures)
	change.AcceptedFailures = accepted
	change.Changed = change.Changed || accepted > 0
	return change, err
}

// breach returns how many failures halt a bundle's rollout; 0 when they do not. What is not planned yet has none: the
// status speaks of another version.
func breach(bundle *fleet.Bundle) int {
	rollout := bundle.Status.Rollout
	if rollout == nil || !rollout.Breached || bundle.Status.ObservedGeneration != bundle.Generation {
		return 0
	}
	return rollout.Failed + rollout.TimedOut
}

// acceptFailures lets a bundle's present generation go on in spite of so many failures, if there are any, and returns
// them.
func acceptFailures(ctx context.Context, hub client.Client, bundle *fleet.Bundle, failures int) (int, error) {
	if failures == 0 {
		return 0, nil
	}
	return failures, patch(ctx, hub, bundle, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		fleet.AcceptedFailuresAnnotation: target.AcceptFailures(bundle.Generation, failures),
	}}})
}

// patch writes a merge patch; the object is then as it is stored.
func patch(ctx context.Context, hub client.Client, object client.Object, content map[string]any) error {
	data, err := json.Marshal(content)
	if err != nil {
		return fmt.Errorf("patch %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	if err := hub.Patch(ctx, object, client.RawPatch(types.MergePatchType, data)); err != nil {
		return fmt.Errorf("patch %s/%s: %w", object.GetNamespace(), object.GetName(), err)
	}
	return nil
}
