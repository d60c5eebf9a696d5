package fault

import (
	"cmp"
	"errors"
	"slices"
)

// Retried returns the error if it is worth a retry with back-off; others wait for an event.
func Retried(err error) error {
	if HasTransient(err) {
		return err
	}
	return nil
}

// HasTransient says that err is transient or one of those joined in it is.
func HasTransient(err error) bool {
	switch wrapped := err.(type) { //nolint:errorlint // the tree is walked by hand: every branch counts
	case nil:
		return false
	case *Error:
		return wrapped.Class == Transient
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(wrapped.Unwrap(), HasTransient)
	case interface{ Unwrap() error }:
		return HasTransient(wrapped.Unwrap())
	}
	return true
}

// shownErrors bounds the siblings named in one error.
const shownErrors = 5

// Join joins the errors of siblings: a few of them, those that are worth a retry first, and how many more.
func Join(problems ...error) error {
	problems = slices.DeleteFunc(slices.Clone(problems), func(err error) bool { return err == nil })
	if len(problems) <= shownErrors {
		return errors.Join(problems...)
	}
	slices.SortStableFunc(problems, func(a, b error) int { return cmp.Compare(rank(a), rank(b)) })
	left := len(problems) - shownErrors
	more := New(ClassOf(problems[0]), ReasonOf(problems[0]), "and %d more", left)
	return errors.Join(append(problems[:shownErrors:shownErrors], more)...)
}

func rank(err error) int {
	if HasTransient(err) {
		return 0
	}
	return 1
}
