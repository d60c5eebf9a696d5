package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/contents"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/interests"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/ledger"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

	errPlain   = errors.New("connection refused")
	errStalled = fault.New(fault.Stalled, "Invalid", "a person must act")
	errWaits   = fault.New(fault.Waiting, target.ReasonValuesMissing, "no values yet")
)

func TestOutcome(t *testing.T) {
	created := []target.Deployment{{}}
	for name, test := range map[string]struct {
		outcome      outcome
		wantUnseen   bool
		wantAgain    time.Duration
		wantObserved bool
	}{
		"nothing to do":         {outcome{planned: true}, false, 0, true},
		"wrote":                 {outcome{planned: true, plan: target.Plan{Create: created}}, true, 0, true},
		"missed a change":       {outcome{planned: true, missed: true}, false, interests.Pause, true},
		"deleted only":          {outcome{planned: true, plan: target.Plan{Delete: created}}, false, 0, true},
		"wrote a part":          {outcome{planned: true, plan: target.Plan{Create: created, More: true}}, false, time.Millisecond, true},
		"failed to write":       {outcome{planned: true, plan: target.Plan{Create: created}, err: errPlain}, false, 0, false},
		"refused a part":        {outcome{planned: true, plan: target.Plan{Create: created, More: true}, err: errStalled}, false, 0, true},
		"could not gather":      {outcome{err: errPlain}, false, 0, false},
		"waits for values":      {outcome{err: errWaits}, false, 0, false},
		"cannot be planned":     {outcome{err: errStalled}, false, 0, true},
		"some are not rendered": {outcome{planned: true, plan: target.Plan{Unchecked: 1}}, false, 0, false},
		"one refused, one lost": {outcome{planned: true, err: errors.Join(errStalled, errPlain)}, false, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.outcome.unseen(); got != test.wantUnseen {
				t.Errorf("unseen: %v", got)
			}
			if got := test.outcome.again(time.Time{}); got != test.wantAgain {
				t.Errorf("again in %s", got)
			}
			if got := test.outcome.observed(); got != test.wantObserved {
				t.Errorf("observed: %v", got)
			}
		})
	}
}

func TestObserve(t *testing.T) {
	rollup := tally.Rollup{Summary: fleet.BundleSummary{Ready: 2, DesiredReady: 2}}
	guard := &target.Guard{Deletes: 8, Of: 9, Token: "abc"}
	for name, test := range map[string]struct {
		pass           outcome
		wantReason     string
		wantMessage    []string
		wantGeneration int64
	}{
		"all is well":      {outcome{planned: true}, "", nil, 4},
		"not all created":  {outcome{planned: true, plan: target.Plan{Missing: 3}}, "", []string{"Pending(3)"}, 4},
		"transient":        {outcome{err: errPlain}, "", []string{"connection refused"}, 3},
		"stalled":          {outcome{err: errStalled}, fleet.ReasonError, []string{"a person must act"}, 4},
		"values missing":   {outcome{err: errWaits}, target.ReasonValuesMissing, []string{"no values yet"}, 3},
		"deletes are held": {outcome{planned: true, plan: target.Plan{Guard: guard}}, fleet.ReasonError, []string{"abc", fleet.ConfirmDeletesAnnotation}, 4},
		"one cluster fails": {outcome{planned: true, plan: target.Plan{Missing: 1, Failed: []target.Failure{{Cluster: "ws/dev", Err: errStalled}}}},
			fleet.ReasonError, []string{"Pending(1) [Cluster ws/dev: held back: a person must act]"}, 4},
		"warns": {outcome{planned: true, plan: target.Plan{Warnings: []error{errStalled}}}, fleet.ReasonError, []string{"a person must act"}, 4},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := &fleet.Bundle{}
			bundle.Generation, bundle.Status.ObservedGeneration = 4, 3
			got := observe(bundle, test.pass, rollup, start)
			ready := status.Find(got.Conditions, fleet.ConditionReady)
			if ready.Reason != test.wantReason || (ready.Status == "True") != (test.wantMessage == nil) {
				t.Errorf("Ready is %+v", ready)
			}
			for _, text := range test.wantMessage {
				if !strings.Contains(ready.Message, text) {
					t.Errorf("message %q does not say %q", ready.Message, text)
				}
			}
			if got.ObservedGeneration != test.wantGeneration {
				t.Errorf("observed generation %d, want %d", got.ObservedGeneration, test.wantGeneration)
			}
		})
	}
}

// Only an edit of the targets explains that deployments go, until a pass has carried it out.
func TestRetargeted(t *testing.T) {
	everywhere := []fleet.BundleTarget{{ClusterTarget: fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}}}}
	one := []fleet.BundleTarget{{ClusterTarget: fleet.ClusterTarget{ClusterName: "c"}}}
	guard := target.Plan{Guard: &target.Guard{Deletes: 8, Of: 9, Token: "abc"}}
	doubt := target.Plan{Guard: &target.Guard{Deletes: 8, Of: 9, Token: "abc", Why: "none is listed"}}
	for name, test := range map[string]struct {
		edit        func(*fleet.Bundle)
		pass        outcome
		want, after bool
	}{
		"no edit":                             {func(*fleet.Bundle) {}, outcome{planned: true}, false, false},
		"another image":                       {func(b *fleet.Bundle) { b.Spec.Helm = &fleet.HelmOptions{Version: "2"} }, outcome{planned: true}, false, false},
		"another image while deletions wait":  {func(b *fleet.Bundle) { b.Spec.Helm = &fleet.HelmOptions{Version: "2"} }, outcome{planned: true, plan: guard}, false, false},
		"other targets":                       {func(b *fleet.Bundle) { b.Spec.Targets = one }, outcome{planned: true}, true, false},
		"other targets, not carried out":      {func(b *fleet.Bundle) { b.Spec.Targets = one }, outcome{planned: true, err: errPlain}, true, true},
		"other targets, cannot be planned":    {func(b *fleet.Bundle) { b.Spec.Targets = one }, outcome{err: errStalled}, true, true},
		"other targets, and it is in doubt":   {func(b *fleet.Bundle) { b.Spec.Targets = one }, outcome{planned: true, plan: doubt}, true, true},
		"other targets, others' deletes wait": {func(b *fleet.Bundle) { b.Spec.Targets = one }, outcome{planned: true, plan: guard}, true, false},
		"another hub's status":                {func(b *fleet.Bundle) { b.Status.ObservedTargets = "" }, outcome{planned: true}, true, false},
		"another hub's status, deletes waits": {func(b *fleet.Bundle) { b.Status.ObservedTargets = "" }, outcome{planned: true, plan: guard}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			bundle := &fleet.Bundle{}
			bundle.Spec.Targets = everywhere
			bundle.Status = observe(bundle, outcome{planned: true}, tally.Rollup{}, start)
			bundle.Generation++
			test.edit(bundle)
			if got := retargeted(bundle); got != test.want {
				t.Errorf("a person's edit: %v", got)
			}
			bundle.Status = observe(bundle, test.pass, tally.Rollup{}, start)
			if got := retargeted(bundle); got != test.after {
				t.Errorf("and after the pass: %v", got)
			}
		})
	}
}

func TestTooEarly(t *testing.T) {
	for name, test := range map[string]struct {
		pass outcome
		want time.Duration
	}{
		"nothing":                  {outcome{planned: true}, 0},
		"a fault":                  {outcome{err: errors.New("no")}, 0},
		"the cache":                {outcome{err: fmt.Errorf("list: %w", ledger.ErrBehind)}, behindRetry},
		"a change of the bundle":   {outcome{err: fmt.Errorf("read bundle: %w", contents.ErrChanged)}, changedRetry},
		"deployments just written": {outcome{planned: true, plan: target.Plan{Create: []target.Deployment{{}}}}, behindRetry},
	} {
		if got := test.pass.tooEarly(); got != test.want {
			t.Errorf("%s: waits %s, want %s", name, got, test.want)
		}
		if err := fault.Retried(test.pass.err); test.want > 0 && err != nil {
			t.Errorf("%s: is an error that is logged: %v", name, err)
		}
	}
}
