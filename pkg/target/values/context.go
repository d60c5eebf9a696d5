package values

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Cluster is what templates see of a cluster.
type Cluster struct {
	Namespace      string
	Name           string
	Labels         map[string]string
	Annotations    map[string]string
	TemplateValues *fleet.GenericMap
}

// Visible returns the labels that templates see and that pass from a Bundle to its BundleDeployments:
// without those of Kubernetes' and Rancher's own, but with those of fleet.cattle.io and
// management.cattle.io where kept says so.
func Visible(labels map[string]string, kept ...string) map[string]string {
	visible := make(map[string]string, len(labels))
	for key, value := range labels {
		foreign := strings.Contains(key, "cattle.io") || strings.HasPrefix(key, "kubectl.kubernetes.io")
		for _, prefix := range kept {
			foreign = foreign && !strings.HasPrefix(key, prefix)
		}
		if !foreign {
			visible[key] = value
		}
	}
	return visible
}

// visibleLabels returns the cluster's labels as templates see them.
func (c Cluster) visibleLabels() map[string]string {
	return Visible(c.Labels, fleet.ReservedPrefix, "management.cattle.io/")
}

// HasLabels says that templates see any label of the cluster.
func (c Cluster) HasLabels() bool { return len(c.visibleLabels()) > 0 }

// data returns the object that templates are executed on. Templates can change maps in it, so every
// rendering gets its own.
func (c Cluster) data() map[string]any {
	clusterValues := map[string]any{}
	if c.TemplateValues != nil && c.TemplateValues.Data != nil {
		clusterValues = runtime.DeepCopyJSON(c.TemplateValues.Data)
	}
	return map[string]any{
		"ClusterNamespace":   c.Namespace,
		"ClusterName":        c.Name,
		"ClusterLabels":      anyMap(c.visibleLabels()),
		"ClusterAnnotations": anyMap(Visible(c.Annotations)),
		"ClusterValues":      clusterValues,
	}
}

func anyMap(in map[string]string) map[string]any {
	out := make(map[string]any, len(in))
	for key, value := range in {
		out[key] = value
	}
	return out
}
