package render

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const (
	// maxMessage keeps an error fit for a condition.
	maxMessage = 1500
	// minSecret is the length from which a value counts as one that must not be repeated; shorter ones are
	// words like "true", and parts of every message.
	minSecret = 6
)

// quotedTemplate is Helm's repetition of a text given to tpl, which may come from values.
var quotedTemplate = regexp.MustCompile(`(?s)(cannot parse template|error during tpl function execution for) ".*?[^\\]"`)

// Explain returns what went wrong while Helm rendered or this package did as an error for people: class
// fault.Stalled, reason RenderFailed, with the bundle's name, short, and without the bundle's values.
// Errors of a context that ended, and errors that were explained before, keep their class. Whoever runs
// Helm's actions on a Release passes the errors of rendering through it.
func Explain(in Input, err error) error {
	var classified *fault.Error
	switch {
	case err == nil, errors.As(err, &classified):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(fault.Transient, ReasonRenderFailed, fmt.Errorf("render bundle %s: %w", in.BundleID, err))
	}
	message := quotedTemplate.ReplaceAllString(err.Error(), "$1 its argument")
	message = strings.TrimSpace(redact(message, secrets(in)))
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return fault.New(fault.Stalled, ReasonRenderFailed, "render bundle %s: %s", in.BundleID, message)
}

// secrets returns the texts among the values that are long enough to be one, longest first.
func secrets(in Input) []string {
	if in.Options.Helm == nil || in.Options.Helm.Values == nil {
		return nil
	}
	var found []string
	collectTexts(in.Options.Helm.Values.Data, &found)
	slices.SortFunc(found, func(a, b string) int {
		if len(a) != len(b) {
			return len(b) - len(a)
		}
		return strings.Compare(a, b)
	})
	return slices.Compact(found)
}

func collectTexts(value any, found *[]string) {
	switch value := value.(type) {
	case string:
		if len(value) >= minSecret {
			*found = append(*found, value)
		}
	case map[string]any:
		for _, item := range value {
			collectTexts(item, found)
		}
	case []any:
		for _, item := range value {
			collectTexts(item, found)
		}
	}
}

// redact replaces values in a message, but not where the message says which file it speaks of.
func redact(message string, values []string) string {
	if len(values) == 0 {
		return message
	}
	words := strings.SplitAfter(message, " ")
	var out strings.Builder
	var text strings.Builder
	flush := func() {
		part := text.String()
		for _, value := range values {
			part = strings.ReplaceAll(part, value, "***")
		}
		out.WriteString(part)
		text.Reset()
	}
	for _, word := range words {
		if isFileName(word) {
			flush()
			out.WriteString(word)
			continue
		}
		text.WriteString(word)
	}
	flush()
	return out.String()
}

var fileName = regexp.MustCompile(`^\(?[A-Za-z0-9._/+-]+/templates/[A-Za-z0-9._/+-]+(:\d+)*\)?:?\s*$`)

func isFileName(word string) bool { return fileName.MatchString(word) }
