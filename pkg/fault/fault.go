package fault

import (
	"errors"
	"fmt"
)

// Class says who can do something about an error.
type Class string

// The four classes.
const (
	Transient Class = "Transient"
	Waiting   Class = "Waiting"
	Stalled   Class = "Stalled"
	Denied    Class = "Denied"
)

// Error is an error with its class and a reason in one CamelCase word, fit for a condition.
type Error struct {
	Class  Class
	Reason string
	Err    error
}

// Error returns the message of the wrapped error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the wrapped error.
func (e *Error) Unwrap() error { return e.Err }

// New returns an error of a class; the message is formatted as by fmt.Errorf.
func New(class Class, reason, format string, args ...any) error {
	return &Error{Class: class, Reason: reason, Err: fmt.Errorf(format, args...)}
}

// Wrap gives err a class and a reason; nil stays nil.
func Wrap(class Class, reason string, err error) error {
	if err == nil {
		return nil
	}
	return &Error{Class: class, Reason: reason, Err: err}
}

// ClassOf returns the class of the outermost classified error in err's tree, and Transient when there
// is none; for nil it returns "".
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	var classified *Error
	if errors.As(err, &classified) {
		return classified.Class
	}
	return Transient
}

// ReasonOf returns the reason of the outermost classified error in err's tree, or "Error".
func ReasonOf(err error) string {
	var classified *Error
	if errors.As(err, &classified) && classified.Reason != "" {
		return classified.Reason
	}
	return "Error"
}

// NeedsPerson says that retrying alone does not help.
func NeedsPerson(err error) bool {
	class := ClassOf(err)
	return class == Stalled || class == Denied
}
