package apply

import (
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// action is what has to be done with a Bundle.
type action string

const (
	create    action = "created"
	update    action = "configured"
	unchanged action = "unchanged"
)

// decide says what to do for a wanted Bundle, given the one that exists under its name, or nil. One that
// belongs to somebody else, or is being deleted, is an error.
func decide(wanted, current *fleet.Bundle) (action, error) {
	switch {
	case current == nil:
		return create, nil
	case !current.DeletionTimestamp.IsZero():
		return "", fault.New(fault.Waiting, "BundleTerminating", "bundle %s/%s is still being deleted; apply again once it is gone", wanted.Namespace, wanted.Name)
	case current.Labels[fleet.RepoLabel] != wanted.Labels[fleet.RepoLabel], current.Labels[fleet.HelmOpLabel] != wanted.Labels[fleet.HelmOpLabel]:
		return "", fault.New(fault.Stalled, "BundleOwnedByOther", "bundle %s/%s exists and belongs to %s; rename the folder, set name: in its fleet.yaml, or delete that bundle",
			wanted.Namespace, wanted.Name, bundle.Owner(current.Labels))
	}
	same, err := equal(wanted, current)
	if err != nil {
		return "", err
	}
	if same {
		return unchanged, nil
	}
	return update, nil
}

// equal compares specs, labels and annotations. Another commit alone is no difference: a Bundle that a
// commit does not touch is not written.
func equal(wanted, current *fleet.Bundle) (bool, error) {
	want, err := content.Summarize(wanted.Spec)
	if err != nil {
		return false, fmt.Errorf("compare bundle %s: %w", wanted.Name, err)
	}
	have, err := content.Summarize(current.Spec)
	if err != nil {
		return false, fmt.Errorf("compare bundle %s: %w", wanted.Name, err)
	}
	for key, value := range wanted.Annotations {
		if current.Annotations[key] != value {
			return false, nil
		}
	}
	return want == have && bundle.SameLabels(wanted.Labels, current.Labels), nil
}
