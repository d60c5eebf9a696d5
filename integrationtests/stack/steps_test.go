package stack_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/integrationtests/stack"
)

func TestStepErrorNamesTheInnerStep(t *testing.T) {
	var told []stack.Step
	steps := stack.Steps{Notify: func(step stack.Step) { told = append(told, step) }}
	cause := errors.New("no room")
	err := steps.Run(t.Context(), "outer", "outer.log", func(ctx context.Context) error {
		return steps.Run(ctx, "inner", "inner.log", func(context.Context) error { return cause })
	})
	var failed *stack.StepError
	if !errors.As(err, &failed) || failed.Step != "inner" || failed.Log != "inner.log" || !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	for _, part := range []string{"inner", "no room", "inner.log"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q does not name %q", err, part)
		}
	}
	var names []string
	for _, step := range told {
		names = append(names, step.Name)
	}
	if got := strings.Join(names, " "); got != "outer inner inner outer" {
		t.Errorf("told of %s", got)
	}
	if done := steps.Done(); len(done) != 2 || done[0].Err == nil {
		t.Errorf("done: %+v", done)
	}
}

func TestAwait(t *testing.T) {
	asked := 0
	if err := stack.Await(t.Context(), "it works", func(context.Context) error {
		if asked++; asked < 3 {
			return errors.New("not yet")
		}
		return nil
	}); err != nil || asked != 3 {
		t.Errorf("asked %d times, %v", asked, err)
	}
	dead := errors.New("dead")
	if err := stack.Await(t.Context(), "it works", func(context.Context) error { return stack.Hopeless(dead) }); !errors.Is(err, dead) {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	err := stack.Await(ctx, "it works", func(context.Context) error {
		cancel()
		return errors.New("last answer")
	})
	if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "last answer") {
		t.Errorf("got %v", err)
	}
}
