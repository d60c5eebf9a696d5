package fault

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

var (
	errPlain   = errors.New("connection refused")
	errStalled = New(Stalled, "Invalid", "a person must act")
	errWaits   = New(Waiting, "ValuesMissing", "no values yet")
	errBusy    = New(Transient, "Busy", "try later")
)

func TestHasTransient(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want bool
	}{
		"none":                        {nil, false},
		"plain":                       {errPlain, true},
		"classified":                  {errBusy, true},
		"wrapped":                     {fmt.Errorf("create: %w", errStalled), false},
		"wrapped plain":               {fmt.Errorf("create: %w", errPlain), true},
		"class hides the cause":       {Wrap(Stalled, "X", errPlain), false},
		"waiting":                     {errWaits, false},
		"sibling of one that stalled": {errors.Join(errStalled, fmt.Errorf("update: %w", errPlain)), true},
		"all stalled":                 {errors.Join(errStalled, errWaits), false},
		"two verbs":                   {fmt.Errorf("%w and %w", errStalled, errBusy), true},
	} {
		t.Run(name, func(t *testing.T) {
			if got := HasTransient(test.err); got != test.want {
				t.Errorf("transient: %v, want %v", got, test.want)
			}
			if got := Retried(test.err); (got != nil) != test.want {
				t.Errorf("retried: %v", got)
			}
		})
	}
}

func TestJoinIsShort(t *testing.T) {
	if Join(nil, nil) != nil || Join() != nil {
		t.Error("no errors joined are an error")
	}
	var many []error
	for i := range 1000 {
		many = append(many, nil, New(Stalled, "Invalid", "deployment %d is refused for a reason", i))
	}
	stalled := Join(many...)
	if len(stalled.Error()) > 500 || !strings.Contains(stalled.Error(), "and 995 more") {
		t.Errorf("error %q", stalled)
	}
	if HasTransient(stalled) || !NeedsPerson(stalled) {
		t.Error("the count of the others changes the class")
	}
	many = append(many, errPlain)
	if mixed := Join(many...); !HasTransient(mixed) || !strings.Contains(mixed.Error(), errPlain.Error()) {
		t.Error("the one that is worth a retry is left out")
	}
}
