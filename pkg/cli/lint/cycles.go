package lint

import (
	"fmt"
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/depends"
)

// cycles finds bundles that wait for each other, or for themselves, and so are never deployed. What is not
// among the bundles may come from another repository.
func cycles(bundles []bundle.Bundle) []Finding {
	search := &cycleSearch{bundles: bundles, done: map[int]bool{}}
	for i := range bundles {
		search.objects = append(search.objects, bundles[i].Object)
	}
	for i := range bundles {
		search.visit(i)
	}
	return search.findings
}

type cycleSearch struct {
	bundles  []bundle.Bundle
	objects  []*fleet.Bundle
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
	for _, first := range depends.WaitsFor(c.bundles[i].Object, c.objects) {
		c.visit(slices.Index(c.objects, first))
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
