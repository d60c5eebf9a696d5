package fault

import (
	"errors"
	"fmt"
	"testing"
)

func TestClassSurvivesWrapping(t *testing.T) {
	base := errors.New("no such branch")
	for name, test := range map[string]struct {
		err         error
		wantClass   Class
		wantReason  string
		needsPerson bool
	}{
		"nil":          {nil, "", "Error", false},
		"plain":        {base, Transient, "Error", false},
		"stalled":      {Wrap(Stalled, "BranchNotFound", base), Stalled, "BranchNotFound", true},
		"wrapped":      {fmt.Errorf("poll: %w", Wrap(Denied, "Policy", base)), Denied, "Policy", true},
		"outer wins":   {Wrap(Waiting, "Dependency", Wrap(Stalled, "X", base)), Waiting, "Dependency", false},
		"joined":       {errors.Join(base, New(Stalled, "Y", "broken")), Stalled, "Y", true},
		"wrapping nil": {Wrap(Stalled, "X", nil), "", "Error", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ClassOf(test.err); got != test.wantClass {
				t.Errorf("class %q, want %q", got, test.wantClass)
			}
			if got := ReasonOf(test.err); got != test.wantReason {
				t.Errorf("reason %q, want %q", got, test.wantReason)
			}
			if got := NeedsPerson(test.err); got != test.needsPerson {
				t.Errorf("needs a person: %v, want %v", got, test.needsPerson)
			}
		})
	}
}
