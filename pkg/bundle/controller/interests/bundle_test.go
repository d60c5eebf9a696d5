package interests

import (
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// A change of a cluster wakes up the bundles whose plan it may change and no others.
func TestWhoCaresForAChangeOfACluster(t *testing.T) {
	selecting := func(key, value string) fleet.ClusterTarget {
		return fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}}
	}
	bundles := map[string]fleet.BundleTarget{
		"all":      {ClusterTarget: fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}}},
		"prod":     {ClusterTarget: selecting("env", "prod")},
		"south":    {ClusterTarget: selecting("region", "south")},
		"template": {ClusterTarget: selecting("env", "prod")},
	}
	templates := bundles["template"]
	templates.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{"a": "${ .ClusterName }"}}}
	bundles["template"] = templates
	member := func() *fleet.Cluster {
		c := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "c", Labels: map[string]string{"env": "prod", "region": "north"}}}
		c.Status.Namespace, c.Status.Phase = "cluster-c", fleet.ClusterReady
		return c
	}
	stale := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "edited", Generation: 2}}
	for name, test := range map[string]struct {
		change func(*fleet.Cluster)
		want   string
	}{
		"nothing":       {func(*fleet.Cluster) {}, ""},
		"heartbeat":     {func(c *fleet.Cluster) { c.Status.Agent.LastSeen = metav1.NewTime(start) }, ""},
		"numbers":       {func(c *fleet.Cluster) { c.Status.Summary.Ready++ }, ""},
		"agent's own":   {func(c *fleet.Cluster) { c.Spec.RedeployAgentGeneration++ }, ""},
		"env":           {func(c *fleet.Cluster) { c.Labels["env"] = "dev" }, "edited prod template"},
		"env goes":      {func(c *fleet.Cluster) { delete(c.Labels, "env") }, "edited prod template"},
		"region":        {func(c *fleet.Cluster) { c.Labels["region"] = "south" }, "edited south template"},
		"another label": {func(c *fleet.Cluster) { c.Labels["x"] = "" }, "edited template"},
		"annotations":   {func(c *fleet.Cluster) { c.Annotations = map[string]string{"env": "prod"} }, "edited template"},
		"paused":        {func(c *fleet.Cluster) { c.Spec.Paused = true }, "all edited prod template"},
		"no namespace":  {func(c *fleet.Cluster) { c.Status.Namespace = "" }, "all edited prod template"},
		"goes away":     {func(c *fleet.Cluster) { c.Status.Phase = fleet.ClusterNotReady }, "all edited prod template"},
		"is deleted":    {func(c *fleet.Cluster) { c.DeletionTimestamp = &metav1.Time{Time: start} }, "all edited prod template"},
		"off schedule":  {func(c *fleet.Cluster) { c.Status.Scheduled = true }, "all edited prod template"},
		"unknown":       {func(c *fleet.Cluster) { c.Name, c.Spec.Paused = "new", true }, "all edited prod south template"},
	} {
		t.Run(name, func(t *testing.T) {
			after := member()
			test.change(after)
			change := changeOf(member(), after)
			var woken []string
			for bundle, goal := range bundles {
				object := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: bundle, Generation: 1}}
				object.Spec.Targets = []fleet.BundleTarget{goal}
				known := unwatched()
				if _, err := known.Plan(target.Snapshot{Bundle: object, ManifestID: "s-1", Clusters: []target.ClusterInfo{target.InfoOf(member())}}); err != nil {
					t.Fatal(err)
				}
				if !change.none() && known.touchedBy(object, change) {
					woken = append(woken, bundle)
				}
			}
			if known := (&Bundle{planned: true, generation: 1}); !change.none() && known.touchedBy(stale, change) {
				woken = append(woken, stale.Name)
			}
			slices.Sort(woken)
			if got := strings.Join(woken, " "); got != test.want {
				t.Errorf("woken up: %q, want %q", got, test.want)
			}
		})
	}
}

// A change that comes while a pass reads is not lost when only the new plan cares for it.
func TestChangeWhileAPassReads(t *testing.T) {
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "b", Generation: 1}}
	bundle.Spec.Targets = []fleet.BundleTarget{{ClusterTarget: fleet.ClusterTarget{ClusterGroup: "g"}}}
	group := func(generation int64, key string) []fleet.ClusterGroup {
		made := fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "g", Generation: generation}}
		made.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: "x"}}
		return []fleet.ClusterGroup{made}
	}
	before := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "c"}}
	after := before.DeepCopy()
	for name, test := range map[string]struct {
		labels     map[string]string
		wantMissed bool
	}{
		"the new selector looks at it": {map[string]string{"zone": "x"}, true},
		"no selector does":             {map[string]string{"region": "x"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			known := unwatched()
			plan := func(groups []fleet.ClusterGroup) {
				snapshot := target.Snapshot{Bundle: bundle, ManifestID: "s-1", Groups: groups, Clusters: []target.ClusterInfo{target.InfoOf(before)}}
				if _, err := known.Plan(snapshot); err != nil {
					t.Fatal(err)
				}
			}
			plan(group(1, "env"))
			after.Labels = test.labels
			known.Begin()
			if known.touchedBy(bundle, changeOf(before, after)) {
				t.Error("the old plan cares")
			}
			plan(group(2, "zone"))
			plan(group(2, "zone"))
			if missed := known.End(); missed != test.wantMissed {
				t.Errorf("missed %v", missed)
			}
		})
	}
}
