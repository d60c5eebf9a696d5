package rollout

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

func bundle(name string, rollout fleet.RolloutStatus) *fleet.Bundle {
	return &fleet.Bundle{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: name, Generation: 3},
		Status:     fleet.BundleStatus{ObservedGeneration: 3, Rollout: &rollout},
	}
}

func changed(bundle *fleet.Bundle, change func(*fleet.Bundle)) *fleet.Bundle {
	change(bundle)
	return bundle
}

func viewOf(repo *fleet.GitRepo, bundles ...*fleet.Bundle) view {
	v := view{repo: repo, bundles: map[string]*fleet.Bundle{}}
	for _, one := range bundles {
		v.bundles[one.Name] = one
	}
	return v
}

func TestProgress(t *testing.T) {
	repo := func(change func(*fleet.GitRepo)) *fleet.GitRepo {
		r := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "shop", Generation: 2}}
		r.Status.ObservedGeneration, r.Status.Commit, r.Status.PollingCommit = 2, "abcdef", "abcdef"
		if change != nil {
			change(r)
		}
		return r
	}
	complete := fleet.RolloutStatus{Phase: fleet.RolloutComplete, Succeeded: 3}
	moving := fleet.RolloutStatus{Phase: fleet.RolloutProgressing, Succeeded: 1, Progressing: 1, ToApply: 2}
	breached := fleet.RolloutStatus{Phase: fleet.RolloutHalted, Failed: 1, TimedOut: 1, ToApply: 4, Breached: true}
	paused := func(b *fleet.Bundle) { b.Spec.Paused = true }
	for name, test := range map[string]struct {
		view     view
		commit   string
		want     string
		wantCode int
	}{
		"bundle":            {view: viewOf(nil, bundle("a", complete)), want: "Bundle ws/a  Complete  3 of 3 succeeded\n"},
		"bundle on its way": {view: viewOf(nil, bundle("a", moving)), want: "Bundle ws/a  Progressing  1 of 4 succeeded, 1 on their way, 2 to come\n", wantCode: 3},
		"halted and paused": {view: viewOf(nil, changed(bundle("a", breached), paused)), want: "Bundle ws/a  Halted  0 of 6 succeeded, 4 to come, 1 failed, 1 timed out  paused, and 2 failed or timed out, more than maxFailures allows; the end of the pause by `fleet rollout resume` lets it go on past them\n", wantCode: 4},
		"bundle, halted":    {view: viewOf(nil, bundle("a", breached)), want: "Bundle ws/a  Halted  0 of 6 succeeded, 4 to come, 1 failed, 1 timed out  2 failed or timed out, more than maxFailures allows; push a correction, or go on with `fleet rollout resume bundle a`\n", wantCode: 4},
		"bundle, paused":    {view: viewOf(nil, changed(bundle("a", fleet.RolloutStatus{Phase: fleet.RolloutHalted, ToApply: 1}), paused)), want: "Bundle ws/a  Halted  0 of 1 succeeded, 1 to come  paused\n", wantCode: 4},
		"bundle, not mended": {view: viewOf(nil, changed(bundle("a", fleet.RolloutStatus{Phase: fleet.RolloutHalted}), func(b *fleet.Bundle) {
			b.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionReady, Status: corev1.ConditionFalse, Message: "no such chart"}}
		})), want: "Bundle ws/a  Halted  0 of 0 succeeded  no such chart\n", wantCode: 4},
		"bundle not planned":  {view: viewOf(nil, changed(bundle("a", complete), func(b *fleet.Bundle) { b.Generation++ })), want: "Bundle ws/a  Progressing  3 of 3 succeeded  is not planned yet\n", wantCode: 3},
		"bundle never seen":   {view: viewOf(nil, changed(bundle("a", complete), func(b *fleet.Bundle) { b.Status.Rollout = nil })), want: "Bundle ws/a  Progressing  0 of 0 succeeded  is not planned yet\n", wantCode: 3},
		"repo":                {view: viewOf(repo(nil), bundle("b", complete), bundle("a", complete)), want: "GitRepo ws/shop  Complete  6 of 6 succeeded\n  Bundle a  Complete  3 of 3 succeeded\n  Bundle b  Complete  3 of 3 succeeded\n"},
		"repo without any":    {view: viewOf(repo(nil)), want: "GitRepo ws/shop  Complete  0 of 0 succeeded\n"},
		"one is on its way":   {view: viewOf(repo(nil), bundle("a", complete), bundle("b", moving)), want: "GitRepo ws/shop  Progressing  4 of 7 succeeded, 1 on their way, 2 to come\n  Bundle a  Complete  3 of 3 succeeded\n  Bundle b  Progressing  1 of 4 succeeded, 1 on their way, 2 to come\n", wantCode: 3},
		"one is halted":       {view: viewOf(repo(nil), changed(bundle("a", fleet.RolloutStatus{Phase: fleet.RolloutHalted, ToApply: 1}), paused), bundle("b", moving)), want: "GitRepo ws/shop  Halted  1 of 5 succeeded, 1 on their way, 3 to come\n  Bundle a  Halted  0 of 1 succeeded, 1 to come  paused\n  Bundle b  Progressing  1 of 4 succeeded, 1 on their way, 2 to come\n", wantCode: 4},
		"repo not looked at":  {view: viewOf(repo(func(r *fleet.GitRepo) { r.Generation++ })), want: "GitRepo ws/shop  Progressing  0 of 0 succeeded  the GitRepo's spec has changed and is not looked at yet\n", wantCode: 3},
		"repo never read":     {view: viewOf(repo(func(r *fleet.GitRepo) { r.Status.Commit = "" })), want: "GitRepo ws/shop  Progressing  0 of 0 succeeded  no commit is stored yet\n", wantCode: 3},
		"repo is being read":  {view: viewOf(repo(func(r *fleet.GitRepo) { r.Status.PollingCommit = "123456" })), want: "GitRepo ws/shop  Progressing  0 of 0 succeeded  commit 123456 is being read\n", wantCode: 3},
		"expected commit":     {view: viewOf(repo(nil)), commit: "abc", want: "GitRepo ws/shop  Complete  0 of 0 succeeded\n"},
		"another is expected": {view: viewOf(repo(nil)), commit: "123", want: "GitRepo ws/shop  Progressing  0 of 0 succeeded  waits for commit 123; abcdef is stored\n", wantCode: 3},
		"repo cannot be read": {view: viewOf(repo(func(r *fleet.GitRepo) {
			r.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionStalled, Status: corev1.ConditionTrue, Message: "no such branch"}}
		}), bundle("a", complete)), want: "GitRepo ws/shop  Halted  3 of 3 succeeded  no such branch\n  Bundle a  Complete  3 of 3 succeeded\n", wantCode: 4},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.view.progress(test.commit)
			if got.text() != test.want {
				t.Errorf("got\n%swant\n%s", got.text(), test.want)
			}
			if code := session.CodeOf(codeOf(got)); code != test.wantCode {
				t.Errorf("exit code %d, want %d", code, test.wantCode)
			}
		})
	}
}
