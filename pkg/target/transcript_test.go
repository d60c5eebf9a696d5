package target

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

var update = flag.Bool("update", false, "write what rollouts do now into their transcripts")

// replay is a rollout on a world: what people and agents do, as a transcript in testdata/rollouts has it.
//
// A line without indentation is an event, the indented ones below it are the writes and the progress that
// follow: "c000 told v2" and "c001 staged v2", and "Phase toApply/progressing/succeeded/failed/timedOut".
type replay struct {
	t   *testing.T
	w   *world
	s   Snapshot
	now time.Time
	// accounts by cluster and id of how often it was told that.
	told map[string]int
	last string
}

func newReplay(t *testing.T) *replay {
	bundle := bundleOf(t, "targets: [{clusterSelector: {}}]")
	bundle.Generation = 1
	return &replay{
		t: t, w: newWorld(t), s: Snapshot{Bundle: bundle}, told: map[string]int{},
		now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC),
	}
}

func readTranscript(t *testing.T, file string) (events []string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimRight(line, "\n"); line != "" && !strings.HasPrefix(line, " ") {
			events = append(events, line)
		}
	}
	return events
}

// person does what an event says that is no agent's report, and says whether it was one.
func (r *replay) person(event string) bool {
	verb, rest, _ := strings.Cut(event, " ")
	switch verb {
	case "clusters":
		count, _ := strconv.Atoi(rest)
		r.s.Clusters = fleetOf(count)
	case "strategy":
		r.s.Bundle.Generation++
		r.s.Bundle.Spec.RolloutStrategy = &fleet.RolloutStrategy{}
		if err := yaml.UnmarshalStrict([]byte(rest), r.s.Bundle.Spec.RolloutStrategy); err != nil {
			r.t.Fatal(err)
		}
	case "runs":
		r.s.ManifestID = rest
		strategy := r.s.Bundle.Spec.RolloutStrategy
		r.s.Bundle.Spec.RolloutStrategy = nil
		r.w.settle(r.s)
		r.s.Bundle.Spec.RolloutStrategy = strategy
	case "commit":
		r.s.Bundle.Generation++
		r.s.ManifestID = rest
	case "after":
		span, err := time.ParseDuration(rest)
		if err != nil {
			r.t.Fatal(err)
		}
		r.now = r.now.Add(span)
	case "pause", "resume":
		next := *r.s.Bundle.Spec.DeepCopy()
		next.Paused = verb == "pause"
		KeepAccepted(r.s.Bundle, next)
		r.s.Bundle.Generation++
		r.s.Bundle.Spec = next
	case "accept":
		progress := r.plan().Rollout
		r.s.Bundle.Annotations = map[string]string{
			fleet.AcceptedFailuresAnnotation: AcceptFailures(r.s.Bundle.Generation, progress.Failed+progress.TimedOut),
		}
	case "offline", "online":
		for i := range r.s.Clusters {
			if slices.Contains(strings.Fields(rest), r.s.Clusters[i].Name) {
				r.s.Clusters[i].Offline = verb == "offline"
				r.s.Clusters[i].AvailableSince = r.now
			}
		}
	case "ready", "broken":
		return false
	default:
		r.t.Fatalf("no such event: %q", event)
	}
	return true
}

func (r *replay) plan() Plan {
	r.t.Helper()
	r.s.Current, r.s.Now = r.w.current(), r.now
	plan, err := NewPlan(r.s)
	if err != nil {
		r.t.Fatal(err)
	}
	return plan
}

// pass plans once and carries it out. It returns the writes.
func (r *replay) pass() []string {
	r.t.Helper()
	plan := r.plan()
	var writes []string
	for _, deployment := range slices.Concat(plan.Create, plan.Update) {
		_, name, _ := strings.Cut(deployment.Cluster, "/")
		before, after := r.w.deployments[deployment.Object.Namespace].Spec, deployment.Object.Spec
		version, _, _ := strings.Cut(after.StagedDeploymentID, ":")
		switch {
		case before.DeploymentID != after.DeploymentID:
			r.told[name+" "+after.DeploymentID+" "+fmt.Sprint(r.s.Bundle.Generation)]++
			writes = append(writes, fmt.Sprintf("%s told %s", name, version))
		case before.StagedDeploymentID != after.StagedDeploymentID:
			writes = append(writes, fmt.Sprintf("%s staged %s", name, version))
		case before.Paused != after.Paused:
			writes = append(writes, fmt.Sprintf("%s paused %v", name, after.Paused))
		default:
			writes = append(writes, name+" timed")
		}
	}
	if plan.Rollout.Breached && slices.ContainsFunc(writes, func(w string) bool { return strings.Contains(w, "told") }) {
		r.t.Fatalf("tells clusters although the rollout is halted: %v", writes)
	}
	r.w.carryOut(plan)
	r.check(writes)
	return writes
}

// check holds what was just told against the limits of the strategy that are numbers.
func (r *replay) check(writes []string) {
	r.t.Helper()
	strategy := r.s.Bundle.Spec.RolloutStrategy
	if strategy == nil || strategy.Type != nil && *strategy.Type == fleet.RolloutAll || !slices.ContainsFunc(writes, func(w string) bool { return strings.Contains(w, "told") }) {
		return
	}
	flying, down := 0, 0
	for _, cluster := range r.s.Clusters {
		bd := r.w.deployments[cluster.DeploymentNamespace]
		if cluster.Offline {
			continue
		}
		// A cluster that is busy with an earlier version, or is late, may be overtaken.
		version, _, _ := strings.Cut(bd.Spec.DeploymentID, ":")
		late := strategy.ProgressDeadline != nil && !r.now.Before(sentAt(&bd, cluster.AvailableSince).Add(strategy.ProgressDeadline.Duration))
		if status.Of(&bd) == fleet.WaitApplied && version == r.s.ManifestID && !late {
			flying++
		}
		if bd.Status.AppliedDeploymentID != bd.Spec.DeploymentID || !bd.Status.Ready {
			down++
		}
	}
	if limit := strategy.MaxConcurrency; limit != nil && limit.IntValue() > 0 && flying > limit.IntValue() {
		r.t.Fatalf("%d clusters on their way, limit %s: %v", flying, limit, writes)
	}
	if limit := strategy.MaxUnavailable; limit != nil && limit.IntValue() > 0 && down > limit.IntValue() {
		r.t.Fatalf("%d clusters unavailable, limit %s: %v", down, limit, writes)
	}
}

// progress tells how far the rollout is.
func (r *replay) progress() string {
	plan := r.plan()
	p := plan.Rollout
	text := fmt.Sprintf("%s %d/%d/%d/%d/%d", p.Phase, p.ToApply, p.Progressing, p.Succeeded, p.Failed, p.TimedOut)
	if p.Breached {
		text += " breached"
	}
	if !plan.NextCheck.IsZero() {
		text += " next in " + plan.NextCheck.Sub(r.now).String()
	}
	return text
}

// outcome runs the controller until it has nothing to do and returns what it did, sorted within a pass.
func (r *replay) outcome() []string {
	r.t.Helper()
	var lines []string
	for range 100 {
		writes := r.pass()
		if len(writes) == 0 {
			if now := r.progress(); now != r.last {
				r.last = now
				lines = append(lines, now)
			}
			return lines
		}
		slices.Sort(writes)
		lines = append(lines, writes...)
	}
	r.t.Fatal("planning does not end")
	return nil
}

// report is what an agent reports about the id that it is told now.
func (r *replay) report(namespace string, ready bool) func() {
	told, now := r.w.deployments[namespace].Spec.DeploymentID, r.now
	return func() {
		bd := r.w.deployments[namespace]
		before := bd.Status.AppliedDeploymentID
		deployed := fleet.Condition{Type: fleet.ConditionDeployed, Status: corev1.ConditionTrue}
		bd.Status.AckedDeploymentID = told
		if ready {
			bd.Status.AppliedDeploymentID, bd.Status.Ready, bd.Status.NonModified = told, true, true
		} else {
			deployed.Status, deployed.Message = corev1.ConditionFalse, "no way"
		}
		status.Set(&bd.Status.Conditions, deployed, now)
		if before != bd.Status.AppliedDeploymentID {
			status.Touch(bd.Status.Conditions, fleet.ConditionDeployed, now)
		}
		r.w.deployments[namespace] = bd
	}
}

func namespaceOf(cluster string) string { return "cluster-ws-" + cluster }

// Each transcript is what happens when one event comes after the other.
func TestRolloutTranscripts(t *testing.T) {
	for _, file := range transcripts(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			r := newReplay(t)
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for line := range strings.Lines(string(want)) {
				if strings.HasPrefix(line, "#") || line == "\n" {
					got.WriteString(line)
					continue
				}
				if event := strings.TrimRight(line, "\n"); !strings.HasPrefix(event, " ") {
					got.WriteString(line)
					for _, outcome := range r.do(event) {
						got.WriteString("  " + outcome + "\n")
					}
				}
			}
			if *update {
				if err := os.WriteFile(file, []byte(got.String()), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// do lets an event happen and returns what follows from it; before the first version nothing does.
func (r *replay) do(event string) []string {
	if !r.person(event) {
		verb, names, _ := strings.Cut(event, " ")
		for _, name := range strings.Fields(names) {
			r.report(namespaceOf(name), verb == "ready")()
		}
	}
	if r.s.ManifestID == "" {
		return nil
	}
	return r.outcome()
}

func transcripts(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/rollouts/*.txt")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d transcripts: %v", len(files), err)
	}
	return files
}

// In whatever order agents report and the controller looks, however late reports arrive and however often
// it looks, no limit is passed, no cluster is told the same twice, and the world in the end is the same.
func TestRolloutTranscriptsShuffled(t *testing.T) {
	for _, file := range transcripts(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			events := readTranscript(t, file)
			straight := newReplay(t)
			for _, event := range slices.DeleteFunc(slices.Clone(events), func(e string) bool { return strings.HasPrefix(e, "#") }) {
				straight.do(event)
			}
			want := straight.end()
			for seed := range uint64(10) {
				r := newReplay(t)
				shuffled{replay: r, random: rand.New(rand.NewPCG(seed, 31)), fates: fatesIn(events)}.run(events)
				if diff := cmp.Diff(want, r.end()); diff != "" {
					t.Fatalf("seed %d: the world in the end (-straight +shuffled):\n%s", seed, diff)
				}
				for what, times := range r.told {
					if times > 1 {
						t.Fatalf("seed %d: %s was told %d times", seed, what, times)
					}
				}
			}
		})
	}
}

// end lets time pass until it changes nothing more, and returns what every cluster runs, and the progress.
func (r *replay) end() []string {
	for range 100 {
		r.outcome()
		next := r.plan().NextCheck
		if next.IsZero() {
			break
		}
		r.now = next
	}
	lines := []string{r.progress()}
	for _, namespace := range slices.Sorted(maps.Keys(r.w.deployments)) {
		bd := r.w.deployments[namespace]
		lines = append(lines, fmt.Sprintf("%s %s %s paused %v: %s", namespace, bd.Spec.DeploymentID, bd.Spec.StagedDeploymentID, bd.Spec.Paused, status.Of(&bd)))
	}
	if writes := r.pass(); len(writes) > 0 {
		r.t.Fatalf("writes in a converged world: %v", writes)
	}
	return lines
}

// fatesIn returns, by version and cluster, whether it becomes ready, where a transcript says so.
func fatesIn(events []string) map[string]bool {
	fates, version := map[string]bool{}, ""
	for _, event := range events {
		verb, rest, _ := strings.Cut(event, " ")
		switch verb {
		case "commit", "runs":
			version = rest
		case "ready", "broken":
			for _, name := range strings.Fields(rest) {
				fates[version+" "+name] = verb == "ready"
			}
		}
	}
	return fates
}

// shuffled replays the people's part of a transcript as it is, and lets agents report what is their fate in
// any order in between.
type shuffled struct {
	*replay
	random *rand.Rand
	fates  map[string]bool
}

func (s shuffled) run(events []string) {
	for _, event := range events {
		if strings.HasPrefix(event, "#") || !s.person(event) || s.s.ManifestID == "" {
			continue
		}
		s.quiet()
	}
}

// quiet reports and looks at random until nothing is left to report and nothing to do.
func (s shuffled) quiet() {
	reported, pending := map[string]string{}, map[string]func(){}
	for range 1000 {
		var enabled []string
		for _, cluster := range s.s.Clusters {
			told := s.w.deployments[cluster.DeploymentNamespace].Spec
			version, _, _ := strings.Cut(told.DeploymentID, ":")
			_, has := s.fates[version+" "+cluster.Name]
			if has && !told.Paused && reported[cluster.Name] != told.DeploymentID && pending[cluster.Name] == nil {
				enabled = append(enabled, cluster.Name)
			}
		}
		switch n := s.random.IntN(3); {
		case n == 0 && len(enabled) > 0:
			name := enabled[s.random.IntN(len(enabled))]
			told := s.w.deployments[namespaceOf(name)].Spec.DeploymentID
			version, _, _ := strings.Cut(told, ":")
			reported[name] = told
			pending[name] = s.report(namespaceOf(name), s.fates[version+" "+name])
		case n == 1 && len(pending) > 0:
			names := slices.Sorted(maps.Keys(pending))
			name := names[s.random.IntN(len(names))]
			pending[name]()
			delete(pending, name)
		default:
			if writes := s.pass(); len(writes)+len(pending)+len(enabled) == 0 {
				return
			}
		}
	}
	s.t.Fatal("the rollout does not come to rest")
}
