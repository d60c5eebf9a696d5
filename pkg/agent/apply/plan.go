package apply

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/concede"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// plan is how one object is written, read from the object itself.
type plan struct {
	fleet.ApplyOptions
	// desired is the object as it is sent.
	desired *unstructured.Unstructured
}

// planFor reads how an object is written. Hooks live by Helm's rules.
func planFor(object *unstructured.Unstructured) (plan, error) {
	how, sent, err := manifest.How(object)
	if err != nil {
		return plan{}, fault.Wrap(fault.Stalled, concede.ReasonInvalidFields, err)
	}
	return plan{ApplyOptions: how, desired: sent}, nil
}

// forces says whether fields are taken from other managers.
func (p plan) forces() bool { return p.Force == nil || *p.Force }

// isPlain says that the object is written as it is, whatever is there.
func (p plan) isPlain() bool {
	return p.forces() && len(p.IgnoreFields) == 0 && p.Strategy != fleet.ApplyCreateOnly && p.Strategy != fleet.ApplyReadOnly
}

// check returns nil when the claim may write the live object, or leave it as it is.
func (p plan) check(claim ownership.Claim, live *unstructured.Unstructured) error {
	switch {
	case manifest.IsHook(p.desired):
		return claim.CheckHook(live)
	case p.Strategy == fleet.ApplyCreateOnly:
		claim.TakeOwnership = true // nobody's object is not taken, it is left
	}
	return claim.Check(live)
}
