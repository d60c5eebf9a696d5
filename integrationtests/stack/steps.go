package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Step is one part of a run that people wait for.
type Step struct {
	Name string
	// Done is false when the step begins.
	Done bool
	// Took is how long it took, and Err how it ended, once it is done.
	Took time.Duration
	Err  error
}

// Steps runs steps and remembers how long each took. Steps may run at the same time. The zero value is
// ready for use.
type Steps struct {
	// Notify, when set, is told when a step begins and when it is done, one call at a time.
	Notify func(Step)

	mu   sync.Mutex
	done []Step
}

// Run runs one step. Its error is a *StepError that names the step, or an inner one, and the log.
func (s *Steps) Run(ctx context.Context, name, log string, body func(context.Context) error) error {
	s.tell(Step{Name: name})
	began := time.Now()
	err := body(ctx)
	var inner *StepError
	if err != nil && !errors.As(err, &inner) {
		err = &StepError{Step: name, Log: log, Err: err}
	}
	s.tell(Step{Name: name, Done: true, Took: time.Since(began), Err: err})
	return err
}

func (s *Steps) tell(step Step) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if step.Done {
		s.done = append(s.done, step)
	}
	if s.Notify != nil {
		s.Notify(step)
	}
}

// Done returns the steps that are done, in the order in which they ended.
func (s *Steps) Done() []Step {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.done)
}

// StepError says which step failed and which log says more.
type StepError struct {
	Step string
	// Log is a file, or a folder of files; empty when the error says it all.
	Log string
	Err error
}

func (e *StepError) Error() string {
	if e.Log == "" {
		return fmt.Sprintf("%s: %v", e.Step, e.Err)
	}
	return fmt.Sprintf("%s: %v\nlog: %s", e.Step, e.Err, e.Log)
}

func (e *StepError) Unwrap() error { return e.Err }
