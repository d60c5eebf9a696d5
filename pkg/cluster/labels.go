package cluster

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// reservedDomains own label keys that give a cluster a meaning to the engine or to Rancher.
var reservedDomains = []string{"fleet.cattle.io", "management.cattle.io"}

// Labels returns those of a registering agent's labels that its Cluster may have. Reserved keys and
// what is no label at all are dropped; the name of the agent's pod is let through, as upstream does.
func Labels(wanted map[string]string) map[string]string {
	kept := maps.Clone(wanted)
	maps.DeleteFunc(kept, func(key, value string) bool {
		return len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 ||
			(reserved(key) && key != fleet.AgentPodLabel)
	})
	return kept
}

func reserved(key string) bool {
	domain, _, found := strings.Cut(key, "/")
	if !found {
		return false
	}
	for _, owned := range reservedDomains {
		if domain == owned || strings.HasSuffix(domain, "."+owned) {
			return true
		}
	}
	return false
}

// MissingLabels returns the labels that a Cluster must have and has not: Rancher's pages fail on a
// Cluster without the first.
func MissingLabels(cluster *fleet.Cluster) map[string]string {
	if cluster.Labels[fleet.ManagementNameLabel] != "" || len(cluster.Name) > validation.LabelValueMaxLength {
		return nil
	}
	return map[string]string{fleet.ManagementNameLabel: cluster.Name}
}
