package rollout

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/cause"
)

// Progress is how far one bundle is, or all bundles of a GitRepo together.
type Progress struct {
	Kind      cause.Kind `json:"kind"`
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	// Commit that is rolled out, where it is known.
	Commit string `json:"commit,omitempty"`
	// Paused by its own spec.
	Paused bool `json:"paused,omitempty"`
	fleet.RolloutStatus
	// Message says what is waited for, or what is wrong.
	Message string `json:"message,omitempty"`
	// Bundles of a GitRepo, by name.
	Bundles []Progress `json:"bundles,omitempty"`
}

// view is what was read about a subject.
type view struct {
	// repo is nil when the subject is a bundle.
	repo    *fleet.GitRepo
	bundles map[string]*fleet.Bundle
}

// progress sums up a view; commit, if not empty, is the one that is expected.
func (v view) progress(commit string) Progress {
	var bundles []Progress
	for _, bundle := range v.bundles {
		bundles = append(bundles, progressOf(bundle))
	}
	slices.SortFunc(bundles, func(a, b Progress) int { return cmp.Compare(a.Name, b.Name) })
	if v.repo == nil {
		if len(bundles) == 0 {
			return Progress{}
		}
		return bundles[0]
	}
	sum := Progress{
		Kind: cause.GitRepo, Namespace: v.repo.Namespace, Name: v.repo.Name,
		Commit: v.repo.Status.Commit, Paused: v.repo.Spec.Paused, Bundles: bundles,
	}
	sum.Phase = fleet.RolloutComplete
	for _, one := range bundles {
		sum.add(one)
	}
	if waits, halted := unread(v.repo, commit); waits != "" {
		sum.Message = waits
		switch {
		case halted:
			sum.Phase = fleet.RolloutHalted
		case sum.Phase == fleet.RolloutComplete:
			sum.Phase = fleet.RolloutProgressing
		}
	}
	return sum
}

// add counts a bundle: one that is halted halts all, and all are complete when each of them is.
func (p *Progress) add(one Progress) {
	switch {
	case one.Phase == fleet.RolloutHalted:
		p.Phase = fleet.RolloutHalted
	case one.Phase != fleet.RolloutComplete && p.Phase == fleet.RolloutComplete:
		p.Phase = fleet.RolloutProgressing
	}
	p.ToApply += one.ToApply
	p.Progressing += one.Progressing
	p.Succeeded += one.Succeeded
	p.Failed += one.Failed
	p.TimedOut += one.TimedOut
	p.Breached = p.Breached || one.Breached
	if one.NextCheck != nil && (p.NextCheck == nil || one.NextCheck.Before(p.NextCheck)) {
		p.NextCheck = one.NextCheck
	}
}

// unread says why the bundles may not be those of the newest commit, and whether that needs a person.
func unread(repo *fleet.GitRepo, commit string) (why string, halted bool) {
	if stalled := status.Find(repo.Status.Conditions, fleet.ConditionStalled); stalled != nil && status.IsTrue(repo.Status.Conditions, fleet.ConditionStalled) {
		return stalled.Message, true
	}
	at := repo.Status.Commit
	switch {
	case repo.Status.ObservedGeneration != repo.Generation:
		return "the GitRepo's spec has changed and is not looked at yet", false
	case commit != "" && !strings.HasPrefix(at, commit):
		return fmt.Sprintf("waits for commit %s; %s is stored", commit, or(at, "none")), false
	case at == "":
		return "no commit is stored yet", false
	case commit == "" && repo.Status.PollingCommit != "" && repo.Status.PollingCommit != at:
		return fmt.Sprintf("commit %s is being read", repo.Status.PollingCommit), false
	}
	return "", false
}

func progressOf(bundle *fleet.Bundle) Progress {
	p := Progress{
		Kind: cause.Bundle, Namespace: bundle.Namespace, Name: bundle.Name,
		Commit: bundle.Labels[fleet.CommitLabel], Paused: bundle.Spec.Paused,
	}
	if bundle.Status.Rollout != nil {
		p.RolloutStatus = *bundle.Status.Rollout
	}
	switch {
	case bundle.Status.Rollout == nil || bundle.Status.ObservedGeneration != bundle.Generation:
		p.Phase, p.Message = fleet.RolloutProgressing, "is not planned yet"
	case p.Phase == fleet.RolloutHalted:
		p.Message = whyHalted(bundle, p)
	case p.Phase == fleet.RolloutProgressing:
		p.Message = readyMessage(bundle)
	}
	return p
}

func whyHalted(bundle *fleet.Bundle, p Progress) string {
	switch {
	case p.Breached && bundle.Spec.Paused:
		return fmt.Sprintf("paused, and %d failed or timed out, more than maxFailures allows; the end of the pause by `fleet rollout resume` lets it go on past them", p.Failed+p.TimedOut)
	case p.Breached:
		return fmt.Sprintf("%d failed or timed out, more than maxFailures allows; push a correction, or go on with `fleet rollout resume bundle %s`", p.Failed+p.TimedOut, bundle.Name)
	case bundle.Spec.Paused:
		return "paused"
	}
	return readyMessage(bundle)
}

func readyMessage(bundle *fleet.Bundle) string {
	if ready := status.Find(bundle.Status.Conditions, fleet.ConditionReady); ready != nil {
		return ready.Message
	}
	return ""
}

// text prints a progress for people, the bundles of a GitRepo below it.
func (p Progress) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s %s/%s  %s\n", p.Kind, p.Namespace, p.Name, p.line())
	for _, one := range p.Bundles {
		fmt.Fprintf(&out, "  %s %s  %s\n", one.Kind, one.Name, one.line())
	}
	return out.String()
}

func (p Progress) line() string {
	all := p.ToApply + p.Progressing + p.Succeeded + p.Failed + p.TimedOut
	parts := []string{fmt.Sprintf("%s  %d of %d succeeded", p.Phase, p.Succeeded, all)}
	for _, part := range []struct {
		count int
		words string
	}{{p.Progressing, "on their way"}, {p.ToApply, "to come"}, {p.Failed, "failed"}, {p.TimedOut, "timed out"}} {
		if part.count > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", part.count, part.words))
		}
	}
	line := strings.Join(parts, ", ")
	if p.NextCheck != nil {
		line += "; looks again at " + p.NextCheck.UTC().Format(time.TimeOnly) + " UTC"
	}
	if p.Message != "" {
		line += "  " + strings.ReplaceAll(p.Message, "\n", " ")
	}
	return line
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}
