package tally

import (
	"cmp"
	"maps"
	"slices"
	"unique"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Bounds of what a GitRepo's or HelmOp's status lists. A status stays well below 256 KiB with any number
// of clusters and objects, the bookkeeping of field managers included.
const (
	// maxResourceBytes bounds the resources list.
	maxResourceBytes = 72 << 10
	// maxPerCluster bounds the entries of perClusterResourceCounts, and maxPerClusterBytes what they take, their keys
	// in the bookkeeping of field managers included.
	maxPerCluster      = 300
	maxPerClusterBytes = 104 << 10
	perClusterOverhead = 290
	// resourceOverhead is what the JSON of a resource takes beside its texts.
	resourceOverhead = 160
)

// Resources returns the objects of a GitRepo or HelmOp over all clusters, sorted. When they do not fit,
// the lists of ready clusters go first, then all lists, then objects, the ready ones first. An object
// without lists is in the same state everywhere, or its clusters did not fit.
func (x *Index) Resources(parent Parent) []fleet.Resource {
	r := x.rollups[parent]
	if r == nil {
		return nil
	}
	c := collector{objects: map[objectKey]*spread{}, lists: map[unique.Handle[string]]*objectList{}}
	var cluster Ref
	var name string
	for _, record := range slices.SortedFunc(maps.Keys(r.records), compareByCluster) {
		if name == "" || record.Cluster != cluster {
			cluster, name = record.Cluster, record.Cluster.String()
		}
		c.add(record, name)
	}
	return fit(c.objects)
}

// collector gathers objects over deployments.
type collector struct {
	objects map[objectKey]*spread
	// lists are the objects of deployments, by their encoded form: most deployments share it.
	lists map[unique.Handle[string]]*objectList
}

type objectList struct {
	keys    []objectKey
	spreads []*spread
	has     map[objectKey]bool
}

func (c *collector) object(key objectKey) *spread {
	object := c.objects[key]
	if object == nil {
		object = &spread{}
		c.objects[key] = object
	}
	return object
}

func (c *collector) list(encoded unique.Handle[string]) *objectList {
	if known := c.lists[encoded]; known != nil {
		return known
	}
	list := &objectList{has: map[objectKey]bool{}}
	for _, key := range decode(encoded.Value()) {
		if !list.has[key] {
			list.has[key] = true
			list.keys = append(list.keys, key)
			list.spreads = append(list.spreads, c.object(key))
		}
	}
	c.lists[encoded] = list
	return list
}

// add puts a deployment's objects into their states. An object's state is the deployment's, unless the
// deployment names objects that are modified or not ready: then the others are ready, or unknown where not
// all were named.
func (c *collector) add(record *Record, cluster string) {
	usual := stateOf(string(record.State))
	if record.State == fleet.NotReady || record.State == fleet.Modified {
		usual = objectReady
		if record.incomplete {
			usual = objectUnknown
		}
	}
	own := record.exceptions()
	list := c.list(record.resources)
	for i, object := range list.spreads {
		state := usual
		if len(own) > 0 {
			if exception, has := own[list.keys[i]]; has {
				state = exception
			}
		}
		object.add(state, cluster)
	}
	for key, state := range own {
		if !list.has[key] {
			c.object(key).add(state, cluster)
		}
	}
}

// objectState is the state of a single object, from fine to bad.
type objectState int

const (
	objectReady objectState = iota
	objectUnknown
	objectNotReady
	objectPending
	objectOutOfSync
	objectOrphaned
	objectModified
	objectMissing
	objectWaitApplied
	objectErrApplied
	objectStates
)

var objectStateNames = [objectStates]string{
	"Ready", "Unknown", "NotReady", "Pending", "OutOfSync", "Orphaned", "Modified", "Missing", "WaitApplied", "ErrApplied",
}

func stateOf(name string) objectState {
	if i := slices.Index(objectStateNames[:], name); i >= 0 {
		return objectState(i)
	}
	return objectUnknown
}

// spread is one object over its clusters, which come in order.
type spread struct {
	clusters [objectStates][]string
	worst    objectState
}

func (s *spread) add(state objectState, cluster string) {
	s.worst = max(s.worst, state)
	if list := s.clusters[state]; len(list) == 0 || list[len(list)-1] != cluster {
		s.clusters[state] = append(list, cluster)
	}
}

// exceptions are the states of the objects that the deployment names.
func (r *Record) exceptions() map[objectKey]objectState {
	if r.details == nil {
		return nil
	}
	own := map[objectKey]objectState{}
	for _, object := range r.details.nonReady {
		own[objectKey{object.APIVersion, object.Kind, object.Namespace, object.Name}] = objectNotReady
	}
	for _, object := range r.details.modified {
		state := objectModified
		switch {
		case object.Create:
			state = objectMissing
		case object.Delete:
			state = objectOrphaned
		}
		own[objectKey{object.APIVersion, object.Kind, object.Namespace, object.Name}] = state
	}
	return own
}

// fit makes the list within its bound.
func fit(objects map[objectKey]*spread) []fleet.Resource {
	keys := slices.SortedFunc(maps.Keys(objects), func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(objects[b].worst, objects[a].worst), compareKeys(a, b))
	})
	budget, kept := maxResourceBytes, 0
	for _, key := range keys {
		budget -= resourceOverhead + 2*(status.Cost(key.namespace)+status.Cost(key.name)) + 2*status.Cost(key.apiVersion) + 2*status.Cost(key.kind)
		if budget < 0 {
			break
		}
		kept++
	}
	keys = keys[:kept]
	// What is wrong somewhere is worth more than what is fine, so it gets its room first.
	allowed := map[objectKey]*[objectStates]bool{}
	for _, key := range keys {
		allowed[key] = &[objectStates]bool{}
		for state := objectReady + 1; state < objectStates; state++ {
			budget = objects[key].grant(state, budget, allowed[key])
		}
	}
	for _, key := range keys {
		budget = objects[key].grant(objectReady, budget, allowed[key])
	}
	slices.SortFunc(keys, compareKeys)
	list := make([]fleet.Resource, 0, len(keys))
	for _, key := range keys {
		list = append(list, objects[key].resource(key, allowed[key]))
	}
	return list
}

// grant allows the list of a state if it fits into the budget, and returns what is left.
func (s *spread) grant(state objectState, budget int, allowed *[objectStates]bool) int {
	size := 16
	for _, cluster := range s.clusters[state] {
		size += len(cluster) + 3
	}
	if len(s.clusters[state]) == 0 || size > budget {
		return budget
	}
	allowed[state] = true
	return budget - size
}

func (s *spread) resource(key objectKey, allowed *[objectStates]bool) fleet.Resource {
	resource := fleet.Resource{
		APIVersion: key.apiVersion, Kind: key.kind, Namespace: key.namespace, Name: key.name,
		Type: status.ResourceType(key.kind, key.apiVersion, true), ID: key.name,
		State: objectStateNames[s.worst], IncompleteState: len(s.clusters[objectUnknown]) > 0,
	}
	if key.namespace != "" {
		resource.ID = key.namespace + "/" + key.name
	}
	// Without any list Rancher's dashboard shows the state above on every target cluster.
	lists := &resource.PerClusterState
	for state, list := range map[objectState]*[]string{
		objectReady: &lists.Ready, objectUnknown: &lists.Unknown, objectNotReady: &lists.NotReady,
		objectPending: &lists.Pending, objectOutOfSync: &lists.OutOfSync, objectOrphaned: &lists.Orphaned,
		objectModified: &lists.Modified, objectMissing: &lists.Missing,
		objectWaitApplied: &lists.WaitApplied, objectErrApplied: &lists.ErrApplied,
	} {
		if allowed[state] {
			*list = s.clusters[state]
		}
	}
	return resource
}

// PerCluster returns the counts of objects by cluster ("namespace/name"), for 300 clusters at most, fewer where
// their names are very long: first those where something is not ready.
func (x *Index) PerCluster(parent Parent) map[string]*fleet.ResourceCounts {
	r := x.rollups[parent]
	if r == nil || len(r.groups) == 0 {
		return nil
	}
	keys := make([]Parent, 0, len(r.groups))
	for key := range r.groups {
		keys = append(keys, key)
	}
	if most := fitClusters(keys); len(keys) > most {
		fine := func(key Parent) int {
			if g := r.groups[key]; g.all == g.ready {
				return 1
			}
			return 0
		}
		slices.SortFunc(keys, func(a, b Parent) int { return cmp.Or(cmp.Compare(fine(a), fine(b)), compareParents(a, b)) })
		keys = keys[:most]
	}
	counts := make(map[string]*fleet.ResourceCounts, len(keys))
	for _, key := range keys {
		copied := r.groups[key].counts
		counts[key.String()] = &copied
	}
	return counts
}

// fitClusters returns how many clusters are listed, however they are chosen.
func fitClusters(keys []Parent) int {
	longest := 0
	for _, key := range keys {
		longest = max(longest, len(key.Namespace)+1+len(key.Name))
	}
	return min(maxPerCluster, maxPerClusterBytes/(2*longest+perClusterOverhead))
}

func compareKeys(a, b objectKey) int {
	return cmp.Or(
		cmp.Compare(status.ResourceType(a.kind, a.apiVersion, true), status.ResourceType(b.kind, b.apiVersion, true)),
		cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.apiVersion, b.apiVersion),
	)
}

func compareByCluster(a, b *Record) int {
	if order := compareRefs(a.Cluster, b.Cluster); order != 0 {
		return order
	}
	return compareRefs(a.Bundle, b.Bundle)
}
