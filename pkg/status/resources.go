package status

import (
	"cmp"
	"maps"
	"slices"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Bounds of what a GitRepo's or HelmOp's status lists. A status stays well below 256 KiB with any number
// of clusters and objects, the bookkeeping of field managers included.
const (
	// maxResourceBytes bounds the resources list.
	maxResourceBytes = 72 << 10
	// maxPerCluster bounds the entries of perClusterResourceCounts.
	maxPerCluster = 300
	// resourceOverhead is what the JSON of a resource takes beside its texts.
	resourceOverhead = 160
	// resourceMissing and the others are states of a single object.
	resourceMissing  = "Missing"
	resourceOrphaned = "Orphaned"
	resourceUnknown  = "Unknown"
)

// Resources returns the objects of a GitRepo or HelmOp over all clusters, sorted. When they do not fit,
// the lists of ready clusters go first, then all lists, then objects, the ready ones first. An object
// without lists is in the same state everywhere, or its clusters did not fit.
func (x *Index) Resources(parent Parent) []fleet.Resource {
	r := x.rollups[parent]
	if r == nil {
		return nil
	}
	objects := map[objectKey]*spread{}
	lists := map[string][]objectKey{}
	for _, record := range slices.SortedFunc(maps.Keys(r.records), compareByCluster) {
		text := record.resources.Value()
		keys, known := lists[text]
		if !known {
			keys = decode(text)
			lists[text] = keys
		}
		record.spread(keys, objects)
	}
	return fit(objects)
}

// spread is one object over its clusters.
type spread struct {
	clusters   map[string][]string
	worst      string
	incomplete bool
}

// add puts a cluster in a state. The clusters come in order.
func (s *spread) add(state, cluster string) {
	if list := s.clusters[state]; len(list) == 0 || list[len(list)-1] != cluster {
		s.clusters[state] = append(list, cluster)
	}
	if rank(state) > rank(s.worst) {
		s.worst = state
	}
}

// rank orders the states of an object, ready lowest.
func rank(state string) int {
	switch state {
	case "":
		return -1
	case string(fleet.Ready):
		return 0
	case resourceUnknown:
		return 1
	case resourceOrphaned:
		return 5
	case resourceMissing:
		return 7
	}
	if known := fleet.BundleState(state).Rank(); known > 0 {
		return known + 1
	}
	return 3
}

// spread puts the deployment's objects into their states. An object's state is the deployment's, unless the
// deployment names objects that are modified or not ready: then the others are ready, or unknown where not
// all were named.
func (r *Record) spread(keys []objectKey, objects map[objectKey]*spread) {
	cluster := r.Cluster.String()
	own := r.exceptions()
	usual := string(r.State)
	if r.State == fleet.NotReady || r.State == fleet.Modified {
		usual = string(fleet.Ready)
		if r.incomplete {
			usual = resourceUnknown
		}
	}
	seen := make(map[objectKey]bool, len(keys))
	put := func(key objectKey, state string) {
		if seen[key] {
			return
		}
		seen[key] = true
		object := objects[key]
		if object == nil {
			object = &spread{clusters: map[string][]string{}}
			objects[key] = object
		}
		object.add(state, cluster)
		object.incomplete = object.incomplete || state == resourceUnknown
	}
	for _, key := range keys {
		state := usual
		if exception, has := own[key]; has {
			state = exception
		}
		put(key, state)
	}
	for key, state := range own {
		put(key, state)
	}
}

// exceptions are the states of the objects that the deployment names.
func (r *Record) exceptions() map[objectKey]string {
	if r.details == nil {
		return nil
	}
	own := map[objectKey]string{}
	for _, object := range r.details.nonReady {
		own[objectKey{object.APIVersion, object.Kind, object.Namespace, object.Name}] = string(fleet.NotReady)
	}
	for _, object := range r.details.modified {
		state := string(fleet.Modified)
		switch {
		case object.Create:
			state = resourceMissing
		case object.Delete:
			state = resourceOrphaned
		}
		own[objectKey{object.APIVersion, object.Kind, object.Namespace, object.Name}] = state
	}
	return own
}

// fit makes the list within its bound.
func fit(objects map[objectKey]*spread) []fleet.Resource {
	keys := make([]objectKey, 0, len(objects))
	for key := range objects {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b objectKey) int {
		return cmp.Or(cmp.Compare(rank(objects[b].worst), rank(objects[a].worst)), compareKeys(a, b))
	})
	budget := maxResourceBytes
	kept := 0
	for _, key := range keys {
		budget -= resourceOverhead + 2*(len(key.namespace)+len(key.name)) + len(key.apiVersion) + 2*len(key.kind)
		if budget < 0 {
			break
		}
		kept++
	}
	keys = keys[:kept]
	lists := map[objectKey]map[string]bool{}
	// What is wrong somewhere is worth more than what is fine.
	for _, ready := range []bool{false, true} {
		for _, key := range keys {
			budget = grant(objects[key], ready, budget, func(state string) {
				if lists[key] == nil {
					lists[key] = map[string]bool{}
				}
				lists[key][state] = true
			})
		}
	}
	slices.SortFunc(keys, compareKeys)
	list := make([]fleet.Resource, 0, len(keys))
	for _, key := range keys {
		list = append(list, objects[key].resource(key, lists[key]))
	}
	return list
}

// grant allows the object's lists that fit into the budget: that of ready clusters, or the others.
func grant(object *spread, ready bool, budget int, allow func(state string)) int {
	for _, state := range slices.Sorted(maps.Keys(object.clusters)) {
		if (state == string(fleet.Ready)) != ready {
			continue
		}
		size := 16
		for _, cluster := range object.clusters[state] {
			size += len(cluster) + 3
		}
		if size <= budget {
			budget -= size
			allow(state)
		}
	}
	return budget
}

func (s *spread) resource(key objectKey, allowed map[string]bool) fleet.Resource {
	resource := fleet.Resource{
		APIVersion: key.apiVersion, Kind: key.kind, Namespace: key.namespace, Name: key.name,
		Type: resourceType(key.kind, key.apiVersion, true), ID: key.name,
		State: s.worst, IncompleteState: s.incomplete,
	}
	if key.namespace != "" {
		resource.ID = key.namespace + "/" + key.name
	}
	// Without any list Rancher's dashboard shows the state above on every target cluster.
	for state, clusters := range s.clusters {
		if allowed[state] {
			*listOf(&resource.PerClusterState, state) = clusters
		}
	}
	return resource
}

// listOf returns the list of a state; states that have none go to the one for unknown.
func listOf(lists *fleet.PerClusterState, state string) *[]string {
	switch state {
	case string(fleet.Ready):
		return &lists.Ready
	case string(fleet.WaitApplied):
		return &lists.WaitApplied
	case string(fleet.Pending):
		return &lists.Pending
	case string(fleet.Modified):
		return &lists.Modified
	case resourceOrphaned:
		return &lists.Orphaned
	case resourceMissing:
		return &lists.Missing
	case string(fleet.NotReady):
		return &lists.NotReady
	case string(fleet.ErrApplied):
		return &lists.ErrApplied
	case string(fleet.OutOfSync):
		return &lists.OutOfSync
	}
	return &lists.Unknown
}

// PerCluster returns the counts of objects by cluster ("namespace/name"), for 300 clusters at most: first
// those where something is not ready.
func (x *Index) PerCluster(parent Parent) map[string]*fleet.ResourceCounts {
	r := x.rollups[parent]
	if r == nil || len(r.groups) == 0 {
		return nil
	}
	keys := make([]Parent, 0, len(r.groups))
	for key := range r.groups {
		keys = append(keys, key)
	}
	if len(keys) > maxPerCluster {
		fine := func(key Parent) int {
			if g := r.groups[key]; g.all == g.ready {
				return 1
			}
			return 0
		}
		slices.SortFunc(keys, func(a, b Parent) int { return cmp.Or(cmp.Compare(fine(a), fine(b)), compareParents(a, b)) })
		keys = keys[:maxPerCluster]
	}
	counts := make(map[string]*fleet.ResourceCounts, len(keys))
	for _, key := range keys {
		copied := r.groups[key].counts
		counts[key.Ref.String()] = &copied
	}
	return counts
}

func compareKeys(a, b objectKey) int {
	return cmp.Or(
		cmp.Compare(resourceType(a.kind, a.apiVersion, true), resourceType(b.kind, b.apiVersion, true)),
		cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name), cmp.Compare(a.apiVersion, b.apiVersion),
	)
}

func compareByCluster(a, b *Record) int {
	return cmp.Or(
		cmp.Compare(a.Cluster.Namespace, b.Cluster.Namespace), cmp.Compare(a.Cluster.Name, b.Cluster.Name),
		cmp.Compare(a.Bundle.Name, b.Bundle.Name),
	)
}
