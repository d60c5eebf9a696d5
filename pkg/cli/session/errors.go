package session

import (
	"errors"
	"fmt"
)

// Exit codes of `fleet`.
const (
	ExitOK = 0
	// ExitFailed is for everything that went wrong, except in diff, where it means "there are differences".
	ExitFailed = 1
	// ExitUsage is for a command line that cannot be understood, and for a diff that failed.
	ExitUsage = 2
	// ExitProgressing and ExitHalted say how a rollout is that is not complete.
	ExitProgressing = 3
	ExitHalted      = 4
)

// ExitError is an error that ends the program with a code of its own.
type ExitError struct {
	Code int
	// Usage says that the command line is wrong, so that its help helps.
	Usage bool
	// Err is printed; nil prints nothing, because the command said everything itself.
	Err error
}

// Error returns the message of the wrapped error.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns the wrapped error.
func (e *ExitError) Unwrap() error { return e.Err }

// Usage returns an error about the command line: one sentence that says what is wrong.
func Usage(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Usage: true, Err: fmt.Errorf(format, args...)}
}

// CodeOf returns the exit code that an error stands for.
func CodeOf(err error) int {
	var exit *ExitError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &exit):
		return exit.Code
	}
	return ExitFailed
}
