package cause

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	grouping "github.com/fairlead-dev/fairlead/pkg/cluster"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
)

// World is what a hub holds, as far as it is asked about.
type World struct {
	GitRepos    []fleet.GitRepo
	HelmOps     []fleet.HelmOp
	Bundles     []fleet.Bundle
	Deployments []fleet.BundleDeployment
	Clusters    []fleet.Cluster
	Groups      []fleet.ClusterGroup
}

// ref names an object of a kind.
type ref struct {
	kind            Kind
	namespace, name string
}

// heldKey names a cluster ("namespace/name") that a bundle is kept from.
type heldKey struct {
	bundle  ref
	cluster string
}

// Graph is a world with its connections.
type Graph struct {
	world       World
	repos       map[ref]*fleet.GitRepo
	helmOps     map[ref]*fleet.HelmOp
	bundles     map[ref]*fleet.Bundle
	deployments map[ref]*fleet.BundleDeployment
	clusters    map[ref]*fleet.Cluster
	groups      map[ref]*fleet.ClusterGroup
	// held are the clusters that bundles say are kept from what is wanted there, by the bundle's namespace
	// and name and the cluster.
	held map[heldKey]Item
	// absent are those of them without a deployment.
	absent map[ref]heldKey
	// below are the bundles of sources, the deployments of bundles and of clusters, and the clusters of groups.
	below map[ref][]ref
}

// New returns the graph of a world. It keeps the objects and changes none.
func New(world World) *Graph {
	g := &Graph{
		world: world, repos: map[ref]*fleet.GitRepo{}, helmOps: map[ref]*fleet.HelmOp{}, bundles: map[ref]*fleet.Bundle{},
		deployments: map[ref]*fleet.BundleDeployment{}, clusters: map[ref]*fleet.Cluster{}, held: map[heldKey]Item{}, absent: map[ref]heldKey{}, below: map[ref][]ref{},
		groups: map[ref]*fleet.ClusterGroup{},
	}
	for i := range world.GitRepos {
		repo := &world.GitRepos[i]
		g.repos[ref{GitRepo, repo.Namespace, repo.Name}] = repo
	}
	for i := range world.HelmOps {
		op := &world.HelmOps[i]
		g.helmOps[ref{HelmOp, op.Namespace, op.Name}] = op
	}
	for i := range world.Clusters {
		cluster := &world.Clusters[i]
		g.clusters[ref{Cluster, cluster.Namespace, cluster.Name}] = cluster
	}
	for i := range world.Bundles {
		bundle := &world.Bundles[i]
		id := ref{Bundle, bundle.Namespace, bundle.Name}
		g.bundles[id] = bundle
		g.hold(id, &bundle.Status.Summary)
		if owner, ok := ownerOf(bundle); ok {
			g.below[owner] = append(g.below[owner], id)
		}
	}
	for i := range world.Deployments {
		bd := &world.Deployments[i]
		id := ref{Deployment, bd.Namespace, bd.Name}
		g.deployments[id] = bd
		bundle := ref{Bundle, bd.Labels[fleet.BundleNamespaceLabel], bd.Labels[fleet.BundleLabel]}
		cluster := clusterOf(bd)
		g.below[bundle] = append(g.below[bundle], id)
		g.below[cluster] = append(g.below[cluster], id)
	}
	g.addAbsent()
	for i := range world.Groups {
		g.group(&world.Groups[i])
	}
	return g
}

// group takes up a group and finds its clusters.
func (g *Graph) group(group *fleet.ClusterGroup) {
	id := ref{Group, group.Namespace, group.Name}
	g.groups[id] = group
	selector, err := grouping.Selector(group)
	if err != nil {
		return // the group's own condition says so
	}
	for i := range g.world.Clusters {
		member := &g.world.Clusters[i]
		if member.Namespace == group.Namespace && selector.Matches(labels.Set(member.Labels)) {
			g.below[id] = append(g.below[id], ref{Cluster, member.Namespace, member.Name})
		}
	}
}

// hold takes up what a bundle says about clusters that are held back.
func (g *Graph) hold(bundle ref, summary *fleet.BundleSummary) {
	for i := range summary.NonReadyResources {
		resource := &summary.NonReadyResources[i]
		if why, held := parent.HeldBack(resource); held {
			g.held[heldKey{bundle, resource.Name}] = Item{
				Kind: Deployment, Name: bundle.name, Cluster: resource.Name, State: resource.State, Message: why,
			}
		}
	}
}

// addAbsent gives a place to deployments that are held back and do not exist. Their namespace, which is not
// known here, is that of no other.
func (g *Graph) addAbsent() {
	exists := map[heldKey]bool{}
	for _, bd := range g.deployments {
		exists[heldKeyOf(bd)] = true
	}
	for key := range g.held {
		if exists[key] {
			continue
		}
		id := ref{Deployment, absent + key.cluster, key.bundle.namespace + "/" + key.bundle.name}
		g.absent[id] = key
		g.below[key.bundle] = append(g.below[key.bundle], id)
		if namespace, name, ok := strings.Cut(key.cluster, "/"); ok {
			on := ref{Cluster, namespace, name}
			g.below[on] = append(g.below[on], id)
		}
	}
}

// absent starts the namespace of a deployment that does not exist.
const absent = "/"

func heldKeyOf(bd *fleet.BundleDeployment) heldKey {
	on := clusterOf(bd)
	return heldKey{ref{Bundle, bd.Labels[fleet.BundleNamespaceLabel], bd.Labels[fleet.BundleLabel]}, on.namespace + "/" + on.name}
}

func ownerOf(bundle *fleet.Bundle) (ref, bool) {
	if repo := bundle.Labels[fleet.RepoLabel]; repo != "" {
		return ref{GitRepo, bundle.Namespace, repo}, true
	}
	if op := bundle.Labels[fleet.HelmOpLabel]; op != "" {
		return ref{HelmOp, bundle.Namespace, op}, true
	}
	return ref{}, false
}

func clusterOf(bd *fleet.BundleDeployment) ref {
	return ref{Cluster, bd.Labels[fleet.ClusterNamespaceLabel], bd.Labels[fleet.ClusterLabel]}
}

// Tree returns a thing with everything below it; false when the world does not hold it.
func (g *Graph) Tree(kind Kind, namespace, name string) (Item, bool) {
	return g.tree(ref{kind, namespace, name})
}

// Sources returns the trees of all GitRepos and HelmOps, and of the bundles that belong to none, worst first.
func (g *Graph) Sources() []Item {
	var items []Item
	add := func(id ref) {
		if item, ok := g.tree(id); ok {
			items = append(items, item)
		}
	}
	for _, repo := range g.world.GitRepos {
		add(ref{GitRepo, repo.Namespace, repo.Name})
	}
	for _, op := range g.world.HelmOps {
		add(ref{HelmOp, op.Namespace, op.Name})
	}
	for i := range g.world.Bundles {
		bundle := &g.world.Bundles[i]
		if owner, ok := ownerOf(bundle); !ok || g.repos[owner] == nil && g.helmOps[owner] == nil {
			add(ref{Bundle, bundle.Namespace, bundle.Name})
		}
	}
	worstFirst(items)
	return items
}

func (g *Graph) tree(id ref) (Item, bool) {
	item, ok := g.item(id)
	if !ok {
		return item, false
	}
	if id.kind == Deployment {
		if bd := g.deployments[id]; bd != nil {
			item.Children = objectsOf(bd)
		}
		return item, true
	}
	item.Children = g.children(id, g.tree)
	return item, true
}

func (g *Graph) children(id ref, get func(ref) (Item, bool)) []Item {
	var items []Item
	for _, below := range g.below[id] {
		if item, ok := get(below); ok {
			items = append(items, item)
		}
	}
	worstFirst(items)
	return items
}

// item returns a thing alone.
func (g *Graph) item(id ref) (Item, bool) {
	switch id.kind {
	case GitRepo:
		if repo := g.repos[id]; repo != nil {
			return sourceItem(id, &repo.Status.StatusBase, repo.Status.Commit == ""), true
		}
	case HelmOp:
		if op := g.helmOps[id]; op != nil {
			return sourceItem(id, &op.Status.StatusBase, false), true
		}
	case Bundle:
		if bundle := g.bundles[id]; bundle != nil {
			return bundleItem(id, bundle), true
		}
	case Deployment:
		if bd := g.deployments[id]; bd != nil {
			return g.deploymentItem(id, bd), true
		}
		if key, ok := g.absent[id]; ok {
			return g.held[key], true
		}
	case Cluster:
		if cluster := g.clusters[id]; cluster != nil {
			return g.clusterItem(id, cluster), true
		}
	case Group:
		if group := g.groups[id]; group != nil {
			return g.groupItem(id, group), true
		}
	}
	return Item{}, false
}

// groupItem judges a group by its clusters: one that is not heard from, or is kept from a bundle, counts too.
func (g *Graph) groupItem(id ref, group *fleet.ClusterGroup) Item {
	item := Item{Kind: Group, Namespace: id.namespace, Name: id.name, State: status.WorstOf(&group.Status.Summary)}
	if processed := status.Find(group.Status.Conditions, fleet.ConditionProcessed); processed != nil && processed.Status == corev1.ConditionFalse {
		item.State, item.Message = Failed, processed.Message
		return item
	}
	for _, below := range g.below[id] {
		member, _ := g.item(below)
		state := member.State
		if state == Offline || state == Failed {
			state = fleet.NotReady
		}
		if state.Rank() > item.State.Rank() {
			item.State = state
		}
	}
	if len(g.below[id]) == 0 {
		item.Message = "no cluster is in the group"
	}
	return item
}

// sourceItem judges a GitRepo or HelmOp: what keeps it from being read comes first. One with a Bundle that
// needs a person has the state its display shows, although every deployment may be ready.
func sourceItem(id ref, base *fleet.StatusBase, unread bool) Item {
	conditions := base.Conditions
	item := Item{Kind: id.kind, Namespace: id.namespace, Name: id.name, State: status.WorstOf(&base.Summary)}
	if item.IsReady() && parent.NeedsPerson(status.Find(conditions, fleet.ConditionReady)) {
		item.State = fleet.ErrApplied
	}
	if stalled := status.Find(conditions, fleet.ConditionStalled); stalled != nil && stalled.Status == corev1.ConditionTrue {
		item.State, item.Message = Failed, stalled.Message
		return item
	}
	for _, kind := range []string{fleet.ConditionAccepted, fleet.ConditionGitPolling} {
		if c := status.Find(conditions, kind); c != nil && c.Status == corev1.ConditionFalse {
			item.State, item.Message = Failed, c.Message
			return item
		}
	}
	if busy := status.Find(conditions, fleet.ConditionReconciling); busy != nil && busy.Status == corev1.ConditionTrue {
		item.Message = busy.Message
	}
	if unread {
		item.State = fleet.Pending
		if item.Message == "" {
			item.Message = "the repository was not read yet"
		}
	}
	return item
}

// bundleItem judges a Bundle. What its Ready condition says beyond the roll-up is about the bundle itself. One
// that needs a person comes before those whose deployments fail, as in the condition of its source.
func bundleItem(id ref, bundle *fleet.Bundle) Item {
	summary := &bundle.Status.Summary
	item := Item{Kind: Bundle, Namespace: id.namespace, Name: id.name, State: status.WorstOf(summary)}
	ready := status.Find(bundle.Status.Conditions, fleet.ConditionReady)
	item.Message = parent.OwnMessage(ready, summary, string(Cluster))
	if item.Message != "" || parent.NeedsPerson(ready) {
		item.State = Failed
		return item
	}
	switch {
	case bundle.Status.ObservedGeneration == 0 && ready == nil:
		item.State, item.Message = fleet.Pending, "the hub has not looked at the bundle yet"
	case summary.DesiredReady == 0:
		item.Message = "its targets match no cluster"
	case bundle.Spec.Paused && item.State == fleet.OutOfSync:
		item.Message = "the bundle is paused"
	}
	return item
}

func (g *Graph) deploymentItem(id ref, bd *fleet.BundleDeployment) Item {
	on := clusterOf(bd)
	if item, held := g.held[heldKeyOf(bd)]; held {
		item.Namespace = id.namespace
		return item
	}
	item := Item{
		Kind: Deployment, Namespace: id.namespace, Name: id.name, Cluster: on.namespace + "/" + on.name,
		State: status.Of(bd), Message: status.MessageOf(bd),
	}
	cluster := g.clusters[on]
	switch {
	case cluster != nil && offline(cluster):
		item.State, item.Message = Offline, "its cluster is not heard from; last known: "+string(status.Of(bd))
	case item.State != fleet.OutOfSync:
	case bd.Spec.Paused:
		item.Message = "paused: what is staged is not let through"
	case bd.Spec.OffSchedule:
		item.Message = "outside of the cluster's schedule"
	default:
		item.Message = "waits for its turn in the rollout"
	}
	if item.IsReady() {
		item.Message = ""
	}
	return item
}

func offline(cluster *fleet.Cluster) bool {
	available := status.Find(cluster.Status.Conditions, fleet.ConditionAvailable)
	return available != nil && available.Status == corev1.ConditionFalse
}

func (g *Graph) clusterItem(id ref, cluster *fleet.Cluster) Item {
	item := Item{Kind: Cluster, Namespace: id.namespace, Name: id.name, State: status.WorstOf(&cluster.Status.Summary)}
	if held := g.worstHeld(id); held.Rank() > item.State.Rank() {
		item.State = held
	}
	switch {
	case offline(cluster):
		item.State = Offline
		item.Message = status.Find(cluster.Status.Conditions, fleet.ConditionAvailable).Message
	case cluster.Status.Namespace == "":
		item.State, item.Message = fleet.Pending, "the hub has not prepared the cluster yet"
	}
	return item
}

// worstHeld returns the worst state in which a cluster is kept from a bundle; Ready when it is from none.
func (g *Graph) worstHeld(cluster ref) fleet.BundleState {
	worst := fleet.Ready
	for key, item := range g.held {
		if key.cluster == cluster.namespace+"/"+cluster.name && item.State.Rank() > worst.Rank() {
			worst = item.State
		}
	}
	return worst
}

// objectsOf returns what a deployment reports about single objects.
func objectsOf(bd *fleet.BundleDeployment) []Item {
	var items []Item
	for _, object := range bd.Status.NonReadyStatus {
		items = append(items, Item{
			Kind: Object, Namespace: object.Namespace, Name: object.Kind + "/" + object.Name,
			State: fleet.NotReady, Message: status.NonReadyMessage(object),
		})
	}
	for _, object := range bd.Status.ModifiedStatus {
		items = append(items, Item{
			Kind: Object, Namespace: object.Namespace, Name: object.Kind + "/" + object.Name,
			State: fleet.Modified, Message: status.ModifiedMessage(object), ComparePatch: exceptionOf(bd, object),
		})
	}
	return items
}

// exceptionOf returns the entry that the agent offers for an object, nil when there is none.
func exceptionOf(bd *fleet.BundleDeployment, object fleet.ModifiedStatus) *fleet.ComparePatch {
	for i := range bd.Status.ComparePatches {
		entry := &bd.Status.ComparePatches[i]
		if entry.APIVersion == object.APIVersion && entry.Kind == object.Kind && entry.Namespace == object.Namespace && entry.Name == object.Name {
			return entry
		}
	}
	return nil
}
