package target

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// relabelled returns clusters of which the first so many have other labels: maps of their own, as caches have.
func relabelled(clusters []ClusterInfo, count int, labels map[string]string) []ClusterInfo {
	list := slices.Clone(clusters)
	for i := range count {
		list[i].Labels = maps.Clone(labels)
	}
	return list
}

func edited(t *testing.T, bundle *fleet.Bundle, spec string) *fleet.Bundle {
	t.Helper()
	next := bundleOf(t, spec)
	next.UID, next.Generation = bundle.UID, bundle.Generation+1
	return next
}

// An edit of the targets explains what it removes by itself, and not what labels remove that change at the same time.
func TestAnEditExplainsOnlyItsOwnDeletions(t *testing.T) {
	const both = "targets: [{clusterSelector: {matchLabels: {env: prod}}}, {clusterSelector: {matchLabels: {env: test}}}]"
	const prod = "targets: [{clusterSelector: {matchLabels: {env: prod}}}]"
	for name, test := range map[string]struct {
		prod, test int // clusters of an environment
		stripped   int // of prod lose their labels
		gone       int // of prod, from the end, are not there any more
		restarted  bool
		doubt      string
		wantDelete int
		wantHeld   int
		wantOf     int
	}{
		"the edit alone":          {prod: 8, test: 12, wantDelete: 12},
		"the edit, of nearly all": {prod: 1, test: 19, wantDelete: 19},
		"and a storm":             {prod: 12, test: 10, stripped: 8, wantDelete: 10, wantHeld: 8, wantOf: 12},
		"and a storm of all":      {prod: 12, test: 10, stripped: 12, wantDelete: 10, wantHeld: 12, wantOf: 12},
		"and a few labels":        {prod: 12, test: 10, stripped: 5, wantDelete: 15},
		"and up to half":          {prod: 14, test: 10, stripped: 7, wantDelete: 17},
		"and clusters that go":    {prod: 12, test: 10, gone: 8, wantDelete: 10, wantHeld: 8, wantOf: 12},
		"after a restart":         {prod: 12, test: 10, stripped: 8, restarted: true, wantDelete: 18},
		"in doubt":                {prod: 12, test: 10, doubt: "nothing is listed", wantHeld: 10, wantOf: 22},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			s := Snapshot{Bundle: bundleOf(t, both), ManifestID: "s-1", Clusters: fleetOf(test.prod + test.test), Memory: &Memory{}}
			for i := range s.Clusters {
				s.Clusters[i].Labels = map[string]string{"env": "prod"}
				if i >= test.prod {
					s.Clusters[i].Labels["env"] = "test"
				}
			}
			w.settle(s)
			s.Current = w.current()
			if plan, err := NewPlan(s); err != nil || len(plan.Delete) > 0 {
				t.Fatalf("before: %d deletes, %v", len(plan.Delete), err)
			}
			s.Bundle, s.PersonsEdit, s.Doubt = edited(t, s.Bundle, prod), true, test.doubt
			s.Clusters = relabelled(s.Clusters, test.stripped, nil)
			s.Clusters = slices.Delete(s.Clusters, test.prod-test.gone, test.prod)
			if test.restarted {
				s.Memory = &Memory{}
			}
			plan, err := NewPlan(s)
			if err != nil {
				t.Fatal(err)
			}
			held, of := heldBy(plan)
			if len(plan.Delete) != test.wantDelete || len(held) != test.wantHeld || of != test.wantOf {
				t.Fatalf("%d deletes, %d of %d held; want %d, %d of %d", len(plan.Delete), len(held), of, test.wantDelete, test.wantHeld, test.wantOf)
			}
			if plan.Guard != nil {
				s.ConfirmedDeletes = plan.Guard.Token
				confirmed, err := NewPlan(s)
				if err != nil || confirmed.Guard != nil || len(confirmed.Delete) != test.wantDelete+test.wantHeld {
					t.Errorf("confirmed: %d deletes, guard %+v, %v", len(confirmed.Delete), confirmed.Guard, err)
				}
			}
		})
	}
}

// heldBy returns the clusters whose deletions wait, and of how many deployments they are.
func heldBy(plan Plan) (clusters []string, of int) {
	if plan.Guard == nil {
		return nil, 0
	}
	for _, deployment := range plan.Guard.Held {
		clusters = append(clusters, deployment.Cluster)
	}
	return clusters, plan.Guard.Of
}

// What waits for a person does not go by itself because clusters join, and no more once a person confirms it or its
// clusters are reached again.
func TestWhatWaitsGoesOnWaiting(t *testing.T) {
	w := newWorld(t)
	s := Snapshot{Bundle: bundleOf(t, "targets: [{clusterSelector: {matchLabels: {env: prod}}}]"), ManifestID: "s-1", Clusters: fleetOf(12), Memory: &Memory{}}
	forAll(&s, func(c *ClusterInfo) { c.Labels = map[string]string{"env": "prod"} })
	w.settle(s)
	step := func(what string, wantDelete, wantHeld int) *Guard {
		t.Helper()
		s.Current = w.current()
		plan, err := NewPlan(s)
		if held, _ := heldBy(plan); err != nil || len(plan.Delete) != wantDelete || len(held) != wantHeld {
			t.Fatalf("%s: %d deletes, %d held, %v; want %d, %d", what, len(plan.Delete), len(held), err, wantDelete, wantHeld)
		}
		w.carryOut(plan)
		return plan.Guard
	}
	step("at first", 0, 0)
	s.Clusters = relabelled(s.Clusters, 7, nil)
	step("labels go", 0, 7)
	joined := fleetOf(40)[12:]
	for i := range joined {
		joined[i].Labels = map[string]string{"env": "prod"}
	}
	s.Clusters = append(s.Clusters, joined...)
	step("clusters join", 0, 7)
	guard := step("they have the bundle", 0, 7)
	s.Clusters = relabelled(s.Clusters, 3, map[string]string{"env": "prod"})
	if step("labels are back on some", 0, 4).Token == guard.Token {
		t.Error("the token stands for other deployments")
	}
	s.ConfirmedDeletes = guard.Token
	guard = step("what was is confirmed", 0, 4)
	s.ConfirmedDeletes = guard.Token
	step("what is is confirmed", 4, 0)
	s.ConfirmedDeletes, s.Clusters = "", relabelled(s.Clusters, 3, nil)
	step("few others go", 3, 0)
}

// After a restart nobody knows any more by which labels the bundle reached what waits; but it waited before the edit that
// comes then.
func TestAnEditAfterARestartExplainsNothingThatWaited(t *testing.T) {
	const prod = "targets: [{clusterSelector: {matchLabels: {env: prod}}}]"
	w := newWorld(t)
	s := Snapshot{Bundle: bundleOf(t, prod), ManifestID: "s-1", Clusters: fleetOf(20), Memory: &Memory{}}
	forAll(&s, func(c *ClusterInfo) { c.Labels = map[string]string{"env": "prod"} })
	w.settle(s)
	s.Clusters = relabelled(s.Clusters, 12, nil)
	step := func(what string, wantDelete, wantHeld int) {
		t.Helper()
		s.Current = w.current()
		plan, err := NewPlan(s)
		if held, _ := heldBy(plan); err != nil || len(plan.Delete) != wantDelete || len(held) != wantHeld {
			t.Fatalf("%s: %d deletes, %d held, %v; want %d, %d", what, len(plan.Delete), len(held), err, wantDelete, wantHeld)
		}
		w.carryOut(plan)
	}
	step("labels go", 0, 12)
	s.Memory = &Memory{}
	step("the hub restarts", 0, 12)
	s.Bundle, s.PersonsEdit = edited(t, s.Bundle, "targets: [{clusterSelector: {matchLabels: {env: prod, tier: gold}}}]"), true
	step("an edit removes the others", 8, 12)
	s.PersonsEdit = false
	step("and is carried out", 0, 12)
}

// Whatever is edited and relabelled at once: what is deleted the edit removes from the clusters as they were, or it is
// not much; what waits is exactly the rest; and it goes on waiting, whether the next pass still takes the edit for new
// or not.
func TestWhatOnlyLabelsRemoveWaits(t *testing.T) {
	environments := []string{"prod", "test", "dev"}
	guarded, deleted := 0, 0
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		targets := func() string {
			text := "targets: ["
			for _, env := range environments {
				if random.IntN(2) == 0 {
					text += fmt.Sprintf("{clusterSelector: {matchLabels: {env: %s}}}, ", env)
				}
			}
			return text + "{clusterName: c000}]"
		}
		w := newWorld(t)
		s := Snapshot{Bundle: bundleOf(t, targets()), ManifestID: "s-1", Clusters: fleetOf(8 + random.IntN(24)), Memory: &Memory{}}
		for i := range s.Clusters {
			s.Clusters[i].Labels = map[string]string{"env": environments[random.IntN(3)]}
		}
		w.settle(s)
		s.Current = w.current()
		if _, err := NewPlan(s); err != nil {
			t.Fatal(err)
		}
		asTheyWere := s.Clusters
		s.Clusters = slices.Clone(s.Clusters)
		for i := range s.Clusters {
			if env := append(environments, "none", "none", "none", "none", "none")[random.IntN(8)]; random.IntN(4) > 0 {
				s.Clusters[i].Labels = map[string]string{"env": env}
			}
		}
		s.Bundle, s.PersonsEdit = edited(t, s.Bundle, targets()), true
		plan, err := NewPlan(s)
		if err != nil {
			t.Fatal(err)
		}
		editOnly := s
		editOnly.Clusters, editOnly.Memory = asTheyWere, nil
		alone, err := NewPlan(editOnly)
		if err != nil {
			t.Fatal(err)
		}
		byEdit := map[string]bool{}
		for _, deployment := range alone.Delete {
			byEdit[deployment.Cluster] = true
		}
		explained, others := 0, 0
		for _, deployment := range plan.Delete {
			if byEdit[deployment.Cluster] {
				explained++
			} else {
				others++
			}
		}
		held, _ := heldBy(plan)
		for _, cluster := range held {
			if byEdit[cluster] {
				t.Fatalf("seed %d: %s waits, which the edit removes", seed, cluster)
			}
		}
		if left := len(s.Current) - explained; others > guardFrom && others*2 > left || len(held) > 0 && others > 0 {
			t.Fatalf("seed %d: %d of %d are deleted that no edit explains, %d wait", seed, others, left, len(held))
		}
		deleted += len(plan.Delete)
		if len(held) == 0 {
			continue
		}
		guarded++
		w.carryOut(plan)
		s.Current = w.current()
		for _, s.PersonsEdit = range []bool{true, false} {
			again, err := NewPlan(s)
			if still, _ := heldBy(again); err != nil || len(again.Delete) > 0 || !slices.Equal(still, held) || again.Guard.Token != plan.Guard.Token {
				t.Fatalf("seed %d: the next pass deletes %d and holds %v, want %v (%v)", seed, len(again.Delete), still, held, err)
			}
		}
	}
	if guarded < 20 || deleted < 100 {
		t.Errorf("%d times something waited, %d deletions: that proves little", guarded, deleted)
	}
}
