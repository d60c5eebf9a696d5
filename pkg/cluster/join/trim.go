package join

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	// maxReferences is more than anybody needs; the engine gives a registration one owner and no finalizer.
	maxReferences = 8
	// maxLabelKey is the longest key of a label: a DNS subdomain, a slash and a name.
	maxLabelKey = validation.DNS1123SubdomainMaxLength + 1 + validation.LabelValueMaxLength
)

// Trim cuts a registration down to what decisions need, for caches: whoever has a token may make any number
// of them, each as large as the API server allows. What is cut is long enough to be refused as too long. A
// trimmed registration must not be sent back as a whole; use patches.
func Trim(registration *fleet.ClusterRegistration) {
	registration.ManagedFields, registration.Annotations = nil, nil
	labels := map[string]string{}
	for _, key := range []string{fleet.RegistrationTokenLabel, fleet.ClusterManagementLabel} {
		if value, there := registration.Labels[key]; there {
			labels[key] = value
		}
	}
	registration.Labels = labels
	registration.Finalizers = slices.Clone(registration.Finalizers[:min(len(registration.Finalizers), maxReferences)])
	registration.OwnerReferences = slices.Clone(registration.OwnerReferences[:min(len(registration.OwnerReferences), maxReferences)])
	spec := &registration.Spec
	for _, text := range []*string{
		&spec.ClientID, &spec.ClientRandom, &spec.ClusterName, &spec.AgentID, &spec.AgentVersion, &spec.KubernetesVersion,
	} {
		*text = start(*text, maxClientID+1)
	}
	spec.CSR = slices.Clone(spec.CSR[:min(len(spec.CSR), maxCSRBytes+1)])
	maps.DeleteFunc(spec.ClusterLabels, func(key, value string) bool { // which is no label at all
		return len(key) > maxLabelKey || len(value) > validation.LabelValueMaxLength
	})
	if len(spec.ClusterLabels) > maxClusterLabels {
		kept := map[string]string{}
		for _, key := range slices.Sorted(maps.Keys(spec.ClusterLabels))[:maxClusterLabels+1] {
			kept[key] = spec.ClusterLabels[key]
		}
		spec.ClusterLabels = kept
	}
}

// start returns a copy of the beginning of a text that is too long, else the text.
func start(text string, length int) string {
	if len(text) <= length {
		return text
	}
	return string([]byte(text[:length]))
}
