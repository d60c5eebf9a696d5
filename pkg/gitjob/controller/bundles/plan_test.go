package bundles

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/repotest"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// empty says that a plan writes nothing.
func (p Plan) empty() bool {
	return len(p.create)+len(p.update)+len(p.repair)+len(p.grant)+len(p.Delete)+len(p.terminating) == 0
}

// want makes a wanted bundle of repository shop; text stands for its files.
func want(t testing.TB, name, text string) Wanted {
	t.Helper()
	object := repotest.Bundle(name, text)
	summary, err := content.Summarize(object.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return Wanted{Bundle: object, Summary: summary}
}

// cached is a wanted bundle as the cache shows it once it is stored.
func cached(t testing.TB, one Wanted, change func(*fleet.Bundle)) *fleet.Bundle {
	t.Helper()
	return repotest.Cached(t, one.Bundle, change)
}

func labelled(key, value string) func(*fleet.Bundle) {
	return func(b *fleet.Bundle) { b.Labels[key] = value }
}

func deleting(b *fleet.Bundle) {
	b.DeletionTimestamp = &metav1.Time{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
}

func ready(status corev1.ConditionStatus, reason, message string) func(*fleet.Bundle) {
	return func(b *fleet.Bundle) {
		b.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionReady, Status: status, Reason: reason, Message: message}}
	}
}

// heldBundle is what the cache shows of a Bundle that a person paused.
func heldBundle(t testing.TB, one Wanted) *fleet.Bundle {
	t.Helper()
	one.Bundle.Spec.Paused = true
	return cached(t, one, func(b *fleet.Bundle) { b.Annotations[fleet.HoldAnnotation] = "true" })
}

func pausedOnly(t testing.TB, one Wanted) *fleet.Bundle {
	t.Helper()
	one.Bundle.Spec.Paused = true
	return cached(t, one, nil)
}

var valuesMissing = ready(corev1.ConditionFalse, target.ReasonValuesMissing, "no Secret")

func (p Plan) String() string {
	var words []string
	for verb, list := range map[string][]Wanted{"create": p.create, "update": p.update, "values": p.repair} {
		for _, one := range list {
			words = append(words, verb+" "+one.Bundle.Name)
		}
	}
	for _, one := range p.Delete {
		words = append(words, "delete "+one.Name)
	}
	for _, name := range p.terminating {
		words = append(words, "terminating "+name)
	}
	slices.Sort(words)
	return strings.Join(words, ", ")
}

func TestPlanBundles(t *testing.T) {
	one := want(t, "one", "a")
	annotated := want(t, "one", "a")
	annotated.Bundle.Annotations = map[string]string{"note": "x"}
	for name, test := range map[string]struct {
		want      []Wanted
		existing  []*fleet.Bundle
		keep      bool
		wantPlan  string
		wantOwner string
		// wantPaused is for the updated Bundles.
		wantPaused bool
	}{
		"new":              {want: []Wanted{one}, wantPlan: "create one"},
		"the same":         {want: []Wanted{one}, existing: []*fleet.Bundle{cached(t, one, nil)}},
		"only the commit":  {want: []Wanted{one}, existing: []*fleet.Bundle{cached(t, one, labelled(fleet.CommitLabel, "c0"))}},
		"other files":      {want: []Wanted{one}, existing: []*fleet.Bundle{cached(t, want(t, "one", "b"), nil)}, wantPlan: "update one"},
		"other labels":     {want: []Wanted{one}, existing: []*fleet.Bundle{cached(t, one, labelled("team", "x"))}, wantPlan: "update one"},
		"new annotation":   {want: []Wanted{annotated}, existing: []*fleet.Bundle{cached(t, one, nil)}, wantPlan: "update one"},
		"same annotation":  {want: []Wanted{annotated}, existing: []*fleet.Bundle{cached(t, annotated, nil)}},
		"others' notes":    {want: []Wanted{one}, existing: []*fleet.Bundle{cached(t, annotated, nil)}},
		"values are gone":  {want: []Wanted{one}, existing: []*fleet.Bundle{cached(t, one, valuesMissing)}, wantPlan: "values one"},
		"held by a person": {want: []Wanted{one}, existing: []*fleet.Bundle{heldBundle(t, want(t, "one", "a"))}},
		"held, new files":  {want: []Wanted{one}, existing: []*fleet.Bundle{heldBundle(t, want(t, "one", "b"))}, wantPlan: "update one", wantPaused: true},
		"paused, not held": {want: []Wanted{one}, existing: []*fleet.Bundle{pausedOnly(t, want(t, "one", "a"))}, wantPlan: "update one"},
		"left the source":  {existing: []*fleet.Bundle{cached(t, one, nil)}, wantPlan: "delete one"},
		"incomplete read":  {existing: []*fleet.Bundle{cached(t, one, nil)}, keep: true},
		"left and leaving": {existing: []*fleet.Bundle{cached(t, one, deleting)}},
		"another repo's":   {existing: []*fleet.Bundle{cached(t, one, labelled(fleet.RepoLabel, "other"))}},
		"being deleted": {
			want: []Wanted{one, want(t, "two", "a")}, existing: []*fleet.Bundle{cached(t, one, deleting)},
			wantPlan: "create two, terminating one",
		},
		"taken by a repo": {
			want: []Wanted{one, want(t, "two", "a")}, existing: []*fleet.Bundle{cached(t, one, labelled(fleet.RepoLabel, "other"))},
			wantOwner: "the GitRepo other",
		},
		"taken by a HelmOp": {want: []Wanted{one}, existing: []*fleet.Bundle{cached(t, one, func(b *fleet.Bundle) {
			b.Labels = map[string]string{fleet.HelmOpLabel: "op"}
		})}, wantOwner: "the HelmOp op"},
		"taken by hand": {want: []Wanted{one}, existing: []*fleet.Bundle{cached(t, one, func(b *fleet.Bundle) { b.Labels = nil })}, wantOwner: "made by hand"},
	} {
		t.Run(name, func(t *testing.T) {
			existing := map[string]*fleet.Bundle{}
			for _, bundle := range test.existing {
				existing[bundle.Name] = bundle
			}
			got, err := Compare("shop", test.want, existing, !test.keep)
			if test.wantOwner != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantOwner) || fault.ClassOf(err) != fault.Stalled {
					t.Errorf("error %v, want it to name %s", err, test.wantOwner)
				}
				if !got.empty() {
					t.Errorf("a refused plan does %s", got)
				}
				return
			}
			if err != nil || got.String() != test.wantPlan {
				t.Errorf("plan %q (%v), want %q", got, err, test.wantPlan)
			}
			for _, update := range got.update {
				if update.Bundle.Spec.Paused != test.wantPaused {
					t.Errorf("paused: %v", update.Bundle.Spec.Paused)
				}
			}
			if got.empty() != (test.wantPlan == "") {
				t.Errorf("empty is %v for %s", got.empty(), got)
			}
		})
	}
}

// Carrying a plan out gives a hub on which the next plan is empty, that is intact and holds what was wanted,
// and no Bundle of another owner was touched.
func TestPlanConverges(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		existing := map[string]*fleet.Bundle{}
		foreign := map[string]*fleet.Bundle{}
		for i := range random.IntN(6) {
			one := want(t, fmt.Sprintf("b%d", i), fmt.Sprint(random.IntN(3)))
			existing[one.Bundle.Name] = cached(t, one, nil)
		}
		for i := range random.IntN(3) {
			one := want(t, fmt.Sprintf("f%d", i), "x")
			foreign[one.Bundle.Name] = cached(t, one, labelled(fleet.RepoLabel, "other"))
		}
		maps.Copy(existing, foreign)
		var wants []Wanted
		for i := range random.IntN(6) {
			wants = append(wants, want(t, fmt.Sprintf("b%d", i), fmt.Sprint(random.IntN(3))))
		}
		todo, err := Compare("shop", wants, existing, true)
		if err != nil {
			t.Fatal(err)
		}
		applied := Held(Ours("shop", existing), todo, writtenBy(todo))
		for _, one := range slices.Concat(todo.create, todo.update) {
			existing[one.Bundle.Name] = cached(t, one, nil)
		}
		for _, one := range todo.Delete {
			delete(existing, one.Name)
		}
		again, err := Compare("shop", wants, existing, true)
		if err != nil || !again.empty() {
			t.Fatalf("the second plan is %q (%v) after %q", again, err, todo)
		}
		if !Intact(Ours("shop", existing), applied) {
			t.Fatalf("after %q the hub does not count as intact", todo)
		}
		for name, bundle := range foreign {
			if existing[name] != bundle {
				t.Fatalf("the plan %q touches %s", todo, name)
			}
		}
	}
}

func writtenBy(todo Plan) map[string]string {
	digests := map[string]string{}
	for _, one := range slices.Concat(todo.create, todo.update) {
		digests[one.Bundle.Name] = one.Summary.SpecDigest
	}
	return digests
}

func TestIntactAndUnsettled(t *testing.T) {
	one, two := want(t, "one", "a"), want(t, "two", "b")
	good := ready(corev1.ConditionTrue, "", "")
	for name, test := range map[string]struct {
		existing      []*fleet.Bundle
		wantIntact    bool
		wantUnsettled string
	}{
		"as applied":         {[]*fleet.Bundle{cached(t, one, good), cached(t, two, good)}, true, ""},
		"one deleted":        {[]*fleet.Bundle{cached(t, one, good)}, false, "Bundle two: is being stored"},
		"one leaving":        {[]*fleet.Bundle{cached(t, one, good), cached(t, two, deleting)}, false, "Bundle two: is being stored"},
		"one edited":         {[]*fleet.Bundle{cached(t, one, good), cached(t, want(t, "two", "c"), good)}, false, "Bundle two: is being stored"},
		"one too many":       {[]*fleet.Bundle{cached(t, one, good), cached(t, two, good), cached(t, want(t, "x", ""), good)}, false, ""},
		"another repo's":     {[]*fleet.Bundle{cached(t, one, good), cached(t, two, good), cached(t, want(t, "x", ""), labelled(fleet.RepoLabel, "other"))}, true, ""},
		"values are missing": {[]*fleet.Bundle{cached(t, one, good), cached(t, two, valuesMissing)}, false, "Bundle two: no Secret"},
		"not planned yet":    {[]*fleet.Bundle{cached(t, one, nil), cached(t, two, good)}, true, "Bundle one: is being deployed"},
		"older spec planned": {[]*fleet.Bundle{cached(t, one, good), cached(t, two, func(b *fleet.Bundle) { good(b); b.Generation = 2 })}, true, "Bundle two: is being deployed"},
		"rolling out":        {[]*fleet.Bundle{cached(t, one, ready(corev1.ConditionFalse, "", "Pending(3)")), cached(t, two, good)}, true, "Bundle one: Pending(3)"},
	} {
		t.Run(name, func(t *testing.T) {
			existing := map[string]*fleet.Bundle{}
			for _, bundle := range test.existing {
				existing[bundle.Name] = bundle
			}
			own := Ours("shop", existing)
			applied := map[string]string{"one": one.Summary.SpecDigest, "two": two.Summary.SpecDigest}
			if got := Intact(own, applied); got != test.wantIntact {
				t.Errorf("intact: %v, want %v", got, test.wantIntact)
			}
			got := ""
			if err := Unsettled(own, applied); err != nil {
				got = err.Error()
			}
			if got != test.wantUnsettled {
				t.Errorf("unsettled: %q, want %q", got, test.wantUnsettled)
			}
		})
	}
}

// What others depend on is written first, whether it is there already or not.
func TestPlansAreWrittenInOrder(t *testing.T) {
	waiting := func(name string, on ...string) Wanted {
		one := want(t, name, "b")
		for _, other := range on {
			one.Bundle.Spec.DependsOn = append(one.Bundle.Spec.DependsOn, fleet.BundleRef{Name: other})
		}
		return one
	}
	todo := Plan{create: []Wanted{waiting("app", "base", "db"), waiting("db", "base")}, update: []Wanted{waiting("base"), waiting("zoo", "app")}}
	var got []string
	for _, one := range todo.inOrder() {
		got = append(got, fmt.Sprint(one.Bundle.Name, " ", one.exists))
	}
	want := []string{"base true", "db false", "app false", "zoo true"}
	if !slices.Equal(got, want) {
		t.Errorf("written are %v, want %v", got, want)
	}
}
