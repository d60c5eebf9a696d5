package tally

import (
	"cmp"
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// MaxNonReady bounds summary.nonReadyResources, and maxNonReadyBytes the objects that are named in it.
const (
	MaxNonReady      = 10
	maxNonReadyBytes = 32 << 10
)

// ParentKind is the kind of an object that deployments are rolled up into.
type ParentKind string

// The kinds of parents. Of cluster groups no deployments are counted: who knows a group's clusters asks for them.
const (
	KindBundle       ParentKind = "Bundle"
	KindGitRepo      ParentKind = "GitRepo"
	KindHelmOp       ParentKind = "HelmOp"
	KindCluster      ParentKind = "Cluster"
	KindClusterGroup ParentKind = "ClusterGroup"
)

// Parent names an object whose roll-up changed.
type Parent struct {
	Kind ParentKind
	Ref
}

// Index counts deployments by parent. It is not safe for concurrent use.
type Index struct {
	records map[Ref]*Record
	rollups map[Parent]*rollup
}

// NewIndex returns an empty index.
func NewIndex() *Index {
	return &Index{records: map[Ref]*Record{}, rollups: map[Parent]*rollup{}}
}

// rollup is what is counted for one parent.
type rollup struct {
	summary fleet.BundleSummary
	counts  fleet.ResourceCounts
	// records of the parent's deployments; failing are those that are not ready.
	records map[*Record]struct{}
	failing map[*Record]struct{}
	// groups counts deployments by what they are grouped by: clusters for a source, sources for a cluster.
	groups map[Parent]*group
	// ready groups of each kind, and all.
	readyGroups, allGroups map[ParentKind]int
}

// group counts the deployments of one parent that belong to another.
type group struct {
	all, ready int
	counts     fleet.ResourceCounts
}

// Len returns the number of deployments.
func (x *Index) Len() int { return len(x.records) }

// Set puts the record of the deployment key and returns the parents whose roll-up changed, sorted; none
// when the record is the one that is there.
func (x *Index) Set(key Ref, record Record) []Parent {
	old := x.records[key]
	if old != nil && old.equal(&record) {
		return nil
	}
	affected := map[Parent]bool{}
	if old != nil {
		x.apply(old, -1, affected)
	}
	added := &record
	x.records[key] = added
	x.apply(added, 1, affected)
	return sortedParents(affected)
}

// Delete takes the deployment key out and returns the parents whose roll-up changed, sorted.
func (x *Index) Delete(key Ref) []Parent {
	old := x.records[key]
	if old == nil {
		return nil
	}
	affected := map[Parent]bool{}
	delete(x.records, key)
	x.apply(old, -1, affected)
	return sortedParents(affected)
}

// Get returns the record of a deployment.
func (x *Index) Get(key Ref) (Record, bool) {
	record := x.records[key]
	if record == nil {
		return Record{}, false
	}
	return *record, true
}

// Awaits says that agents are to answer for some deployments of a parent: they do not run yet what they are told.
func (x *Index) Awaits(parent Parent) bool {
	r := x.rollups[parent]
	return r != nil && r.summary.WaitApplied > 0
}

// parents returns what a deployment is counted for.
func (r *Record) parents() []Parent {
	list := make([]Parent, 0, 3)
	list = append(list, Parent{KindBundle, r.Bundle}, Parent{KindCluster, r.Cluster})
	if source, has := r.source(); has {
		list = append(list, source)
	}
	return list
}

func (r *Record) source() (Parent, bool) {
	switch {
	case r.Repo != "":
		return Parent{KindGitRepo, Ref{r.Bundle.Namespace, r.Repo}}, true
	case r.HelmOp != "":
		return Parent{KindHelmOp, Ref{r.Bundle.Namespace, r.HelmOp}}, true
	}
	return Parent{}, false
}

// apply adds (sign 1) or takes away (sign -1) a record at all its parents.
func (x *Index) apply(record *Record, sign int, affected map[Parent]bool) {
	source, hasSource := record.source()
	for _, parent := range record.parents() {
		affected[parent] = true
		r := x.rollups[parent]
		if r == nil {
			r = &rollup{records: map[*Record]struct{}{}}
			x.rollups[parent] = r
		}
		r.apply(record, sign)
		switch parent.Kind {
		case KindGitRepo, KindHelmOp:
			r.applyGroup(Parent{KindCluster, record.Cluster}, record, sign)
		case KindCluster:
			if hasSource {
				r.applyGroup(source, record, sign)
			}
		}
		if len(r.records) == 0 {
			delete(x.rollups, parent)
		}
	}
}

func (r *rollup) apply(record *Record, sign int) {
	status.Count(&r.summary, record.State, sign)
	r.summary.DesiredReady += sign
	addCounts(&r.counts, &record.Counts, sign)
	if sign < 0 {
		delete(r.records, record)
		delete(r.failing, record)
		return
	}
	r.records[record] = struct{}{}
	if record.State != fleet.Ready {
		if r.failing == nil {
			r.failing = map[*Record]struct{}{}
		}
		r.failing[record] = struct{}{}
	}
}

func (r *rollup) applyGroup(key Parent, record *Record, sign int) {
	if r.groups == nil {
		r.groups = map[Parent]*group{}
		r.readyGroups, r.allGroups = map[ParentKind]int{}, map[ParentKind]int{}
	}
	g := r.groups[key]
	if g == nil {
		g = &group{}
		r.groups[key] = g
	}
	r.countGroup(key.Kind, g, -1)
	g.all += sign
	if record.State == fleet.Ready {
		g.ready += sign
	}
	addCounts(&g.counts, &record.Counts, sign)
	r.countGroup(key.Kind, g, 1)
	if g.all == 0 {
		delete(r.groups, key)
	}
}

// countGroup counts a group; one without deployments counts nothing.
func (r *rollup) countGroup(kind ParentKind, g *group, sign int) {
	if g.all == 0 {
		return
	}
	r.allGroups[kind] += sign
	if g.all == g.ready {
		r.readyGroups[kind] += sign
	}
}

func addCounts(to, from *fleet.ResourceCounts, sign int) {
	to.Ready += sign * from.Ready
	to.DesiredReady += sign * from.DesiredReady
	to.WaitApplied += sign * from.WaitApplied
	to.Modified += sign * from.Modified
	to.Orphaned += sign * from.Orphaned
	to.Missing += sign * from.Missing
	to.Unknown += sign * from.Unknown
	to.NotReady += sign * from.NotReady
}

func sortedParents(set map[Parent]bool) []Parent {
	list := make([]Parent, 0, len(set))
	for parent := range set {
		list = append(list, parent)
	}
	slices.SortFunc(list, compareParents)
	return list
}

func compareParents(a, b Parent) int {
	return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Rollup is the roll-up of one parent, or of the clusters of a group. It is a copy.
type Rollup struct {
	// Summary counts deployments by state and names up to ten that are not ready, worst first.
	Summary fleet.BundleSummary
	Counts  fleet.ResourceCounts
	// ReadyClusters of Clusters have only ready deployments. (GitRepo and HelmOp)
	ReadyClusters, Clusters int
	// ReadyGitRepos of GitRepos and ReadyHelmOps of HelmOps are all ready on the cluster. (Cluster)
	ReadyGitRepos, GitRepos, ReadyHelmOps, HelmOps int
}

// Bundle returns the roll-up of a Bundle; nothing is known of one without deployments.
func (x *Index) Bundle(namespace, name string) Rollup {
	return x.rollup(Parent{KindBundle, Ref{namespace, name}})
}

// GitRepo returns the roll-up of a GitRepo.
func (x *Index) GitRepo(namespace, name string) Rollup {
	return x.rollup(Parent{KindGitRepo, Ref{namespace, name}})
}

// HelmOp returns the roll-up of a HelmOp.
func (x *Index) HelmOp(namespace, name string) Rollup {
	return x.rollup(Parent{KindHelmOp, Ref{namespace, name}})
}

// Cluster returns the roll-up of a Cluster, by the Cluster's own namespace.
func (x *Index) Cluster(namespace, name string) Rollup {
	return x.rollup(Parent{KindCluster, Ref{namespace, name}})
}

// Of returns the roll-up of a parent.
func (x *Index) Of(parent Parent) Rollup { return x.rollup(parent) }

func (x *Index) rollup(parent Parent) Rollup {
	r := x.rollups[parent]
	if r == nil {
		return Rollup{}
	}
	out := Rollup{
		Summary:       r.summary,
		Counts:        r.counts,
		ReadyClusters: r.readyGroups[KindCluster], Clusters: r.allGroups[KindCluster],
		ReadyGitRepos: r.readyGroups[KindGitRepo], GitRepos: r.allGroups[KindGitRepo],
		ReadyHelmOps: r.readyGroups[KindHelmOp], HelmOps: r.allGroups[KindHelmOp],
	}
	out.Summary.NonReadyResources = nonReady(r.failing, parent.Kind)
	return out
}

// nonReady names the worst deployments. On a Bundle they are named by their cluster, elsewhere by their
// bundle.
func nonReady(failing map[*Record]struct{}, kind ParentKind) []fleet.NonReadyResource {
	top := make([]*Record, 0, MaxNonReady+1)
	for record := range failing {
		if len(top) == MaxNonReady && compareRecords(record, top[MaxNonReady-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, record, compareRecords)
		top = slices.Insert(top, at, record)
		top = top[:min(len(top), MaxNonReady)]
	}
	list := make([]fleet.NonReadyResource, 0, len(top))
	budget := maxNonReadyBytes
	for _, record := range top {
		name := record.Bundle.Name
		if kind == KindBundle {
			name = record.Cluster.String()
		}
		entry := fleet.NonReadyResource{Name: name, State: record.State, Message: record.Message}
		if size := record.details.size(); size <= budget {
			budget -= size
			entry.ModifiedStatus, entry.NonReadyStatus = slices.Clone(record.Modified()), slices.Clone(record.NonReady())
		}
		list = append(list, entry)
	}
	if len(list) == 0 {
		return nil
	}
	return list
}

// compareRecords orders deployments: worst state first, then by bundle and cluster.
func compareRecords(a, b *Record) int {
	if a.State != b.State {
		return b.State.Rank() - a.State.Rank()
	}
	if order := compareRefs(a.Bundle, b.Bundle); order != 0 {
		return order
	}
	return compareRefs(a.Cluster, b.Cluster)
}

func compareRefs(a, b Ref) int {
	if a.Namespace != b.Namespace {
		return strings.Compare(a.Namespace, b.Namespace)
	}
	return strings.Compare(a.Name, b.Name)
}

// Add merges another roll-up into this one, as a cluster group adds its clusters.
func (r *Rollup) Add(other Rollup) {
	status.CountAll(&r.Summary, &other.Summary)
	r.Summary.DesiredReady += other.Summary.DesiredReady
	addCounts(&r.Counts, &other.Counts, 1)
	merged := append(slices.Clone(r.Summary.NonReadyResources), other.Summary.NonReadyResources...)
	slices.SortStableFunc(merged, func(a, b fleet.NonReadyResource) int {
		return cmp.Or(cmp.Compare(b.State.Rank(), a.State.Rank()), cmp.Compare(a.Name, b.Name))
	})
	r.Summary.NonReadyResources = merged[:min(len(merged), MaxNonReady)]
	r.ReadyClusters += other.ReadyClusters
	r.Clusters += other.Clusters
	r.ReadyGitRepos += other.ReadyGitRepos
	r.GitRepos += other.GitRepos
	r.ReadyHelmOps += other.ReadyHelmOps
	r.HelmOps += other.HelmOps
}
