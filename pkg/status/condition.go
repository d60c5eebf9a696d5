package status

import (
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// MaxMessage bounds the message of a condition, in bytes.
const MaxMessage = 4096

// Find returns the condition of a type, or nil.
func Find(conditions []fleet.Condition, kind string) *fleet.Condition {
	for i := range conditions {
		if conditions[i].Type == kind {
			return &conditions[i]
		}
	}
	return nil
}

// IsTrue says that the condition is there and True.
func IsTrue(conditions []fleet.Condition, kind string) bool {
	condition := Find(conditions, kind)
	return condition != nil && condition.Status == corev1.ConditionTrue
}

// Set puts a condition into the list and says whether the list changed. Times in wanted do not count:
// lastTransitionTime changes with the status, lastUpdateTime with anything, and an equal condition keeps
// both. A True condition has no reason (Rancher's dashboard shows any reason Error as a failure); one that is
// not True has a message. Ready is never Unknown, which the dashboard would show as an error: it is False
// instead.
func Set(conditions *[]fleet.Condition, wanted fleet.Condition, now time.Time) bool {
	wanted = normal(wanted)
	stamp := now.UTC().Format(time.RFC3339)
	present := Find(*conditions, wanted.Type)
	if present == nil {
		wanted.LastTransitionTime, wanted.LastUpdateTime = stamp, stamp
		*conditions = append(*conditions, wanted)
		return true
	}
	if present.Status == wanted.Status && present.Reason == wanted.Reason && present.Message == wanted.Message {
		return false
	}
	if present.Status != wanted.Status || present.LastTransitionTime == "" {
		present.LastTransitionTime = stamp
	}
	present.LastUpdateTime = stamp
	present.Status, present.Reason, present.Message = wanted.Status, wanted.Reason, wanted.Message
	return true
}

func normal(condition fleet.Condition) fleet.Condition {
	if condition.Type == fleet.ConditionReady && condition.Status == corev1.ConditionUnknown {
		condition.Status = corev1.ConditionFalse
	}
	if condition.Status == corev1.ConditionTrue {
		condition.Reason = ""
	}
	if condition.Status == corev1.ConditionFalse && condition.Message == "" &&
		condition.Type != fleet.ConditionProgressing && condition.Type != fleet.ConditionDegraded { // of which it is good news
		condition.Message = condition.Type + " is not reached yet"
		if condition.Reason != "" {
			condition.Message = condition.Reason
		}
	}
	condition.Message = Cut(condition.Message, MaxMessage)
	return condition
}

// Touch says that a condition was looked at anew although it says what it said.
func Touch(conditions []fleet.Condition, kind string, now time.Time) {
	if condition := Find(conditions, kind); condition != nil {
		condition.LastUpdateTime = now.UTC().Format(time.RFC3339)
	}
}

// Remove takes a condition out and says whether it was there.
func Remove(conditions *[]fleet.Condition, kind string) bool {
	for i := range *conditions {
		if (*conditions)[i].Type == kind {
			*conditions = append((*conditions)[:i:i], (*conditions)[i+1:]...)
			return true
		}
	}
	return false
}

// SetReady sets the Ready condition: True without a message, else False with it.
func SetReady(conditions *[]fleet.Condition, reason, message string, now time.Time) bool {
	condition := fleet.Condition{Type: fleet.ConditionReady, Status: corev1.ConditionTrue}
	if message != "" {
		condition = fleet.Condition{Type: fleet.ConditionReady, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	}
	return Set(conditions, condition, now)
}

// Cut shortens text so that it takes at most limit bytes in JSON, and marks the cut. What is stored is JSON, which
// writes some characters in six bytes.
func Cut(text string, limit int) string {
	const mark = "…"
	if Costliest*len(text) <= limit {
		return text
	}
	used, end := 0, 0
	for at, r := range text {
		used += costOf(r, text[at:])
		if used > limit {
			return text[:end] + mark
		}
		if used <= limit-len(mark) {
			end = at + width(r, text[at:])
		}
	}
	return text
}

// Costliest is the most bytes of JSON for one of text.
const Costliest = 6

// Cost is how many bytes a text takes in JSON, as API servers write it, without the quotes.
func Cost(text string) int {
	sum := 0
	for at, r := range text {
		sum += costOf(r, text[at:])
	}
	return sum
}

// costOf is the cost of a character, with which rest begins.
func costOf(r rune, rest string) int {
	switch r {
	case '"', '\\', '\b', '\f', '\n', '\r', '\t':
		return 2
	case '<', '>', '&', '\u2028', '\u2029':
		return Costliest
	case utf8.RuneError:
		if width(r, rest) == 1 {
			return Costliest
		}
	}
	if r < ' ' {
		return Costliest
	}
	return utf8.RuneLen(r)
}

// width is how many bytes a character takes; one that cannot be read is one byte.
func width(r rune, rest string) int {
	if r == utf8.RuneError {
		_, size := utf8.DecodeRuneInString(rest)
		return size
	}
	return utf8.RuneLen(r)
}
