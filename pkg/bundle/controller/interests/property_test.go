package interests

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// hubWorld is a bundle, and what its plans depend on, as a hub has it.
type hubWorld struct {
	*rand.Rand
	bundle      *fleet.Bundle
	clusters    map[string]*fleet.Cluster
	groups      []fleet.ClusterGroup
	deployments map[string]*fleet.BundleDeployment
}

const (
	worldClusters = 5
	worldGroups   = 3
)

func newHubWorld(random *rand.Rand) *hubWorld {
	w := &hubWorld{Rand: random, clusters: map[string]*fleet.Cluster{}, deployments: map[string]*fleet.BundleDeployment{}}
	for i := range worldGroups {
		group := fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: fmt.Sprint("g", i), Labels: w.labels(), Generation: 1}}
		group.Spec.Selector = w.selector()
		w.groups = append(w.groups, group)
	}
	for i := range worldClusters {
		cluster := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: fmt.Sprint("c", i), Labels: w.labels()}}
		cluster.Status.Namespace = "cluster-" + cluster.Name
		w.clusters[cluster.Name] = cluster
	}
	w.bundle = &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "b", Generation: 1}}
	w.bundle.Spec = w.spec()
	return w
}

func pick[T any](w *hubWorld, from ...T) T { return from[w.IntN(len(from))] }

func (w *hubWorld) key() string {
	return pick(w, "env", "region", "zone", fleet.DisplayNameLabel, "objectset.rio.cattle.io/hash")
}
func (w *hubWorld) word() string { return pick(w, "", "a", "b", "c1") }

func (w *hubWorld) labels() map[string]string {
	labels := map[string]string{}
	for range w.IntN(3) {
		labels[w.key()] = w.word()
	}
	return labels
}

func (w *hubWorld) selector() *metav1.LabelSelector {
	selector := &metav1.LabelSelector{}
	switch w.IntN(5) {
	case 0:
		return nil
	case 1: // everything
	case 2:
		selector.MatchLabels = map[string]string{w.key(): w.word()}
	default:
		operator := pick(w, metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist)
		expression := metav1.LabelSelectorRequirement{Key: w.key(), Operator: operator}
		if operator == metav1.LabelSelectorOpIn || operator == metav1.LabelSelectorOpNotIn {
			expression.Values = []string{w.word(), w.word()}
		}
		selector.MatchExpressions = []metav1.LabelSelectorRequirement{expression}
	}
	return selector
}

func (w *hubWorld) target() fleet.ClusterTarget {
	var made fleet.ClusterTarget
	if w.IntN(3) > 0 {
		made.ClusterSelector = w.selector()
	}
	switch w.IntN(5) {
	case 0:
		made.ClusterName = pick(w, "c1", "a")
	case 1:
		made.ClusterGroup = pick(w, "g0", "g1")
	case 2:
		made.ClusterGroupSelector = w.selector()
	}
	return made
}

func (w *hubWorld) helm() *fleet.HelmOptions {
	if w.IntN(2) == 0 {
		return nil
	}
	helm := &fleet.HelmOptions{DisablePreProcess: w.IntN(5) == 0}
	switch w.IntN(6) {
	case 0:
	case 1:
		helm.TemplateValues = map[string]string{"t": `${ default "none" (index .ClusterAnnotations "note") }`}
	case 2:
		helm.Values = &fleet.GenericMap{Data: map[string]any{"deep": []any{map[string]any{"x": "global.fleet.clusterLabels." + w.key()}}}}
	case 3:
		helm.Values = &fleet.GenericMap{Data: map[string]any{`k${ index .ClusterLabels "zone" }`: true}}
	case 4:
		helm.Values = &fleet.GenericMap{Data: map[string]any{"v": `${ get .ClusterValues "size" }`}}
	default:
		helm.Values = &fleet.GenericMap{Data: map[string]any{"plain": "text"}}
	}
	return helm
}

func (w *hubWorld) spec() fleet.BundleSpec {
	spec := fleet.BundleSpec{TargetCustomizationMode: pick(w, fleet.FirstMatch, fleet.AllMatches)}
	spec.Helm = w.helm()
	for range 1 + w.IntN(3) {
		spec.Targets = append(spec.Targets, fleet.BundleTarget{ClusterTarget: w.target(), DoNotDeploy: w.IntN(6) == 0})
		spec.Targets[len(spec.Targets)-1].Helm = w.helm()
	}
	for range max(w.IntN(3)-1, 0) {
		spec.TargetRestrictions = append(spec.TargetRestrictions, w.target())
	}
	if w.IntN(3) == 0 {
		spec.RolloutStrategy = &fleet.RolloutStrategy{Partitions: []fleet.Partition{{ClusterTarget: w.target()}}}
	}
	return spec
}

// disturb changes one thing of a cluster.
func (w *hubWorld) disturb(cluster *fleet.Cluster) {
	switch w.IntN(12) {
	case 0:
		cluster.Annotations = map[string]string{"note": w.word()}
	case 1:
		cluster.Spec.TemplateValues = &fleet.GenericMap{Data: map[string]any{"size": w.word()}}
	case 2:
		cluster.Spec.Paused = !cluster.Spec.Paused
	case 3:
		cluster.Status.Namespace = pick(w, "", "cluster-"+cluster.Name, "cluster-"+cluster.Name)
	case 4:
		cluster.Status.Scheduled = !cluster.Status.Scheduled
	case 5:
		cluster.Status.Phase = pick(w, fleet.ClusterReady, fleet.ClusterNotReady)
	case 6:
		cluster.Labels = map[string]string{}
	case 7, 8:
		cluster.Labels = maps.Clone(cluster.Labels)
		delete(cluster.Labels, w.key())
	default:
		cluster.Labels = maps.Clone(cluster.Labels)
		cluster.Labels[w.key()] = w.word()
	}
}

func (w *hubWorld) snapshot() target.Snapshot {
	s := target.Snapshot{Bundle: w.bundle, ManifestID: "s-1", Groups: w.groups}
	for _, name := range slices.Sorted(maps.Keys(w.clusters)) {
		s.Clusters = append(s.Clusters, target.InfoOf(w.clusters[name]))
	}
	for _, namespace := range slices.Sorted(maps.Keys(w.deployments)) {
		s.Current = append(s.Current, w.deployments[namespace])
	}
	return s
}

// settle plans and carries out until nothing is left, agents answering in between.
func (w *hubWorld) settle(t *testing.T, known *Bundle) target.Plan {
	t.Helper()
	for range 20 {
		plan, err := known.Plan(w.snapshot())
		if err != nil {
			t.Fatal(err)
		}
		if writes(plan) == 0 {
			return plan
		}
		for _, list := range [][]target.Deployment{plan.Create, plan.Update} {
			for _, deployment := range list {
				object := deployment.Object.DeepCopy()
				object.Status.AppliedDeploymentID, object.Status.Ready, object.Status.NonModified = object.Spec.DeploymentID, true, true
				w.deployments[object.Namespace] = object
			}
		}
		for _, deployment := range plan.Delete {
			delete(w.deployments, deployment.Object.Namespace)
		}
	}
	t.Fatal("it does not settle")
	return target.Plan{}
}

func writes(plan target.Plan) int { return len(plan.Create) + len(plan.Update) + len(plan.Delete) }

// Whatever changes, a bundle that is not woken up has nothing to write and nothing new to tell: a plan from nothing
// says the same.
func TestNoChangeIsMissed(t *testing.T) {
	slept := 0
	for seed := range uint64(150) {
		w, known := newHubWorld(rand.New(rand.NewPCG(seed, 42))), unwatched()
		last := w.settle(t, known)
		for step := range 80 {
			woken, what := false, ""
			if w.IntN(6) == 0 {
				group := &w.groups[w.IntN(worldGroups)]
				if w.IntN(2) == 0 {
					group.Labels = w.labels()
				} else {
					group.Spec.Selector = w.selector()
					group.Generation++
				}
				woken, what = target.RefersToGroups(&w.bundle.Spec), "group "+group.Name
			} else {
				name := fmt.Sprint("c", w.IntN(worldClusters))
				before := w.clusters[name]
				after := before.DeepCopy()
				w.disturb(after)
				w.clusters[name] = after
				change := changeOf(before, after)
				woken = !change.none() && known.touchedBy(w.bundle, change)
				what = fmt.Sprintf("cluster %s: %+v became %+v", name, target.InfoOf(before), target.InfoOf(after))
			}
			if woken {
				last = w.settle(t, known)
				continue
			}
			slept++
			plain, err := target.NewPlan(w.snapshot())
			if err != nil {
				t.Fatal(err)
			}
			if writes(plain) > 0 {
				t.Fatalf("seed %d, step %d, %s: missed %+v", seed, step, what, plain)
			}
			if diff := cmp.Diff(told(last), told(plain)); diff != "" {
				t.Fatalf("seed %d, step %d, %s: missed %s", seed, step, what, diff)
			}
		}
	}
	if slept < 1000 {
		t.Errorf("only %d changes woke nobody up", slept)
	}
}

// told is what of a plan the status of a bundle tells.
func told(plan target.Plan) []any {
	return []any{plan.Targets, plan.Missing, plan.Waiting, plan.Queued, plan.Partitions, plan.Rollout, plan.Unchanged}
}
