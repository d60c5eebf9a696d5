package stack_test

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestProgressMissing(t *testing.T) {
	ready := func(cluster string) stack.Deployment {
		return stack.Deployment{Bundle: "web", Cluster: cluster, State: fleet.Ready}
	}
	late := stack.Deployment{Bundle: "web", Cluster: "b", State: fleet.ErrApplied, Message: "no such kind"}
	for name, c := range map[string]struct {
		progress stack.Progress
		want     string // in the answer; "" for none
	}{
		"everywhere":      {stack.Progress{Commit: "c", Bundles: []string{"web"}, Deployments: []stack.Deployment{ready("a"), ready("b")}, Rolled: true}, ""},
		"older commit":    {stack.Progress{Commit: "b", Bundles: []string{"web"}, Deployments: []stack.Deployment{ready("a"), ready("b")}, Rolled: true}, "has not read commit c"},
		"unreadable":      {stack.Progress{Commit: "b", Problem: "no such branch"}, "no such branch"},
		"no bundle":       {stack.Progress{Commit: "c"}, "no bundle"},
		"one cluster":     {stack.Progress{Commit: "c", Bundles: []string{"web"}, Deployments: []stack.Deployment{ready("a")}, Rolled: true}, "1 deployments on 2"},
		"one is late":     {stack.Progress{Commit: "c", Bundles: []string{"web"}, Deployments: []stack.Deployment{ready("a"), late}}, "web on b is ErrApplied: no such kind"},
		"numbers behind":  {stack.Progress{Commit: "c", Bundles: []string{"web"}, Deployments: []stack.Deployment{ready("a"), ready("b")}}, "numbers"},
		"condition after": {stack.Progress{Commit: "c", Problem: "not yet", Bundles: []string{"web"}, Deployments: []stack.Deployment{ready("a"), ready("b")}, Rolled: true}, "not yet"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.progress.Missing("c", 2)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
