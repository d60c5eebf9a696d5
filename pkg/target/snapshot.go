package target

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/policy"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/target/match"
	"github.com/fairlead-dev/fairlead/pkg/target/values"
)

// RootValuesKey is the key of a bundle's own values in its Secret; the others are named like targets.
const RootValuesKey = "values.yaml"

// Reasons of errors about a bundle's values.
const (
	ReasonValuesMissing = "ValuesMissing"
	ReasonInvalidValues = "InvalidValues"
)

// Snapshot is everything a plan depends on. It must be complete: what is missing in it looks as if it did
// not exist. It is not changed.
type Snapshot struct {
	// Bundle with its Helm values in place; see Inline.
	Bundle *fleet.Bundle
	// ManifestID names the bundle's content and starts the deployment ids.
	ManifestID string
	// Clusters that the bundle may reach: those of its namespace, and those of the namespaces mapped to it.
	Clusters []ClusterInfo
	// Groups of the namespaces of the clusters.
	Groups []fleet.ClusterGroup
	// Current are all deployments of the bundle, by their labels. They may be those that a cache holds: what is
	// planned for them is in copies, which share with them what stays.
	Current []*fleet.BundleDeployment

	// Rules are those of the bundle's namespace.
	Rules policy.Rules
	// Finalizers that every deployment gets.
	Finalizers []string
	// OfflineBudget bounds the offline clusters that a rollout does not wait for; nil means a quarter.
	OfflineBudget *intstr.IntOrString

	// Now is the time by which rollouts measure; zero where nobody waits, as in previews.
	Now time.Time

	// PersonsEdit says that a person changed which clusters the bundle is to reach: its targets are not those that
	// its status speaks of. Then deletions need no confirmation, but for those of clusters whose labels have changed
	// as well, such that the bundle would still reach them by those they had.
	PersonsEdit bool
	// ConfirmedDeletes is the token of a Guard that a person confirmed, or empty.
	ConfirmedDeletes string
	// Doubt is why what is missing in the snapshot may exist after all. Then every deletion needs confirmation.
	Doubt string
	// Memory of earlier plans of this bundle; nil for none.
	Memory *Memory

	// First are the bundles to deliver before this one, on each cluster that they reach as well.
	First []First

	// MissingValues holds "namespace/name" of deployments whose Secret is gone or holds something else.
	MissingValues map[string]bool

	// Validate demands a verdict before anything new is sent, and Verdicts are those that are known.
	Validate bool
	Verdicts map[CheckID]Verdict
}

// ClusterInfo is what planning needs of a Cluster.
type ClusterInfo struct {
	Namespace      string
	Name           string
	Labels         map[string]string
	Annotations    map[string]string
	TemplateValues *fleet.GenericMap
	// DeploymentNamespace holds the cluster's deployments on the hub; empty until it is made.
	DeploymentNamespace string
	// Paused clusters get changes staged only.
	Paused bool
	// Offline clusters are not heard from any more; one that never was is waited for, as upstream does.
	Offline bool
	// AvailableSince is since when it is heard from, where that is known.
	AvailableSince time.Time
	// OffSchedule clusters are outside of their schedule's window.
	OffSchedule bool
	// KubernetesVersion is what the cluster's agent reports; empty when it reports none.
	KubernetesVersion string
	// Protocol is the version that its agent speaks with the hub; 0 when it reports none.
	Protocol int
}

// InfoOf returns what planning needs of a Cluster. It shares maps with the object.
func InfoOf(cluster *fleet.Cluster) ClusterInfo {
	phase, version, protocol := cluster.Status.Phase, "", 0
	if cluster.Status.Versions != nil {
		version, protocol = cluster.Status.Versions.Kubernetes, cluster.Status.Versions.Protocol
	}
	return ClusterInfo{
		Namespace:           cluster.Namespace,
		Name:                cluster.Name,
		Labels:              cluster.Labels,
		Annotations:         cluster.Annotations,
		TemplateValues:      cluster.Spec.TemplateValues,
		DeploymentNamespace: cluster.Status.Namespace,
		Paused:              cluster.Spec.Paused,
		Offline:             phase == fleet.ClusterNotReady || phase == fleet.ClusterUnknown,
		OffSchedule:         cluster.Status.Scheduled && !cluster.Status.ActiveSchedule,
		KubernetesVersion:   version,
		Protocol:            protocol,
		AvailableSince:      availableSince(cluster),
	}
}

func availableSince(cluster *fleet.Cluster) time.Time {
	available := status.Find(cluster.Status.Conditions, fleet.ConditionAvailable)
	if available == nil || available.Status != corev1.ConditionTrue {
		return time.Time{}
	}
	return timeOf(available.LastTransitionTime)
}

// Key returns "namespace/name".
func (c *ClusterInfo) Key() string { return c.Namespace + "/" + c.Name }

// Labelled says that templates see any label of the cluster: what it runs depends on that, whatever its labels are.
func (c *ClusterInfo) Labelled() bool { return c.renderable().HasLabels() }

func (c *ClusterInfo) matchable() match.Cluster {
	return match.Cluster{Namespace: c.Namespace, Name: c.Name, Labels: c.Labels}
}

func (c *ClusterInfo) renderable() values.Cluster {
	return values.Cluster{
		Namespace: c.Namespace, Name: c.Name,
		Labels: c.Labels, Annotations: c.Annotations, TemplateValues: c.TemplateValues,
	}
}

// sorted returns the clusters in the order of rollouts: by name, then by namespace.
func sorted(clusters []ClusterInfo) []*ClusterInfo {
	ordered := make([]*ClusterInfo, len(clusters))
	for i := range clusters {
		ordered[i] = &clusters[i]
	}
	slices.SortFunc(ordered, func(a, b *ClusterInfo) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Namespace, b.Namespace))
	})
	return ordered
}

// Inline returns the bundle with the values of its Secret in place. A bundle without spec.valuesHash is
// returned as it is. Data that does not fit the hash is an error of class Waiting: bundle and Secret are
// written one after the other, and soon agree.
func Inline(bundle *fleet.Bundle, data map[string][]byte) (*fleet.Bundle, error) {
	if bundle.Spec.ValuesHash == "" {
		return bundle, nil
	}
	hash, err := content.BundleValuesHash(data)
	if err != nil {
		return nil, fmt.Errorf("check values of bundle %s/%s: %w", bundle.Namespace, bundle.Name, err)
	}
	if hash != bundle.Spec.ValuesHash {
		return nil, fault.New(fault.Waiting, ReasonValuesMissing,
			"the Secret %s/%s does not hold the values of this version of the bundle", bundle.Namespace, bundle.Name)
	}
	bundle = bundle.DeepCopy()
	bundle.Spec.ValuesHash = ""
	if err := inline(&bundle.Spec.Helm, data[RootValuesKey], RootValuesKey); err != nil {
		return nil, err
	}
	for i := range bundle.Spec.Targets {
		target := &bundle.Spec.Targets[i]
		if target.Name == "" || target.Name == RootValuesKey {
			continue
		}
		if err := inline(&target.Helm, data[target.Name], target.Name); err != nil {
			return nil, err
		}
	}
	return bundle, nil
}

func inline(helm **fleet.HelmOptions, text []byte, key string) error {
	if len(text) == 0 {
		return nil
	}
	var tree map[string]any
	if err := yaml.Unmarshal(text, &tree); err != nil {
		// The parser's message may quote values, which are secret.
		return fault.New(fault.Stalled, ReasonInvalidValues, "read values: key %s is not YAML", key)
	}
	if *helm == nil {
		*helm = &fleet.HelmOptions{}
	}
	(*helm).Values = &fleet.GenericMap{Data: tree}
	return nil
}
