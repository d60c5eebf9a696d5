package inspect

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// messageColumn is shortened in narrow tables.
const messageColumn = "Message"

type column struct {
	name  string
	wide  bool
	value func(object client.Object, now time.Time) string
}

// resource is a kind that can be listed.
type resource struct {
	// names are the words for it, the usual one first.
	names []string
	kind  string
	list  func() client.ObjectList
	// byBundle: the objects are in other namespaces and found by the namespace of their bundle.
	byBundle bool
	state    func(object client.Object) string
	columns  []column
}

// of makes a column from a function on the kind's type.
func of[T client.Object](name string, value func(T) string) column {
	return column{name: name, value: func(object client.Object, _ time.Time) string {
		typed, ok := object.(T)
		if !ok {
			return ""
		}
		return value(typed)
	}}
}

func wideOf[T client.Object](name string, value func(T) string) column {
	made := of(name, value)
	made.wide = true
	return made
}

func stateOf[T client.Object](value func(T) string) func(client.Object) string {
	made := of("", value)
	return func(object client.Object) string { return made.value(object, time.Time{}) }
}

var (
	nameColumn = column{name: "Name", value: func(object client.Object, _ time.Time) string { return object.GetName() }}
	ageColumn  = column{name: "Age", value: func(object client.Object, now time.Time) string {
		created := object.GetCreationTimestamp()
		if created.IsZero() {
			return "<unknown>"
		}
		return duration.HumanDuration(now.Sub(created.Time))
	}}
)

// resources are the kinds, in the order of the help.
var resources = []resource{
	{
		names: []string{"repos", "repo", "gitrepos", "gitrepo"}, kind: "GitRepo",
		list:  func() client.ObjectList { return &fleet.GitRepoList{} },
		state: stateOf(repoState),
		columns: []column{
			nameColumn,
			of("Ready", func(r *fleet.GitRepo) string { return status.ReadyOf(&r.Status.Summary) }),
			of("State", repoState),
			of("Commit", func(r *fleet.GitRepo) string { return short(r.Status.Commit) }),
			ageColumn,
			of(messageColumn, func(r *fleet.GitRepo) string {
				return orElse(r.Status.Display.Message, readyMessage(r.Status.Conditions))
			}),
			wideOf("Clusters", func(r *fleet.GitRepo) string {
				return fmt.Sprintf("%d/%d", r.Status.ReadyClusters, r.Status.DesiredReadyClusters)
			}),
			wideOf("Repo", func(r *fleet.GitRepo) string { return r.Spec.Repo }),
			wideOf("Branch", func(r *fleet.GitRepo) string { return orElse(r.Spec.Revision, r.Spec.Branch) }),
		},
	},
	{
		names: []string{"bundles", "bundle"}, kind: "Bundle",
		list:  func() client.ObjectList { return &fleet.BundleList{} },
		state: stateOf(bundleState),
		columns: []column{
			nameColumn,
			of("Ready", func(b *fleet.Bundle) string { return status.ReadyOf(&b.Status.Summary) }),
			of("State", bundleState),
			of("Commit", func(b *fleet.Bundle) string { return short(b.Labels[fleet.CommitLabel]) }),
			ageColumn,
			of(messageColumn, func(b *fleet.Bundle) string { return readyMessage(b.Status.Conditions) }),
			wideOf("Repo", func(b *fleet.Bundle) string { return orElse(b.Labels[fleet.RepoLabel], b.Labels[fleet.HelmOpLabel]) }),
		},
	},
	{
		names: []string{"deployments", "deployment", "bundledeployments", "bundledeployment", "bd"}, kind: "BundleDeployment",
		list:     func() client.ObjectList { return &fleet.BundleDeploymentList{} },
		byBundle: true,
		state:    stateOf(deploymentState),
		columns: []column{
			nameColumn,
			of("Cluster", func(d *fleet.BundleDeployment) string { return d.Labels[fleet.ClusterLabel] }),
			of("State", deploymentState),
			of("Commit", func(d *fleet.BundleDeployment) string { return short(d.Labels[fleet.CommitLabel]) }),
			ageColumn,
			of(messageColumn, deploymentMessage),
			wideOf("Release", func(d *fleet.BundleDeployment) string { return d.Status.Release }),
			wideOf("Namespace of the cluster", func(d *fleet.BundleDeployment) string { return d.Namespace }),
		},
	},
	{
		names: []string{"clusters", "cluster"}, kind: "Cluster",
		list:  func() client.ObjectList { return &fleet.ClusterList{} },
		state: stateOf(clusterState),
		columns: []column{
			nameColumn,
			of("Ready", func(c *fleet.Cluster) string { return status.ReadyOf(&c.Status.Summary) }),
			of("State", clusterState),
			of("Agent", func(c *fleet.Cluster) string { return versions(c).Agent }),
			of("Kubernetes", func(c *fleet.Cluster) string { return versions(c).Kubernetes }),
			ageColumn,
			of(messageColumn, clusterMessage),
			wideOf("Labels", func(c *fleet.Cluster) string { return ownLabels(c.Labels) }),
			wideOf("Namespace", func(c *fleet.Cluster) string { return c.Status.Namespace }),
		},
	},
	{
		names: []string{"groups", "group", "clustergroups", "clustergroup"}, kind: "ClusterGroup",
		list:  func() client.ObjectList { return &fleet.ClusterGroupList{} },
		state: stateOf(groupState),
		columns: []column{
			nameColumn,
			of("Clusters", func(g *fleet.ClusterGroup) string {
				return fmt.Sprintf("%d/%d", g.Status.ClusterCount-g.Status.NonReadyClusterCount, g.Status.ClusterCount)
			}),
			of("Ready", func(g *fleet.ClusterGroup) string { return status.ReadyOf(&g.Status.Summary) }),
			of("State", groupState),
			ageColumn,
			of(messageColumn, func(g *fleet.ClusterGroup) string { return readyMessage(g.Status.Conditions) }),
		},
	},
	{
		names: []string{"helmops", "helmop"}, kind: "HelmOp",
		list:  func() client.ObjectList { return &fleet.HelmOpList{} },
		state: stateOf(helmOpState),
		columns: []column{
			nameColumn,
			of("Ready", func(o *fleet.HelmOp) string { return status.ReadyOf(&o.Status.Summary) }),
			of("State", helmOpState),
			ageColumn,
			of(messageColumn, func(o *fleet.HelmOp) string { return readyMessage(o.Status.Conditions) }),
		},
	},
}

// resourceNamed returns the kind that a word means.
func resourceNamed(word string) (resource, error) {
	var known []string
	for _, candidate := range resources {
		if slices.Contains(candidate.names, strings.ToLower(word)) {
			return candidate, nil
		}
		known = append(known, candidate.names[0])
	}
	return resource{}, session.Usage("%q is no kind that can be listed; there are %s", word, strings.Join(known, ", "))
}

func repoState(r *fleet.GitRepo) string {
	if status.IsTrue(r.Status.Conditions, fleet.ConditionStalled) {
		return fleet.ConditionStalled
	}
	if r.Status.Commit == "" {
		return string(fleet.Pending)
	}
	return string(status.WorstOf(&r.Status.Summary))
}

func bundleState(b *fleet.Bundle) string      { return string(status.WorstOf(&b.Status.Summary)) }
func helmOpState(o *fleet.HelmOp) string      { return string(status.WorstOf(&o.Status.Summary)) }
func groupState(g *fleet.ClusterGroup) string { return string(status.WorstOf(&g.Status.Summary)) }

func deploymentState(d *fleet.BundleDeployment) string { return string(status.Of(d)) }

// deploymentMessage says what is wrong: the agent's words, else those about the first object.
func deploymentMessage(d *fleet.BundleDeployment) string {
	if message := status.MessageOf(d); message != "" {
		return message
	}
	switch {
	case len(d.Status.NonReadyStatus) > 0:
		return status.NonReadyMessage(d.Status.NonReadyStatus[0])
	case len(d.Status.ModifiedStatus) > 0:
		return status.ModifiedMessage(d.Status.ModifiedStatus[0])
	}
	return ""
}

// clusterState is Offline or Pending where the agent is not heard from, else the worst state of its bundles.
func clusterState(c *fleet.Cluster) string {
	switch c.Status.Phase {
	case fleet.ClusterPending:
		return string(fleet.ClusterPending)
	case fleet.ClusterNotReady, fleet.ClusterUnknown:
		return "Offline"
	}
	return string(status.WorstOf(&c.Status.Summary))
}

func clusterMessage(c *fleet.Cluster) string {
	if available := status.Find(c.Status.Conditions, fleet.ConditionAvailable); available != nil && available.Message != "" {
		return available.Message
	}
	return readyMessage(c.Status.Conditions)
}

func versions(c *fleet.Cluster) fleet.ClusterVersions {
	if c.Status.Versions == nil {
		return fleet.ClusterVersions{}
	}
	return *c.Status.Versions
}

func readyMessage(conditions []fleet.Condition) string {
	if ready := status.Find(conditions, fleet.ConditionReady); ready != nil {
		return ready.Message
	}
	return ""
}

// ownLabels are those a person chose.
func ownLabels(labels map[string]string) string {
	var own []string
	for key, value := range labels {
		if !strings.Contains(key, "cattle.io") {
			own = append(own, key+"="+value)
		}
	}
	slices.Sort(own)
	return strings.Join(own, ",")
}

// short is a commit as git shows it.
func short(commit string) string { return commit[:min(len(commit), 8)] }

func orElse(value, fallback string) string { return cmp.Or(value, fallback) }
