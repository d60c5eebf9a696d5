package target

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func clock(span time.Duration) string { return noon.Add(span).Format(time.RFC3339) }

// A failure counts only when it is about what is wanted now.
func TestFailuresOfAnEarlierVersionDoNotCount(t *testing.T) {
	for name, test := range map[string]struct {
		acked, written string
		want           bool
	}{
		"of now":                             {"new", clock(-time.Hour), true},
		"of before":                          {"old", clock(time.Minute), false},
		"not told, written since":            {"", clock(time.Minute), true},
		"not told, written in that moment":   {"", clock(0), true},
		"not told, written before":           {"", clock(-time.Minute), false},
		"not told, nobody knows when either": {"", "", false},
	} {
		bd := &fleet.BundleDeployment{Spec: fleet.BundleDeploymentSpec{DeploymentPartSpec: fleet.DeploymentPartSpec{DeploymentID: "new"}}}
		bd.Status.AppliedDeploymentID, bd.Status.AckedDeploymentID = "old", test.acked
		bd.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: corev1.ConditionFalse, Message: "no way", LastUpdateTime: test.written}}
		if got := failed(bd, noon); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestReadySince(t *testing.T) {
	for name, test := range map[string]struct {
		updated, turned string
		want            time.Duration
	}{
		"applied, and fine all along": {clock(time.Minute), clock(-time.Hour), time.Minute},
		"ready after that":            {clock(time.Minute), clock(2 * time.Minute), 2 * time.Minute},
		"a clock that is behind":      {clock(-time.Hour), clock(-time.Hour), 0},
		"no times":                    {"", "yesterday", 0},
	} {
		bd := &fleet.BundleDeployment{}
		bd.Status.Conditions = []fleet.Condition{
			{Type: fleet.ConditionDeployed, LastUpdateTime: test.updated, LastTransitionTime: clock(-time.Hour)},
			{Type: fleet.ConditionReady, LastTransitionTime: test.turned, LastUpdateTime: clock(time.Hour)},
		}
		if got := readySince(bd, noon).Sub(noon); got != test.want {
			t.Errorf("%s: %s after it was told, want %s", name, got, test.want)
		}
	}
}

// A cluster that was away when it was told has its time from when it is heard from again.
func TestDeadlinesStartWhenClustersAreBack(t *testing.T) {
	for name, test := range map[string]struct {
		told      string
		available corev1.ConditionStatus
		since     string
		want      time.Duration
	}{
		"there all along":   {clock(0), corev1.ConditionTrue, clock(-time.Hour), 0},
		"back since":        {clock(0), corev1.ConditionTrue, clock(time.Hour), time.Hour},
		"away":              {clock(0), corev1.ConditionFalse, clock(time.Hour), 0},
		"told without note": {"", corev1.ConditionTrue, clock(time.Hour), time.Time{}.Sub(noon)},
	} {
		cluster := &fleet.Cluster{}
		cluster.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionAvailable, Status: test.available, LastTransitionTime: test.since}}
		bd := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{fleet.ReleasedAnnotation: test.told}}}
		if got := sentAt(bd, InfoOf(cluster).AvailableSince).Sub(noon); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

func TestKeepAccepted(t *testing.T) {
	for name, test := range map[string]struct {
		accepted string
		change   func(*fleet.BundleSpec)
		want     string
	}{
		"the pause ends":            {"7:2", func(s *fleet.BundleSpec) { s.Paused = false }, "8:2"},
		"and another version comes": {"7:2", func(s *fleet.BundleSpec) { s.Paused, s.Resources[0].Content = false, "new" }, "7:2"},
		"and other limits":          {"7:2", func(s *fleet.BundleSpec) { s.Paused, s.RolloutStrategy = false, &fleet.RolloutStrategy{} }, "7:2"},
		"nothing changes":           {"7:2", func(*fleet.BundleSpec) {}, "7:2"},
		"of an earlier version":     {"6:2", func(s *fleet.BundleSpec) { s.Paused = false }, "6:2"},
		"nothing accepted":          {"", func(s *fleet.BundleSpec) { s.Paused = false }, ""},
	} {
		bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Generation: 7}}
		if test.accepted != "" {
			bundle.Annotations = map[string]string{fleet.AcceptedFailuresAnnotation: test.accepted}
		}
		bundle.Spec.Paused, bundle.Spec.Resources = true, []fleet.BundleResource{{Name: "one.yaml", Content: "old"}}
		next := bundle.Spec.DeepCopy()
		test.change(next)
		unchanged := next.DeepCopy()
		KeepAccepted(bundle, *next)
		if got := bundle.Annotations[fleet.AcceptedFailuresAnnotation]; got != test.want {
			t.Errorf("%s: accepted %q, want %q", name, got, test.want)
		}
		if !equality.Semantic.DeepEqual(next, unchanged) {
			t.Errorf("%s: changes the spec that is to be stored", name)
		}
	}
}

func TestAcceptedFailures(t *testing.T) {
	for text, want := range map[string]int{"": 0, "7": 0, "7:2": 2, "6:2": 0, "8:2": 0, "7:x": 0, "7:": 0, AcceptFailures(7, 3): 3} {
		bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Generation: 7, Annotations: map[string]string{fleet.AcceptedFailuresAnnotation: text}}}
		if got := AcceptedFailures(bundle); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}

// When an agent was told is noted in the write that tells it, only where the rollout looks at time, and anew
// when an agent may act again.
func TestReleasedIsNotedWithTheRelease(t *testing.T) {
	w := newWorld(t)
	s := Snapshot{Bundle: bundleOf(t, everywhere), ManifestID: "s-1", Clusters: fleetOf(1), Now: noon}
	at := func() string { return w.deployments["cluster-ws-c000"].Annotations[fleet.ReleasedAnnotation] }
	step := func(what, want string, wantWrites int, change func()) {
		t.Helper()
		before := w.writes
		change()
		s.Current = w.current()
		plan, err := NewPlan(s)
		if err != nil {
			t.Fatal(err)
		}
		w.carryOut(plan)
		if at() != want || w.writes-before != wantWrites {
			t.Errorf("%s: noted %q with %d writes, want %q and %d", what, at(), w.writes-before, want, wantWrites)
		}
	}
	step("a rollout without times", "", 1, func() {})
	w.answerAll()
	step("a deadline, when all is done", "", 0, func() {
		s.Bundle.Spec.RolloutStrategy = &fleet.RolloutStrategy{ProgressDeadline: &fleet.Duration{Duration: time.Hour}}
	})
	step("a new version", clock(0), 1, func() { s.ManifestID = "s-2" })
	step("nothing new", clock(0), 0, func() { s.Now = noon.Add(time.Minute) })
	step("a pause", clock(0), 1, func() { s.Clusters[0].Paused = true })
	step("its end", clock(time.Minute), 1, func() { s.Clusters[0].Paused = false })
	step("outside of the schedule", clock(time.Minute), 1, func() { s.Clusters[0].OffSchedule = true })
	step("inside again", clock(2*time.Minute), 1, func() { s.Clusters[0].OffSchedule, s.Now = false, noon.Add(2*time.Minute) })
	step("a version without deadline", "", 1, func() { s.ManifestID, s.Bundle.Spec.RolloutStrategy = "s-3", nil })
	step("a deadline for what is on its way", clock(2*time.Minute), 1, func() {
		s.Bundle.Spec.RolloutStrategy = &fleet.RolloutStrategy{MinSuccessTime: &fleet.Duration{Duration: time.Hour}}
	})
}

// Planning takes time in proportion to the clusters: the time for each is reported, and should not grow.
func BenchmarkRollout(b *testing.B) {
	strategies := map[string]string{
		"default":     "{}",
		"partitions":  "{maxUnavailable: 10%, partitions: [{name: dev, clusterSelector: {matchLabels: {env: dev}}}, {name: test, clusterSelector: {matchLabels: {env: test}}}]}",
		"progressive": "{type: Progressive, maxConcurrency: 5%, minSuccessTime: 10m, progressDeadline: 30m, maxFailures: 5%}",
	}
	for name, strategy := range strategies {
		for _, clusters := range []int{750, 3000} {
			b.Run(fmt.Sprintf("%s/%d", name, clusters), func(b *testing.B) {
				w := newWorld(b)
				s := Snapshot{Bundle: bundleOf(b, everywhere+"rolloutStrategy: "+strategy+"\n"), ManifestID: "s-1", Clusters: fleetOf(clusters), Now: noon}
				wanted := s.Bundle.Spec.RolloutStrategy
				s.Bundle.Spec.RolloutStrategy = &fleet.RolloutStrategy{MaxNew: &clusters}
				w.settle(s)
				s.Bundle.Spec.RolloutStrategy = wanted
				s.ManifestID, s.Current = "s-2", w.current()
				b.ResetTimer()
				for range b.N {
					if _, err := NewPlan(s); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*clusters), "ns/cluster")
			})
		}
	}
}
