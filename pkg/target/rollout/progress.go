package rollout

import (
	"time"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// progress is how far one member is.
type progress int

const (
	toApply progress = iota
	progressing
	succeeded
	failed
	timedOut
)

// progressOf tells a member's progress and when time alone may change it; zero when it does not. A member
// that is not waited for does not time out.
func (l limits) progressOf(member Member, waited bool, now time.Time) (progress, time.Time) {
	switch {
	case !member.Released:
		return toApply, time.Time{}
	case member.Applied:
		if due := member.ReadySince.Add(l.minSuccess); l.minSuccess > 0 && now.Before(due) {
			return progressing, due
		}
		return succeeded, time.Time{}
	case member.Failed:
		return failed, time.Time{}
	case l.deadline <= 0 || member.SentAt.IsZero() || !waited:
		return progressing, time.Time{}
	}
	if due := member.SentAt.Add(l.deadline); now.Before(due) {
		return progressing, due
	}
	return timedOut, time.Time{}
}

// Bounds of how exactly times are looked at.
const (
	finest   = time.Second
	coarsest = time.Minute
	// steps is how many looks there are in a span of time.
	steps = 60
)

// grain is how exactly times are looked at, so that thousands of clusters which become ready one after
// another give a few dozen looks, and not as many writes of the bundle's status as there are clusters.
func (l limits) grain() time.Duration {
	span := max(l.minSuccess, l.deadline)
	if l.minSuccess > 0 && l.deadline > 0 {
		span = min(l.minSuccess, l.deadline)
	}
	return min(max(span/steps, finest), coarsest).Truncate(time.Second)
}

// classify notes the progress of all members, who is not waited for, and when to look again.
func (p *pass) classify(now time.Time) {
	p.progress = make([]progress, len(p.members))
	grain := p.limits.grain()
	for i, member := range p.members {
		state, due := p.limits.progressOf(member, !p.exempt[i], now)
		p.progress[i] = state
		p.count(state)
		if due.IsZero() {
			continue
		}
		// Up to the next whole grain, so never before it is due.
		due = due.Add(grain - 1).Truncate(grain)
		if p.decision.NextCheck.IsZero() || due.Before(p.decision.NextCheck) {
			p.decision.NextCheck = due
		}
	}
}

func (p *pass) count(state progress) {
	counts := &p.decision.Rollout
	switch state {
	case toApply:
		counts.ToApply++
	case progressing:
		counts.Progressing++
	case succeeded:
		counts.Succeeded++
	case failed:
		counts.Failed++
	case timedOut:
		counts.TimedOut++
	}
}

// failing says that a member which is waited for failed or timed out.
func (p *pass) failing(i int) bool {
	return !p.excused[i] && (p.progress[i] == failed || p.progress[i] == timedOut)
}

// judge decides whether so much has failed that the rollout halts, and which failures it goes on in spite
// of.
func (p *pass) judge(parts []partition, accepted int) error {
	failures, breached, err := p.failures(parts)
	if err != nil {
		return err
	}
	p.decision.Rollout.Breached = breached && failures > accepted
	p.tolerated = make([]bool, len(p.members))
	if p.decision.Rollout.Breached {
		return nil
	}
	for _, part := range parts {
		for _, i := range part.members {
			p.tolerated[i] = p.tolerated[i] || p.failing(i) && (part.mandatory || p.limits.maxFailures != nil)
		}
	}
	return nil
}

// failures counts the failing members, and says whether they are more than tolerated: any in a mandatory
// partition, more than maxFailures of all others, or of a partition where each has its own.
func (p *pass) failures(parts []partition) (all int, breached bool, err error) {
	counted := make([]bool, len(p.members))
	others := 0
	for _, part := range parts {
		own := 0
		for _, i := range part.members {
			if !p.failing(i) {
				continue
			}
			own++
			if !counted[i] {
				counted[i] = true
				all++
				if !part.mandatory {
					others++
				}
			}
		}
		switch {
		case part.mandatory:
			breached = breached || own > 0
		case p.limits.maxFailures != nil && p.limits.kind == fleet.RolloutProgressivePerGroup:
			most, err := tolerance(len(part.members), *p.limits.maxFailures)
			if err != nil {
				return 0, false, err
			}
			breached = breached || own > most
		}
	}
	if p.limits.maxFailures == nil || p.limits.kind == fleet.RolloutProgressivePerGroup {
		return all, breached, nil
	}
	most, err := tolerance(len(p.members), *p.limits.maxFailures)
	return all, breached || others > most, err
}

// phase says whether the rollout goes on by itself. Members that are not waited for keep it from nothing,
// but for those that nobody could plan. A pause is no such excuse: what it stops is not complete.
func (p *pass) phase(paused bool) fleet.RolloutPhase {
	left := 0
	for i, state := range p.progress {
		waited := !p.excused[i] || p.members[i].Frozen
		if waited && state != succeeded && !p.tolerated[i] {
			left++
		}
	}
	switch {
	case p.decision.Rollout.Breached, paused && (left > 0 || p.decision.Rollout.ToApply > 0), p.decision.Stuck != "":
		return fleet.RolloutHalted
	case left == 0:
		return fleet.RolloutComplete
	}
	return fleet.RolloutProgressing
}
