package rollout

import (
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
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
	// Failed says that the cluster reports that it cannot apply what is wanted.
	Failed bool
	// SentAt is when it was told, where that is known.
	SentAt time.Time
	// ReadySince is since when it is Applied.
	ReadySince time.Time
	// Paused says that the cluster is, which keeps it from being released.
	Paused bool
	// Idle says that the cluster does nothing now, by a schedule: nothing is waited for.
	Idle bool
	// Frozen says that the deployment is left as it is, because it could not be planned or is being removed.
	Frozen bool
	// Held says that what is wanted does not render for the cluster, or was not rendered yet. It is left as it
	// is and runs on, so that it takes no part in maxUnavailable by that; but it does not run what is wanted, so
	// that it holds up later partitions as a cluster does on which it fails.
	Held bool
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

// Input is what a decision is made from.
type Input struct {
	// Strategy may be nil, which has upstream's defaults.
	Strategy *fleet.RolloutStrategy
	// OfflineBudget bounds the offline clusters that are not waited for; nil means a quarter, one at least.
	OfflineBudget *intstr.IntOrString
	// Members in the order of the rollout.
	Members []Member
	// Paused says that the whole bundle is, so that no member is released. What has failed before still has.
	Paused bool
	// AcceptedFailures is up to how many failures a person wants the rollout to go on.
	AcceptedFailures int
	Now              time.Time
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
	// Stuck names a limit of 0 that keeps clusters from ever changing, or from getting the bundle; empty when there
	// is none.
	Stuck string
	// Unavailable deployments before this pass, and how many may be.
	Unavailable, MaxUnavailable int
	// UnavailablePartitions after this pass, and how many may be before later ones wait.
	UnavailablePartitions, MaxUnavailablePartitions int
	// Rollout counts how far the members are before this pass. Its NextCheck is not set.
	Rollout fleet.RolloutStatus
	// NextCheck is when time alone may change the decision; zero when it does not.
	NextCheck time.Time
}

// Decide plans one pass. A strategy that cannot be read is an error of class Stalled.
func Decide(in Input) (Decision, error) {
	l, err := newLimits(in.Strategy, in.OfflineBudget, len(in.Members))
	if err != nil {
		return Decision{}, err
	}
	parts, err := l.partitions(in.Members)
	if err != nil {
		return Decision{}, err
	}
	maxParts, err := limit("maxUnavailablePartitions", len(parts), l.strategy.MaxUnavailablePartitions, defaultMaxUnavailablePartitions)
	if err != nil {
		return Decision{}, err
	}
	p := &pass{limits: l, paused: in.Paused, members: in.Members, excused: excused(in.Members, l.offline)}
	if p.exempt = p.excused; p.paused {
		p.exempt = slices.Repeat([]bool{true}, len(in.Members))
	}
	p.decision = Decision{
		Actions:                  make([]Action, len(in.Members)),
		MaxUnavailable:           l.maxUnavailable,
		MaxUnavailablePartitions: maxParts,
	}
	p.classify(in.Now)
	if err := p.judge(parts, in.AcceptedFailures); err != nil {
		return Decision{}, err
	}
	p.total = p.unavailable(indexes(0, len(in.Members)))
	p.inFlight = p.flying()
	p.decision.Unavailable = p.total
	open := true
	for _, part := range parts {
		if open {
			p.run(part)
		}
		outcome, behind := p.outcome(part)
		p.decision.Partitions = append(p.decision.Partitions, outcome)
		if behind {
			p.decision.UnavailablePartitions++
		}
		open = open && p.decision.UnavailablePartitions <= maxParts && (!behind || !part.mandatory)
	}
	p.decision.Rollout.Phase = p.phase(in.Paused)
	return p.decision, nil
}

// excused returns the members that are not waited for, whether the bundle is paused or not.
func excused(members []Member, offline int) []bool {
	list := make([]bool, len(members))
	for i, member := range members {
		list[i] = member.Idle || member.Paused || member.Frozen
		if !list[i] && member.Offline && !member.Applied && offline > 0 {
			list[i] = true
			offline--
		}
	}
	return list
}

// pass is the state of one decision.
type pass struct {
	limits  limits
	paused  bool
	members []Member
	// exempt members are not waited for: the excused ones, or all while the bundle is paused.
	exempt, excused []bool
	progress        []progress
	// tolerated members failed, and the rollout goes on in spite of it.
	tolerated []bool
	decision  Decision
	// total of unavailable deployments, with those this pass makes unavailable.
	total int
	// inFlight were told and have not succeeded, with those this pass tells.
	inFlight int
}

// run acts on the members of one partition, in order.
func (p *pass) run(part partition) {
	unavailable := p.unavailable(part.members)
	for _, i := range part.members {
		member, action := p.members[i], &p.decision.Actions[i]
		switch {
		case member.Frozen || member.Held || action.Stage:
		case !member.Exists:
			p.create(i)
		default:
			action.Stage = true
			if p.paused || member.Paused || member.Released || p.decision.Rollout.Breached {
				continue
			}
			if p.release(i, part, unavailable) {
				unavailable++
			}
		}
	}
}

// create makes the deployment of a new member, if there may be another one.
func (p *pass) create(i int) {
	paused := p.paused || p.members[i].Paused
	switch {
	case p.decision.Rollout.Breached:
	case p.limits.maxNew <= 0:
		p.decision.Stuck = "maxNew"
	case p.decision.Created >= p.limits.maxNew:
		p.decision.More = true
	case paused || p.exempt[i] || p.slot():
		p.decision.Created++
		p.decision.Actions[i] = Action{Create: true, Stage: true, Release: !paused}
	}
}

// release lets a member change, if the limits allow it, and says whether that makes one more unavailable.
func (p *pass) release(i int, part partition, unavailable int) bool {
	action := &p.decision.Actions[i]
	switch {
	case p.exempt[i]:
		action.Release = true
	case p.members[i].Unavailable:
		action.Release = p.slot()
	case p.limits.maxUnavailable == 0:
		p.decision.Stuck = "maxUnavailable"
	case part.maxUnavailable == 0:
		p.decision.Stuck = "maxUnavailable of partition " + strconv.Quote(part.name)
	case p.total < p.limits.maxUnavailable && unavailable < part.maxUnavailable && p.slot():
		action.Release = true
		p.total++
		return true
	}
	return false
}

// slot takes one of the places for members in flight, if there is one left.
func (p *pass) slot() bool {
	if p.limits.maxConcurrency == 0 {
		p.decision.Stuck = "maxConcurrency"
	}
	if p.inFlight >= p.limits.maxConcurrency {
		return false
	}
	p.inFlight++
	return true
}

// flying counts the members that were told and have not succeeded.
func (p *pass) flying() int {
	count := 0
	for i, state := range p.progress {
		if state != toApply && state != succeeded && !p.exempt[i] && !p.tolerated[i] {
			count++
		}
	}
	return count
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

// outcome counts what of a partition does not run what is wanted, after the pass, and says whether the
// next partition has to wait for that.
func (p *pass) outcome(part partition) (outcome Partition, behind bool) {
	outcome = Partition{Name: part.name, Members: part.members, MaxUnavailable: part.maxUnavailable}
	waiting := 0
	for _, i := range part.members {
		if p.exempt[i] || p.tolerated[i] {
			continue
		}
		if !p.members[i].Applied {
			outcome.Unavailable++
		}
		if p.progress[i] != succeeded {
			waiting++
		}
	}
	return outcome, outcome.Unavailable > outcome.MaxUnavailable || part.strict && waiting > 0
}
