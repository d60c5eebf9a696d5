package v1alpha1

import (
	"encoding/json"
	"fmt"
	"time"
)

// Duration is a Go duration written as a string; the literal 0 needs no unit.
//
// +kubebuilder:validation:Type=string
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=32
// +kubebuilder:validation:XValidation:rule="self == '0' || (self.matches('^[-+]?([0-9]+([.][0-9]*)?(ns|us|µs|ms|s|m|h))+$') && duration(self) <= duration('2562047h'))",message="must be 0 or a duration such as 30s, 5m or 1h30m, with the units ns, us, ms, s, m and h"
type Duration struct {
	time.Duration `json:"-"`
}

// MarshalJSON writes the duration as Go prints it.
func (d Duration) MarshalJSON() ([]byte, error) {
	return json.Marshal(d.String())
}

// UnmarshalJSON reads a string such as "1h30m" or "0".
func (d *Duration) UnmarshalJSON(data []byte) error {
	var text string
	if err := json.Unmarshal(data, &text); err != nil {
		return fmt.Errorf("duration must be a string: %w", err)
	}
	if text == "0" || text == "" {
		d.Duration = 0
		return nil
	}
	parsed, err := time.ParseDuration(text)
	if err != nil {
		return fmt.Errorf("duration %q: want a number with one of the units ns, us, ms, s, m, h", text)
	}
	d.Duration = parsed
	return nil
}
