package faultproxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Rule does something to the requests it matches. The first matching rule counts.
type Rule struct {
	Match func(Request) bool
	Do    Fault
}

// Fault is what happens to a request.
type Fault struct {
	status     *metav1.Status
	empty      bool
	loseAnswer bool
	cut        bool
	expire     bool
	twice      bool
	holdBack   time.Duration
}

// Fail answers with an error of the API server: 403, 429, 500, 503 or 504.
func Fail(code int) Fault {
	reasons := map[int]metav1.StatusReason{
		http.StatusForbidden: metav1.StatusReasonForbidden, http.StatusTooManyRequests: metav1.StatusReasonTooManyRequests,
		http.StatusInternalServerError: metav1.StatusReasonInternalError, http.StatusServiceUnavailable: metav1.StatusReasonServiceUnavailable,
		http.StatusGatewayTimeout: metav1.StatusReasonTimeout,
	}
	status := failure(code, reasons[code])
	if code == http.StatusTooManyRequests {
		status.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
	}
	return Fault{status: status}
}

// Empty answers a list, or the list that a watch begins with, with no objects and the resource version the
// API server has. What changes later is delivered.
func Empty() Fault { return Fault{empty: true} }

// LoseAnswer carries the request out and cuts the connection in place of the answer.
func LoseAnswer() Fault { return Fault{loseAnswer: true} }

// Cut ends the connection without an answer.
func Cut() Fault { return Fault{cut: true} }

// Expire answers a watch with 410 Gone.
func Expire() Fault { return Fault{expire: true} }

// Twice has every event of a watch delivered two times, whatever else happens to it.
func (f Fault) Twice() Fault {
	f.twice = true
	return f
}

// HoldBack delivers each event of a watch so much later.
func HoldBack(delay time.Duration) Fault { return Fault{holdBack: delay} }

func failure(code int, reason metav1.StatusReason) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusFailure, Code: int32(code), Reason: reason,
		Message: fmt.Sprintf("the fault proxy says %d", code),
	}
}

// gone is the event by which an API server ends a watch that is too far behind.
func gone() ([]byte, error) {
	status, err := json.Marshal(failure(http.StatusGone, metav1.StatusReasonExpired))
	if err != nil {
		return nil, err
	}
	return json.Marshal(metav1.WatchEvent{Type: "ERROR", Object: runtimeRaw(status)})
}
