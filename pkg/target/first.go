package target

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/depends"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/target/match"
)

// First is a bundle to deliver before another one that depends on it: agents look at what is on their cluster, so that
// what is not there yet would not be waited for, and what is there is of the version before.
type First struct {
	// Bundle needs no files.
	Bundle *fleet.Bundle
	// Settled says that its present version was planned, and what is to be written at once for it is written.
	Settled bool
	// Current are its deployments.
	Current []*fleet.BundleDeployment
}

// precedence holds bundles back from clusters that others are to reach first.
type precedence struct {
	firsts []preceding
	groups []match.Group
}

type preceding struct {
	First
	matcher *match.Matcher
	// on are its deployments by namespace, once they were asked for.
	on map[string]*fleet.BundleDeployment
}

// lacks says that the bundle has yet to come to a cluster in its present version.
func (p *preceding) lacks(cluster *ClusterInfo, in []match.Group) bool {
	if !p.matcher.Match(cluster.matchable(), in).Deploy {
		return false
	}
	if p.on == nil {
		p.on = byNamespace(p.Current)
	}
	return !p.Settled || p.on[cluster.DeploymentNamespace] == nil
}

func newPrecedence(s Snapshot) precedence {
	if len(s.First) == 0 {
		return precedence{}
	}
	made := precedence{}
	made.groups, _ = match.Groups(s.Groups) // those that cannot be read are warned about elsewhere
	for _, first := range s.First {
		matcher, err := match.Compile(&first.Bundle.Spec)
		if err != nil {
			continue // it reaches nothing
		}
		made.firsts = append(made.firsts, preceding{First: first, matcher: matcher})
	}
	return made
}

// precede holds a cluster back that is to be sent something new before it has all that comes first.
func (p *Plan) precede(order precedence, target *Targeted, current *fleet.BundleDeployment) {
	if len(order.firsts) == 0 || target.Err != nil || target.held || !news(current, target.DeploymentID) {
		return
	}
	in := match.GroupsOf(target.Cluster.matchable(), order.groups)
	for i := range order.firsts {
		first := &order.firsts[i]
		if !first.lacks(target.Cluster, in) {
			continue
		}
		if name := (types.NamespacedName{Namespace: first.Bundle.Namespace, Name: first.Bundle.Name}); !slices.Contains(p.Awaited, name) {
			p.Awaited = append(p.Awaited, name)
		}
		p.Unsettled = p.Unsettled || !first.Settled
		if target.Err == nil {
			target.held = true
			target.Err = fault.New(fault.Waiting, depends.ReasonWaiting, "waiting for bundle %s, which goes there first", first.Bundle.Name)
		}
	}
}
