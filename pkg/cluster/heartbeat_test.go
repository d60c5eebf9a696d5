package cluster

import (
	"math/rand/v2"
	"testing"
	"time"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

var noon = time.Date(2030, 1, 2, 12, 0, 0, 0, time.UTC)

func TestPhase(t *testing.T) {
	const s, m = time.Second, time.Minute
	cases := map[string]struct {
		previous  fleet.ClusterPhase
		heartbeat Heartbeat
		silent    time.Duration
		want      fleet.ClusterPhase
	}{
		"never heard":                     {"", Heartbeat{}, 0, fleet.ClusterPending},
		"never heard, once ready":         {fleet.ClusterReady, Heartbeat{}, 0, fleet.ClusterPending},
		"first renewal":                   {fleet.ClusterPending, Heartbeat{Interval: 15 * s, Fresh: 1}, 0, fleet.ClusterReady},
		"found by a starting hub":         {fleet.ClusterReady, Heartbeat{Interval: 15 * s}, 44 * s, fleet.ClusterReady},
		"two missed":                      {fleet.ClusterReady, Heartbeat{Interval: 15 * s, Fresh: 9}, 44 * s, fleet.ClusterReady},
		"three missed":                    {fleet.ClusterReady, Heartbeat{Interval: 15 * s, Fresh: 9}, 45 * s, fleet.ClusterNotReady},
		"no interval means 15 seconds":    {fleet.ClusterReady, Heartbeat{Fresh: 9}, 45 * s, fleet.ClusterNotReady},
		"almost lost":                     {fleet.ClusterNotReady, Heartbeat{Interval: 15 * s, Fresh: 9}, 5*m - s, fleet.ClusterNotReady},
		"lost":                            {fleet.ClusterNotReady, Heartbeat{Interval: 15 * s, Fresh: 9}, 5 * m, fleet.ClusterUnknown},
		"slow heart, five minutes":        {fleet.ClusterReady, Heartbeat{Interval: 5 * m, Fresh: 9}, 5 * m, fleet.ClusterReady},
		"slow heart, missed":              {fleet.ClusterReady, Heartbeat{Interval: 5 * m, Fresh: 9}, 15 * m, fleet.ClusterNotReady},
		"slow heart, lost":                {fleet.ClusterNotReady, Heartbeat{Interval: 5 * m, Fresh: 9}, 25 * m, fleet.ClusterUnknown},
		"a century's interval, missed":    {fleet.ClusterReady, Heartbeat{Interval: 1 << 62, Fresh: 9}, 3 * time.Hour, fleet.ClusterNotReady},
		"a century's interval, lost":      {fleet.ClusterNotReady, Heartbeat{Interval: 1 << 62, Fresh: 9}, 5 * time.Hour, fleet.ClusterUnknown},
		"down, a starting hub":            {fleet.ClusterUnknown, Heartbeat{Interval: 15 * s}, 0, fleet.ClusterUnknown},
		"down, one renewal":               {fleet.ClusterUnknown, Heartbeat{Interval: 15 * s, Fresh: 1}, 0, fleet.ClusterUnknown},
		"down, one renewal, silent again": {fleet.ClusterUnknown, Heartbeat{Interval: 15 * s, Fresh: 1}, m, fleet.ClusterUnknown},
		"down, two renewals":              {fleet.ClusterUnknown, Heartbeat{Interval: 15 * s, Fresh: 2}, 0, fleet.ClusterReady},
		"missed, two renewals":            {fleet.ClusterNotReady, Heartbeat{Interval: 15 * s, Fresh: 2}, 0, fleet.ClusterReady},
		"missed, one renewal":             {fleet.ClusterNotReady, Heartbeat{Interval: 15 * s, Fresh: 1}, 0, fleet.ClusterNotReady},
		"member's clock ahead (upstream)": {fleet.ClusterReady, Heartbeat{Interval: 15 * s, Fresh: 2}, -time.Hour, fleet.ClusterReady},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			heartbeat := c.heartbeat
			if name != "never heard" && name != "never heard, once ready" {
				heartbeat.Seen = noon
			}
			if got := Phase(c.previous, heartbeat, noon.Add(c.silent)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRenewedCountsWhatIsFresh(t *testing.T) {
	interval := 15 * time.Second
	first := Heartbeat{}.Renewed(noon, interval)
	second := first.Renewed(noon.Add(interval), interval)
	late := second.Renewed(noon.Add(time.Hour), interval)
	if first.Fresh != 1 || second.Fresh != 2 || late.Fresh != 1 {
		t.Errorf("fresh %d, %d and, after an hour, %d", first.Fresh, second.Fresh, late.Fresh)
	}
}

// Whatever a member does, looking again when PhaseLasts says finds every change of phase that silence
// brings, and the phase is Ready only while less than three intervals are missed.
func TestLookingWhenToldMissesNothing(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		interval := time.Duration(1+random.IntN(600)) * time.Second
		phase := []fleet.ClusterPhase{fleet.ClusterPending, fleet.ClusterReady, fleet.ClusterNotReady, fleet.ClusterUnknown}[random.IntN(4)]
		now, heartbeat := noon, Heartbeat{}
		for range 1 + random.IntN(4) {
			heartbeat = heartbeat.Renewed(now, interval)
			phase = Phase(phase, heartbeat, now)
			now = now.Add(time.Duration(random.Int64N(int64(4 * interval))))
		}
		for steps := 0; ; steps++ {
			phase = Phase(phase, heartbeat, now)
			silent := now.Sub(heartbeat.Seen)
			if phase == fleet.ClusterReady && silent >= 3*interval {
				t.Fatalf("ready after %v of silence at an interval of %v", silent, interval)
			}
			next, ends := PhaseLasts(phase, heartbeat, now)
			if !ends {
				break
			}
			if steps > 3 {
				t.Fatalf("still looking: %s, %v", phase, heartbeat)
			}
			if before := now.Add(next - time.Nanosecond); next > 0 && Phase(phase, heartbeat, before) != phase {
				t.Fatalf("%s changes before the next look", phase)
			}
			now = now.Add(next)
		}
		if phase != fleet.ClusterUnknown {
			t.Fatalf("ends as %s", phase)
		}
	}
}
