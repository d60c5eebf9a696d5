package depends

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func bundle(name string, refs ...fleet.BundleRef) *fleet.Bundle {
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: name, Labels: map[string]string{"tier": name[:1]}}}
	b.Spec.DependsOn = refs
	return b
}

func on(name string) fleet.BundleRef { return fleet.BundleRef{Name: name} }

func tier(value string) fleet.BundleRef {
	return fleet.BundleRef{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": value}}}
}

func names(bundles []*fleet.Bundle) string {
	var all []string
	for _, b := range bundles {
		all = append(all, b.Name)
	}
	return strings.Join(all, " ")
}

func itself(b *fleet.Bundle) *fleet.Bundle { return b }

func TestOrder(t *testing.T) {
	elsewhere := bundle("base")
	elsewhere.Namespace = "other"
	broken := fleet.BundleRef{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"-": "-"}}}
	for name, test := range map[string]struct {
		all []*fleet.Bundle
		// wantOrder is that of all; wantWaits and wantBefore are of the first.
		wantOrder, wantWaits, wantBefore string
	}{
		"nothing to order":      {[]*fleet.Bundle{bundle("b"), bundle("a")}, "b a", "", ""},
		"by name":               {[]*fleet.Bundle{bundle("app", on("base")), bundle("base")}, "base app", "base", "base"},
		"by selector":           {[]*fleet.Bundle{bundle("app", tier("p")), bundle("px"), bundle("b"), bundle("py")}, "px py app b", "px py", "px py"},
		"a chain":               {[]*fleet.Bundle{bundle("c", on("b")), bundle("b", on("a")), bundle("a")}, "a b c", "b", "b"},
		"both must fit":         {[]*fleet.Bundle{bundle("app", fleet.BundleRef{Name: "px", Selector: tier("q").Selector}), bundle("px")}, "app px", "", ""},
		"of another namespace":  {[]*fleet.Bundle{bundle("app", on("base")), elsewhere}, "app base", "", ""},
		"an empty reference":    {[]*fleet.Bundle{bundle("app", fleet.BundleRef{}), bundle("base")}, "app base", "", ""},
		"a broken selector":     {[]*fleet.Bundle{bundle("app", broken, on("base")), bundle("base")}, "base app", "base", "base"},
		"its own selector":      {[]*fleet.Bundle{bundle("app", tier("a")), bundle("all")}, "all app", "all", "all"},
		"itself by name":        {[]*fleet.Bundle{bundle("app", on("app"), tier("a")), bundle("all")}, "all app", "app all", "all"},
		"a circle":              {[]*fleet.Bundle{bundle("a", on("b")), bundle("b", on("a"))}, "b a", "b", ""},
		"beside a circle":       {[]*fleet.Bundle{bundle("c", on("a")), bundle("a", on("b")), bundle("b", on("a"))}, "b a c", "a", "a"},
		"a circle and a bundle": {[]*fleet.Bundle{bundle("a", on("b"), on("x")), bundle("b", on("a")), bundle("x")}, "b x a", "b x", "x"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := names(Order(test.all, itself)); got != test.wantOrder {
				t.Errorf("order %q, want %q", got, test.wantOrder)
			}
			if got := names(WaitsFor(test.all[0], test.all)); got != test.wantWaits {
				t.Errorf("waits for %q, want %q", got, test.wantWaits)
			}
			if got := names(Before(test.all[0], test.all)); got != test.wantBefore {
				t.Errorf("before it %q, want %q", got, test.wantBefore)
			}
		})
	}
}

// Whatever bundles wait for each other: all are in the order, each after all that have to be delivered before it, and
// nobody who has to be delivered before another one waits for that one.
func TestOrderOfAny(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 5))
		var all []*fleet.Bundle
		for i := range 1 + random.IntN(8) {
			var refs []fleet.BundleRef
			for range random.IntN(3) {
				if random.IntN(3) == 0 {
					refs = append(refs, tier("b"))
				} else {
					refs = append(refs, on(fmt.Sprint("b", random.IntN(8))))
				}
			}
			all = append(all, bundle(fmt.Sprint("b", i), refs...))
		}
		ordered := Order(all, itself)
		if len(ordered) != len(all) {
			t.Fatalf("seed %d: %d of %d are in the order", seed, len(ordered), len(all))
		}
		for _, b := range all {
			for _, first := range Before(b, all) {
				if slices.Index(ordered, first) > slices.Index(ordered, b) {
					t.Fatalf("seed %d: %s before %s", seed, names(ordered), first.Name)
				}
				if slices.Contains(Before(first, all), b) {
					t.Fatalf("seed %d: %s and %s are to be before each other", seed, b.Name, first.Name)
				}
			}
		}
	}
}
