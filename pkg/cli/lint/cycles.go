package lint

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
)

// cycles finds bundles that wait for each other, or for themselves, and so are never deployed. What is not
// among the bundles may come from another repository.
func cycles(bundles []bundle.Bundle) []Finding {
	search := &cycleSearch{bundles: bundles, done: map[int]bool{}}
	for i := range bundles {
		search.visit(i)
	}
	return search.findings
}

type cycleSearch struct {
	bundles  []bundle.Bundle
	done     map[int]bool
	way      []int
	findings []Finding
}

func (c *cycleSearch) visit(i int) {
	if start := slices.Index(c.way, i); start >= 0 {
		c.report(c.way[start:])
		return
	}
	if c.done[i] {
		return
	}
	c.way = append(c.way, i)
	for j := range c.bundles {
		if waitsFor(c.bundles[i].Object, c.bundles[j].Object) {
			c.visit(j)
		}
	}
	c.way = c.way[:len(c.way)-1]
	c.done[i] = true
}

func (c *cycleSearch) report(cycle []int) {
	var names []string
	for _, i := range append(slices.Clone(cycle), cycle[0]) {
		names = append(names, c.bundles[i].Object.Name)
	}
	c.findings = append(c.findings, Finding{
		File: source(c.bundles[cycle[0]]), Severity: Warning, Rule: "dependency-cycle",
		Message: fmt.Sprintf("dependsOn goes round in a circle, so none of these bundles is ever deployed: %s", strings.Join(names, " waits for ")),
	})
}

// waitsFor applies the agent's rules: a name and a selector must both fit, and a selector never means the
// bundle it stands in.
func waitsFor(waiting, other *fleet.Bundle) bool {
	return slices.ContainsFunc(waiting.Spec.DependsOn, func(ref fleet.BundleRef) bool {
		if ref.Name != "" && ref.Name != other.Name {
			return false
		}
		if ref.Selector == nil {
			return ref.Name != ""
		}
		selector, err := metav1.LabelSelectorAsSelector(ref.Selector)
		return err == nil && waiting.Name != other.Name && selector.Matches(labels.Set(other.Labels))
	})
}
