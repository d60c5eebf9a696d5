package rollout

import (
	"strconv"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Member is how one cluster stands to the content that is wanted there.
type Member struct {
	// Partitions are the indexes of the manual partitions the cluster is in.
	Partitions []int
	// Exists says that the cluster has a deployment of the bundle.
	Exists bool
	// Released says that the deployment was already told to run what is wanted.
	Released bool
	// Applied says that the cluster reports what is wanted as applied and ready.
	Applied bool
	// Unavailable says that the deployment has not applied what it was told, or is not ready.
	Unavailable bool
	// Paused keeps the cluster from being released.
	Paused bool
	// Idle says that the cluster does nothing now, by a schedule, because it could not be planned, or because
	// it is being removed: nothing is waited for.
	Idle bool
	// Frozen says that the deployment is left as it is.
	Frozen bool
	// Offline says that the cluster's agent is not heard from.
	Offline bool
}

// Action is what to do with one member.
type Action struct {
	// Create a deployment.
	Create bool
	// Stage what is wanted.
	Stage bool
	// Release what is staged, so that the agent acts.
	Release bool
}

// Partition is what one partition amounts to after the pass.
type Partition struct {
	Name string
	// Members by index.
	Members []int
	// MaxUnavailable is the limit for Unavailable.
	MaxUnavailable int
	// Unavailable counts members that do not run what is wanted, or are not ready.
	Unavailable int
}

// Decision is the answer for all members.
type Decision struct {
	// Actions by member.
	Actions    []Action
	Partitions []Partition
	// Created counts new deployments in this pass.
	Created int
	// More says that new deployments were left for the next pass.
	More bool
	// Stuck names a limit of 0 that keeps ready clusters from ever changing; empty when there is none.
	Stuck string
	// Unavailable deployments before this pass, and how many may be.
	Unavailable, MaxUnavailable int
	// UnavailablePartitions after this pass, and how many may be before later ones wait.
	UnavailablePartitions, MaxUnavailablePartitions int
}

// Decide plans one pass. Members are in the order of the rollout. A nil strategy has upstream's defaults;
// a nil budget lets a quarter of the clusters (one at least) be offline without holding up the others.
// A strategy that cannot be read is an error of class Stalled.
func Decide(strategy *fleet.RolloutStrategy, offlineBudget *intstr.IntOrString, members []Member) (Decision, error) {
	l, err := newLimits(strategy, offlineBudget, len(members))
	if err != nil {
		return Decision{}, err
	}
	parts, err := l.partitions(members)
	if err != nil {
		return Decision{}, err
	}
	maxParts, err := limit("maxUnavailablePartitions", len(parts), l.strategy.MaxUnavailablePartitions, defaultMaxUnavailablePartitions)
	if err != nil {
		return Decision{}, err
	}
	p := &pass{limits: l, members: members, exempt: exempt(members, l.offline)}
	p.decision = Decision{
		Actions:                  make([]Action, len(members)),
		MaxUnavailable:           l.maxUnavailable,
		MaxUnavailablePartitions: maxParts,
	}
	p.total = p.unavailable(indexes(0, len(members)))
	p.decision.Unavailable = p.total
	open := true
	for _, part := range parts {
		if open {
			p.run(part)
		}
		outcome := p.outcome(part)
		p.decision.Partitions = append(p.decision.Partitions, outcome)
		if outcome.Unavailable > outcome.MaxUnavailable {
			p.decision.UnavailablePartitions++
		}
		open = open && p.decision.UnavailablePartitions <= maxParts
	}
	return p.decision, nil
}

// exempt returns the members that are not waited for.
func exempt(members []Member, offline int) []bool {
	list := make([]bool, len(members))
	for i, member := range members {
		list[i] = member.Idle || member.Paused || member.Frozen
		if !list[i] && member.Offline && offline > 0 {
			list[i] = true
			offline--
		}
	}
	return list
}

// pass is the state of one decision.
type pass struct {
	limits   limits
	members  []Member
	exempt   []bool
	decision Decision
	// total of unavailable deployments, with those this pass makes unavailable.
	total int
}

// run acts on the members of one partition, in order.
func (p *pass) run(part partition) {
	unavailable := p.unavailable(part.members)
	for _, i := range part.members {
		member, action := p.members[i], &p.decision.Actions[i]
		if member.Frozen || action.Stage {
			continue
		}
		if !member.Exists {
			if p.decision.Created >= p.limits.maxNew {
				p.decision.More = true
				continue
			}
			p.decision.Created++
			*action = Action{Create: true, Stage: true, Release: !member.Paused}
			continue
		}
		action.Stage = true
		if member.Paused || member.Released {
			continue
		}
		if p.exempt[i] || member.Unavailable {
			action.Release = true
			continue
		}
		switch {
		case p.limits.maxUnavailable == 0:
			p.decision.Stuck = "maxUnavailable"
		case part.maxUnavailable == 0:
			p.decision.Stuck = "maxUnavailable of partition " + strconv.Quote(part.name)
		case p.total < p.limits.maxUnavailable && unavailable < part.maxUnavailable:
			action.Release = true
			p.total++
			unavailable++
		}
	}
}

// unavailable counts existing deployments that do not run what they were told, those that were released in
// this pass by another partition included.
func (p *pass) unavailable(members []int) int {
	count := 0
	for _, i := range members {
		down := p.members[i].Unavailable || p.decision.Actions[i].Release
		if p.members[i].Exists && down && !p.exempt[i] {
			count++
		}
	}
	return count
}

// outcome counts what of a partition does not run what is wanted, after the pass.
func (p *pass) outcome(part partition) Partition {
	outcome := Partition{Name: part.name, Members: part.members, MaxUnavailable: part.maxUnavailable}
	for _, i := range part.members {
		if !p.exempt[i] && !p.members[i].Applied {
			outcome.Unavailable++
		}
	}
	return outcome
}
