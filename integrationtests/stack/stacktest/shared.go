package stacktest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
)

// shownLines of each program's log are printed when a test fails.
const shownLines = 40

// Shared is a stack that the tests of one package use together.
type Shared struct {
	options stack.Options
	once    sync.Once
	stack   *stack.Stack
	dir     string
	err     error
}

// Share returns a stack that is started when it is first asked for. Folder, binaries and programs need not
// be in the options.
func Share(options stack.Options) *Shared { return &Shared{options: options} }

// Get returns the stack, started if this is the first call. When it does not start, or one of its
// processes has ended by itself, the test fails at once.
func (s *Shared) Get(t testing.TB) *stack.Stack {
	t.Helper()
	s.once.Do(func() { s.err = s.start(t) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	if err := s.stack.Err(); err != nil {
		t.Fatal(err)
	}
	return s.stack
}

func (s *Shared) start(t testing.TB) error {
	ctx := context.Background() // not the test's, which the stack outlives
	dir, err := os.MkdirTemp("", "fairlead-stack-")
	if err != nil {
		return fmt.Errorf("start a stack: %w", err)
	}
	s.dir = dir
	options := s.options
	options.Dir = dir
	if options.Binaries, err = kube.FindBinaries(ctx, "", os.Stderr); err != nil {
		return err
	}
	if options.Programs, err = stack.BuildPrograms(ctx, os.Stderr); err != nil {
		return err
	}
	options.Steps = &stack.Steps{Notify: func(step stack.Step) {
		if step.Done {
			t.Logf("%s: %s", step.Name, step.Took)
		}
	}}
	s.stack, err = stack.Start(ctx, options)
	return err
}

// Run runs a package's tests, stops the stack and returns the exit code for os.Exit.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if s.stack != nil {
		stopped := s.stack.Stop()
		if code != 0 || stopped != nil {
			fmt.Fprint(os.Stderr, s.stack.LogTails(shownLines))
			fmt.Fprintf(os.Stderr, "logs are kept in %s\n", s.dir)
			fmt.Fprintln(os.Stderr, errors.Join(stopped, s.stack.RemoveData()))
			return max(code, 1)
		}
	}
	if code == 0 && s.dir != "" {
		if err := os.RemoveAll(s.dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return code
}
