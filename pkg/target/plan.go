package target

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/target/rollout"
)

// Plan is what to write for a bundle now.
type Plan struct {
	Create []Deployment
	Update []Deployment
	Delete []Deployment
	// Secrets are deployments that stay, whose Secret must be written again.
	Secrets []Deployment
	// Unchanged counts deployments that need no write.
	Unchanged int

	// Failed are clusters for which there is no plan; what they have stays as it is.
	Failed []Failure
	// Waiting are clusters ("namespace/name") that have no namespace for deployments yet.
	Waiting []string
	// Lingering are clusters that are not reached any more and keep what they have until their schedule lets it go.
	Lingering []string
	// Warnings are what a person should mend although the bundle was planned: cluster groups that cannot be
	// read (they have no members), and a rollout that cannot go on.
	Warnings []error

	// Targets is the number of clusters that are reached, and Missing those of them without a deployment
	// once the plan is carried out.
	Targets, Missing int
	// Queued counts clusters whose change waits for others to be ready.
	Queued int
	// NewlyCreated, the four rollout numbers and the partitions are for the bundle's status.
	NewlyCreated                                    int
	Unavailable, MaxUnavailable                     int
	UnavailablePartitions, MaxUnavailablePartitions int
	Partitions                                      []fleet.PartitionStatus
	// Rollout says how far the bundle is, and NextCheck when time alone may change the plan; zero when it
	// does not.
	Rollout   fleet.RolloutStatus
	NextCheck time.Time
	// More says that the next plan creates more deployments: plan again when this one is carried out.
	More bool

	// Guard is set when deletions were left out of Delete, because there are many and no person asked for them.
	Guard *Guard

	// Awaited are bundles of Snapshot.First that clusters wait for: the plan sends them nothing new. Unsettled says that one of
	// these bundles was not planned yet.
	Awaited   []types.NamespacedName
	Unsettled bool

	// Checks are what the plan wants to know of: each different thing to render once, whether a verdict about
	// it is in the snapshot or not. Unchecked clusters wait for those that are not.
	Checks    []Check
	Unchecked int
}

// Failure is a cluster with the reason why there is no plan for it.
type Failure struct {
	// Cluster is "namespace/name".
	Cluster string
	Err     error
}

// NewPlan plans one pass. An error is about the whole bundle, of class Stalled; then nothing may be
// written.
func NewPlan(s Snapshot) (Plan, error) {
	current := byNamespace(s.Current)
	if s.Bundle.DeletionTimestamp != nil {
		plan := Plan{}
		plan.remove(s.Current)
		return plan, nil
	}
	if s.Memory == nil {
		s.Memory = &Memory{}
	}
	targets, warnings, err := Targets(s)
	if err != nil {
		return Plan{}, err
	}
	plan := Plan{Warnings: warnings, Targets: len(targets)}
	order := newPrecedence(s)
	placed := make([]*Targeted, 0, len(targets))
	waiting, asked := map[string]bool{}, map[CheckID]bool{}
	for i := range targets {
		target := &targets[i]
		if target.Cluster.DeploymentNamespace == "" {
			waiting[target.Cluster.Key()] = true
			plan.Waiting = append(plan.Waiting, target.Cluster.Key())
			continue
		}
		present := current[target.Cluster.DeploymentNamespace]
		plan.check(s, target, present, asked)
		plan.precede(order, target, present)
		if target.Err != nil {
			plan.Failed = append(plan.Failed, Failure{target.Cluster.Key(), target.Err})
		}
		placed = append(placed, target)
	}
	all := members(s, placed, current)
	decision, err := rollout.Decide(rollout.Input{
		Strategy: s.Bundle.Spec.RolloutStrategy, OfflineBudget: s.OfflineBudget, Members: all,
		Paused: s.Bundle.Spec.Paused, AcceptedFailures: AcceptedFailures(s.Bundle), Now: s.Now,
	})
	if err != nil {
		return Plan{}, fmt.Errorf("plan bundle %s/%s: %w", s.Bundle.Namespace, s.Bundle.Name, err)
	}
	plan.take(decision)
	plan.Partitions = partitionStatus(decision, placed, current)
	drafts := newDrafts(&s)
	for i, target := range placed {
		if !s.Bundle.Spec.Paused && queued(all[i], decision.Actions[i]) {
			plan.Queued++
		}
		plan.add(drafts, target, decision.Actions[i], current[target.Cluster.DeploymentNamespace])
	}
	plan.Missing += len(waiting)
	plan.await(len(waiting))
	plan.guardedDelete(s, plan.orphans(s, placed, waiting))
	return plan, nil
}

func byNamespace(deployments []*fleet.BundleDeployment) map[string]*fleet.BundleDeployment {
	current := make(map[string]*fleet.BundleDeployment, len(deployments))
	for _, deployment := range deployments {
		current[deployment.Namespace] = deployment
	}
	return current
}

// queued says that a member's change waits for others.
func queued(member rollout.Member, action rollout.Action) bool {
	switch {
	case member.Paused || member.Frozen || member.Held:
		return false
	case !member.Exists:
		return !action.Create
	}
	return !member.Released && !action.Release
}

func (p *Plan) take(decision rollout.Decision) {
	if decision.Stuck != "" {
		p.Warnings = append(p.Warnings, fault.New(fault.Stalled, rollout.ReasonInvalidRollout,
			"the rollout stands still: %s is 0, so clusters wait that could go on", decision.Stuck))
	}
	p.NewlyCreated, p.More = decision.Created, decision.More
	p.Unavailable, p.MaxUnavailable = decision.Unavailable, decision.MaxUnavailable
	p.UnavailablePartitions, p.MaxUnavailablePartitions = decision.UnavailablePartitions, decision.MaxUnavailablePartitions
	p.Rollout, p.NextCheck = decision.Rollout, decision.NextCheck
}

// add plans one cluster.
func (p *Plan) add(drafts *drafts, target *Targeted, action rollout.Action, current *fleet.BundleDeployment) {
	switch {
	case current == nil && !action.Create:
		p.Missing++
		return
	case target.Err != nil || target.held || (current != nil && current.DeletionTimestamp != nil):
		p.Unchanged++
		return
	}
	s, wanted := drafts.snapshot, drafts.next(target, action, current)
	switch {
	case current == nil:
		p.Create = append(p.Create, wanted.deployment(s, target.Cluster, nil))
	case wanted.differs(current):
		p.Update = append(p.Update, wanted.deployment(s, target.Cluster, current))
	default:
		p.Unchanged++
		if s.MissingValues[current.Namespace+"/"+current.Name] && len(wanted.values)+len(wanted.stagedValues) > 0 {
			p.Secrets = append(p.Secrets, wanted.deployment(s, target.Cluster, current))
		}
	}
}

// partitionStatus counts the states in each partition, as they are before the plan.
func partitionStatus(decision rollout.Decision, targets []*Targeted, current map[string]*fleet.BundleDeployment) []fleet.PartitionStatus {
	list := make([]fleet.PartitionStatus, 0, len(decision.Partitions))
	for _, part := range decision.Partitions {
		entry := fleet.PartitionStatus{
			Name: part.Name, Count: len(part.Members), MaxUnavailable: part.MaxUnavailable, Unavailable: part.Unavailable,
		}
		for _, i := range part.Members {
			state := fleet.Pending
			if bd := current[targets[i].Cluster.DeploymentNamespace]; bd != nil {
				state = status.Of(bd)
			}
			status.Count(&entry.Summary, state, 1)
			entry.Summary.DesiredReady++
		}
		list = append(list, entry)
	}
	return list
}

// orphans returns the deployments of clusters that the bundle does not reach. A cluster outside of its
// schedule keeps what it has, and so does one whose namespace for deployments is not known at the moment.
func (p *Plan) orphans(s Snapshot, targets []*Targeted, waiting map[string]bool) []*fleet.BundleDeployment {
	kept, closed := make(map[string]bool, len(targets)), map[string]bool{}
	for _, target := range targets {
		kept[target.Cluster.DeploymentNamespace] = true
	}
	for i := range s.Clusters {
		if cluster := &s.Clusters[i]; cluster.OffSchedule && cluster.DeploymentNamespace != "" {
			closed[cluster.DeploymentNamespace] = true
		}
	}
	var list []*fleet.BundleDeployment
	for _, bd := range s.Current {
		switch {
		case kept[bd.Namespace] || waiting[ClusterOf(bd)]:
		case closed[bd.Namespace]:
			p.Lingering = append(p.Lingering, ClusterOf(bd))
		default:
			list = append(list, bd)
		}
	}
	return list
}

// remove plans the deletion of those that are not being deleted yet.
func (p *Plan) remove(list []*fleet.BundleDeployment) {
	for _, deployment := range list {
		if deployment.DeletionTimestamp == nil {
			p.Delete = append(p.Delete, Deployment{Object: deployment.DeepCopy(), Cluster: ClusterOf(deployment)})
		}
	}
	slices.SortFunc(p.Delete, func(a, b Deployment) int { return cmp.Compare(a.Object.Namespace, b.Object.Namespace) })
}
