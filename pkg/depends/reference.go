package depends

import (
	"maps"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Reference is an entry of dependsOn, ready for use. Make it with Read.
type Reference struct {
	name, namespace string
	selector        labels.Selector
}

// Read prepares an entry in a bundle of a namespace. An error is of class Stalled.
func Read(ref fleet.BundleRef, namespace string) (Reference, error) {
	read := Reference{name: ref.Name, namespace: namespace}
	if ref.Selector == nil {
		return read, nil
	}
	var err error
	if read.selector, err = metav1.LabelSelectorAsSelector(ref.Selector); err != nil {
		return Reference{}, fault.New(fault.Stalled, "InvalidSelector", "dependsOn: %w", err)
	}
	return read, nil
}

// IsEmpty says that it means nothing, having neither name nor selector.
func (r Reference) IsEmpty() bool { return r.name == "" && r.selector == nil }

// Means says whether a bundle is meant, given by the labels of its deployments (see LabelsOf). A name is one of
// the same namespace; a name and a selector must both fit.
func (r Reference) Means(other map[string]string) bool {
	switch {
	case r.IsEmpty():
		return false
	case r.name != "" && (other[fleet.BundleLabel] != r.name || other[fleet.BundleNamespaceLabel] != r.namespace):
		return false
	}
	return r.selector == nil || r.selector.Matches(labels.Set(other))
}

// String says it in words, such as "bundle base" or "bundles tier=platform".
func (r Reference) String() string {
	if r.selector == nil {
		return "bundle " + r.name
	}
	return strings.TrimSpace("bundles " + r.selector.String() + " " + r.name)
}

// LabelsOf returns the labels that all deployments of a bundle have, as far as dependsOn looks at them.
func LabelsOf(bundle *fleet.Bundle) map[string]string {
	all := make(map[string]string, len(bundle.Labels)+2)
	maps.Copy(all, bundle.Labels)
	all[fleet.BundleLabel], all[fleet.BundleNamespaceLabel] = bundle.Name, bundle.Namespace
	return all
}
