package controller

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/progress"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/repotest"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

var errDenied = fault.New(fault.Denied, "Restricted", "repository is not allowed")

func conditionsOf(t *testing.T, s fleet.GitRepoStatus) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, condition := range s.Conditions {
		found[condition.Type] = string(condition.Status)
	}
	return found
}

func TestObserve(t *testing.T) {
	good := cached(t, "one", "a", ready(corev1.ConditionTrue, "", ""))
	summary, _ := content.SummaryOf(good)
	applied := func(generation int64) *progress.Applied {
		return &progress.Applied{Key: progress.Key{Commit: "c1", Generation: generation}, Bundles: map[string]string{"one": summary.SpecDigest}}
	}
	for name, test := range map[string]struct {
		known     progress.Entry
		own       *fleet.Bundle
		failing   int
		wantReady string // "" is ready
		wantJob   string
		wantTrue  []string
		commit    string
		force     int64
	}{
		"all is well":          {progress.Entry{Seen: "c1", Applied: applied(2)}, good, 0, "", jobCurrent, nil, "c1", 7},
		"look fails":           {progress.Entry{Seen: "c1", Applied: applied(2), LookErr: repotest.ErrHost}, good, 0, "does not answer", jobFailed, []string{fleet.ConditionReconciling}, "c1", 7},
		"new commit is broken": {progress.Entry{Seen: "c2", Applied: applied(2), ReadErr: repotest.ErrYAML}, good, 0, "line 2", jobFailed, []string{fleet.ConditionStalled}, "c0", 3},
		"read and look fail":   {progress.Entry{Seen: "c2", Applied: applied(2), ReadErr: repotest.ErrYAML, LookErr: repotest.ErrHost}, good, 0, "line 2; and the host", jobFailed, []string{fleet.ConditionStalled}, "c0", 3},
		"refused":              {progress.Entry{LookErr: errDenied}, good, 0, "not allowed", jobFailed, []string{fleet.ConditionStalled}, "c0", 3},
		"waits":                {progress.Entry{Seen: "c1", ReadErr: repotest.ErrGone}, good, 0, "being deleted", jobInProgress, []string{fleet.ConditionReconciling}, "c0", 3},
		"older spec applied":   {progress.Entry{Seen: "c1", Applied: applied(1)}, good, 0, "", jobCurrent, nil, "c1", 3},
		"bundle fails": {progress.Entry{Seen: "c1", Applied: applied(2)}, cached(t, "one", "a", ready(corev1.ConditionFalse, fleet.ReasonError, "no such cluster group")),
			0, "Bundle one: no such cluster group", jobCurrent, nil, "c1", 7},
		"bundle is on its way":     {progress.Entry{Seen: "c1", Applied: applied(2)}, cached(t, "one", "a", nil), 0, "Bundle one: is being deployed", jobCurrent, nil, "c1", 7},
		"deployments say it first": {progress.Entry{Seen: "c1", Applied: applied(2)}, cached(t, "one", "a", nil), 1, "NotReady(1)", jobCurrent, nil, "c1", 7},
	} {
		t.Run(name, func(t *testing.T) {
			repo := repotest.Repo(func(r *fleet.GitRepo) {
				r.Generation, r.Spec.ForceSyncGeneration = 2, 7
				r.Status.Commit, r.Status.UpdateGeneration, r.Status.ObservedGeneration = "c0", 3, 1
			})
			rollup := tally.Rollup{Summary: fleet.BundleSummary{Ready: 3, DesiredReady: 3 + test.failing, NotReady: test.failing}}
			o := observation{repo: repo, known: &test.known, rollup: feed.Repo{Rollup: rollup}, own: map[string]*fleet.Bundle{"one": test.own}}
			got := observe(o, repotest.Start)
			condition := status.Find(got.Conditions, fleet.ConditionReady)
			if isReady := condition.Status == corev1.ConditionTrue; isReady != (test.wantReady == "") || !strings.Contains(condition.Message, test.wantReady) {
				t.Errorf("Ready is %s %q, want %q", condition.Status, condition.Message, test.wantReady)
			}
			conditions := conditionsOf(t, got)
			for _, kind := range []string{fleet.ConditionReconciling, fleet.ConditionStalled} {
				wantTrue := len(test.wantTrue) > 0 && test.wantTrue[0] == kind
				if (conditions[kind] == "True") != wantTrue {
					t.Errorf("%s is %s", kind, conditions[kind])
				}
			}
			if (conditions[fleet.ConditionAccepted] == "True") == (test.known.LookErr != nil && fault.ClassOf(test.known.LookErr) == fault.Denied) {
				t.Errorf("Accepted is %s", conditions[fleet.ConditionAccepted])
			}
			if got.GitJobStatus != test.wantJob || got.Commit != test.commit || got.UpdateGeneration != test.force || got.ObservedGeneration != 2 {
				t.Errorf("job %s, commit %s, update generation %d, observed %d", got.GitJobStatus, got.Commit, got.UpdateGeneration, got.ObservedGeneration)
			}
			// The same facts later change nothing: an idle GitRepo is not written.
			repo.Status = got
			if again := observe(o, repotest.Start.Add(time.Hour)); !equalStatus(again, got) {
				t.Errorf("a second pass changes the status:\n%+v\n%+v", got, again)
			}
		})
	}
}

func TestObserveWarnings(t *testing.T) {
	known := &progress.Entry{Seen: "c1", Warnings: []bundle.Warning{{File: "fleet.yaml", Message: "unknown key"}}}
	o := observation{repo: repotest.Repo(nil), known: known}
	o.repo.Status = observe(o, repotest.Start)
	warnings := status.Find(o.repo.Status.Conditions, fleet.ConditionSourceWarnings)
	if warnings == nil || !strings.HasPrefix(warnings.Message, "1: ") || !strings.Contains(warnings.Message, "unknown key") {
		t.Fatalf("warnings: %v", warnings)
	}
	for range 5000 {
		known.Warnings = append(known.Warnings, bundle.Warning{Message: "and so on and on"})
	}
	o.repo.Status = observe(o, repotest.Start)
	if n := len(status.Find(o.repo.Status.Conditions, fleet.ConditionSourceWarnings).Message); n > status.MaxMessage {
		t.Errorf("the message has %d bytes", n)
	}
	known.Warnings = nil
	if left := status.Find(observe(o, repotest.Start).Conditions, fleet.ConditionSourceWarnings); left != nil {
		t.Errorf("warnings stay: %v", left)
	}
}

func TestBegin(t *testing.T) {
	got := begin(repotest.Repo(nil), repotest.Start)
	if conditionsOf(t, got)[fleet.ConditionReady] != "False" || got.ObservedGeneration != 1 || got.GitJobStatus != jobInProgress {
		t.Errorf("status %+v", got)
	}
}

func TestNoteFitsIntoAnEvent(t *testing.T) {
	long := fault.New(fault.Stalled, "X", "%s", strings.Repeat("é", 3000))
	if text := note(long); len(text) > 1024 || !strings.HasSuffix(text, "é…") {
		t.Errorf("note has %d bytes and ends in %q", len(text), text[len(text)-6:])
	}
	if text := note(repotest.ErrYAML); text != repotest.ErrYAML.Error() {
		t.Errorf("note %q", text)
	}
}
