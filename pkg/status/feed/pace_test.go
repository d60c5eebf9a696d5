package feed

import (
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/status"
)

func TestPace(t *testing.T) {
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	now := start
	p := newPace(time.Second, func() time.Time { return now })
	one := status.Parent{Kind: status.KindBundle, Ref: status.Ref{Namespace: "a", Name: "one"}}
	other := status.Parent{Kind: status.KindBundle, Ref: status.Ref{Namespace: "a", Name: "other"}}
	for _, step := range []struct {
		at     time.Duration
		parent status.Parent
		want   time.Duration
	}{
		{0, one, 0},
		{100 * time.Millisecond, one, 900 * time.Millisecond},
		{200 * time.Millisecond, one, 800 * time.Millisecond},
		{200 * time.Millisecond, other, 0},
		{1100 * time.Millisecond, one, 900 * time.Millisecond},
		{5 * time.Second, one, 0},
	} {
		now = start.Add(step.at)
		if got := p.delay(step.parent); got != step.want {
			t.Errorf("at %s, %s waits %s, want %s", step.at, step.parent.Name, got, step.want)
		}
	}
}
