package shard

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
)

// clock is set by hand, read by anybody.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(1000, c.at.Load()) }
func (c *clock) advance(d time.Duration) { c.at.Add(int64(d)) }

func always() bool { return true }

// Work begins only on what is held, and not while it is being given up; giving up waits for work under way.
func TestWorkAndDraining(t *testing.T) {
	s := New(1, "", logr.Discard())
	if _, _, ok := s.begin(t.Context(), "ns", "a"); ok {
		t.Fatal("work began on a shard that is not held")
	}
	if err := s.acquire(t.Context(), []int{0}, always); err != nil {
		t.Fatal(err)
	}
	work, done, ok := s.begin(t.Context(), "ns", "a")
	if !ok {
		t.Fatal("no work on a shard that is held")
	}
	idle := s.drain([]int{0})[0]
	if _, _, ok := s.begin(t.Context(), "ns", "b"); ok {
		t.Error("work began on a shard that is being given up")
	}
	if s.isIdle(0) || work.Err() != nil {
		t.Errorf("idle %v while there is work, whose context says %v", s.isIdle(0), work.Err())
	}
	done()
	<-idle
	if !s.isIdle(0) {
		t.Error("not idle after the last work")
	}
}

// Losing a shard ends the contexts of its work, with a cause.
func TestLosingEndsWork(t *testing.T) {
	s := New(1, "", logr.Discard())
	if err := s.acquire(t.Context(), []int{0}, always); err != nil {
		t.Fatal(err)
	}
	work, done, _ := s.begin(t.Context(), "ns", "a")
	defer done()
	s.lose([]int{0})
	<-work.Done()
	if !errors.Is(context.Cause(work), errLost) {
		t.Errorf("cause %v", context.Cause(work))
	}
}

// Nothing is worked on before what has to be done first is done.
func TestPreparationComesFirst(t *testing.T) {
	s := New(4, "", logr.Discard())
	fails := errors.New("not yet")
	s.BeforeWork(func(_ context.Context, mine func(string, string) bool) error {
		if mine("ns", "a") != (Of("ns", "a", 4) == 2) {
			t.Error("mine does not know the shards")
		}
		return fails
	})
	if err := s.acquire(t.Context(), []int{2}, always); !errors.Is(err, fails) || len(s.all()) > 0 {
		t.Errorf("error %v, shards %v", err, s.all())
	}
	fails = nil
	if err := s.acquire(t.Context(), []int{2}, always); err != nil || len(s.all()) != 1 {
		t.Errorf("error %v, shards %v", err, s.all())
	}
}

// Changes asked for under a tenure that is over do not leave the process: not after a renewal failed for too
// long, and not when a stopped process goes on.
func TestFence(t *testing.T) {
	var arrived atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	defer server.Close()
	c := &clock{}
	renewal := &renewal{deadline: 10 * time.Second, now: c.now}
	renewal.renewed(c.now())
	s := New(1, "", logr.Discard())
	if err := s.acquire(t.Context(), []int{0}, renewal.valid); err != nil {
		t.Fatal(err)
	}
	work, done, _ := s.begin(t.Context(), "ns", "a")
	defer done()
	send := func(ctx context.Context, method string) error {
		request, err := http.NewRequestWithContext(ctx, method, server.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := Fence(http.DefaultTransport).RoundTrip(request)
		if err == nil {
			_ = response.Body.Close()
		}
		return err
	}
	if err := send(work, http.MethodPatch); err != nil {
		t.Errorf("within the tenure: %v", err)
	}
	c.advance(10 * time.Second)
	if err := send(work, http.MethodPatch); !errors.Is(err, errLost) {
		t.Errorf("after the tenure: %v", err)
	}
	if _, _, ok := s.begin(t.Context(), "ns", "a"); ok {
		t.Error("work began after the tenure")
	}
	if err := errors.Join(send(work, http.MethodGet), send(t.Context(), http.MethodPut)); err != nil {
		t.Errorf("reads, and what is no work on a shard: %v", err)
	}
	if arrived.Load() != 3 {
		t.Errorf("%d requests arrived, want 3", arrived.Load())
	}
	if !renewal.lapsed(c.now()) || renewal.lapsed(c.now().Add(-time.Second)) {
		t.Error("a lapse is not told apart")
	}
}

func TestMetricsSayWhatIsHeld(t *testing.T) {
	shards := New(8, "", logr.Discard())
	if err := shards.acquire(t.Context(), []int{1, 2, 5}, always); err != nil {
		t.Fatal(err)
	}
	shards.lose([]int{2, 7})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector(shards))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			name := family.GetName()
			for _, label := range metric.GetLabel() {
				name += " " + label.GetValue()
			}
			got[name] = metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	want := map[string]float64{"fleet_shards": 8, "fleet_shards_held": 2, "fleet_shard_changes_total taken": 3, "fleet_shard_changes_total lost": 1}
	if !maps.Equal(got, want) {
		t.Errorf("told %v, want %v", got, want)
	}
}
