package report

import (
	"fmt"
	"slices"
	"time"
)

// Units with a form of their own in the table; any other is written as given.
const (
	// Seconds are shown to the millisecond.
	Seconds = "s"
	// Megabytes are millions of bytes.
	Megabytes = "MB"
	// Count is a number of things, which Figure.Name says.
	Count = ""
)

// Figure is something that was measured.
type Figure struct {
	// Chapter groups figures: those of one chapter are shown together, in the order they were added.
	Chapter string
	// Name says what was measured.
	Name  string
	Value float64
	Unit  string
	// Floor, when set, is what the plain work takes without this engine, measured in the same run, or
	// the least that can do.
	Floor *float64
	// Limit, when set, is the most that is allowed.
	Limit *float64
}

// Ratio returns how many times the floor the value is; ok is false without a floor above zero.
func (f Figure) Ratio() (ratio float64, ok bool) {
	if f.Floor == nil || *f.Floor <= 0 {
		return 0, false
	}
	return f.Value / *f.Floor, true
}

// Holds reports whether the value is within the limit; a figure without one always is.
func (f Figure) Holds() bool { return f.Limit == nil || f.Value <= *f.Limit }

// text returns a number in the figure's unit as the table shows it.
func (f Figure) text(number float64) string {
	switch {
	case f.Unit == Seconds:
		return fmt.Sprintf("%.3f", number)
	case f.Unit == Megabytes:
		return fmt.Sprintf("%.0f", number)
	case number == float64(int64(number)):
		return fmt.Sprintf("%d", int64(number))
	case number < 0.1:
		return fmt.Sprintf("%.3f", number)
	}
	return fmt.Sprintf("%.2f", number)
}

// Spread returns the median and the longest of some durations, in seconds; zeros when there are none. Of
// an even number it takes the longer one of the two in the middle.
func Spread(durations []time.Duration) (median, longest float64) {
	if len(durations) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(durations))
	return sorted[len(sorted)/2].Seconds(), sorted[len(sorted)-1].Seconds()
}
