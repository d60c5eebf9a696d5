package stack

import (
	"testing"
	"time"
)

func TestParseStat(t *testing.T) {
	for name, test := range map[string]struct {
		stat string
		want time.Duration
		bad  bool
	}{
		"plain":     {stat: "7 (agent) S 1 7 7 0 -1 4194304 9 0 0 0 150 25 0 0 20 0 9", want: 1750 * time.Millisecond},
		"odd name":  {stat: "7 (a) R (b) S 1 7 7 0 -1 4194304 9 0 0 0 1 0 0 0 20", want: 10 * time.Millisecond},
		"cut short": {stat: "7 (agent) S 1 7", bad: true},
		"no number": {stat: "7 (agent) S 1 7 7 0 -1 4194304 9 0 0 0 x 25 0 0", bad: true},
		"empty":     {stat: "", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(test.stat)
			if got != test.want || (err != nil) != test.bad {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
}
