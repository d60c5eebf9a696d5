package apply

import (
	"errors"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// IsUndeclared tells the refusal of a field that the kind does not have.
func IsUndeclared(err error) bool {
	return err != nil && strings.Contains(err.Error(), "field not declared in schema")
}

// cannotApply tells refusals of an apply that do not concern the object but the way it is sent: a list
// that holds a key twice cannot be merged by key, and some aggregated APIs know no apply.
func cannotApply(err error) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	return apierrors.IsUnsupportedMediaType(err) ||
		strings.Contains(text, "duplicate entries for key") ||
		strings.Contains(text, "failed to create typed patch object") && strings.Contains(text, "duplicate")
}

// classify gives an API server's error its class: what it refuses does not get better by asking again.
func classify(err error) error {
	var classified *fault.Error
	var status apierrors.APIStatus
	switch {
	case errors.As(err, &classified):
		return err
	case meta.IsNoMatchError(err):
		return fault.Wrap(fault.Stalled, "NoSuchKind", err)
	case !errors.As(err, &status):
		return err
	}
	switch reason := status.Status().Reason; reason {
	case metav1.StatusReasonInvalid, metav1.StatusReasonBadRequest, metav1.StatusReasonForbidden,
		metav1.StatusReasonRequestEntityTooLarge, metav1.StatusReasonMethodNotAllowed:
		return fault.Wrap(fault.Stalled, string(reason), err)
	}
	if IsUndeclared(err) || strings.Contains(err.Error(), "failed to create typed patch object") {
		return fault.Wrap(fault.Stalled, "Invalid", err)
	}
	return err
}
