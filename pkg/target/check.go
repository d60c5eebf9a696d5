package target

import (
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// CheckID names what is rendered to find out whether a deployment can be sent: content and options, and the
// version of Kubernetes they are rendered for, empty when it is not known.
type CheckID struct {
	DeploymentID      string
	KubernetesVersion string
}

// Check is a deployment to be rendered before it is sent.
type Check struct {
	ID CheckID
	// Options with values in place. They are shared and must not be changed.
	Options fleet.BundleDeploymentOptions
}

// Verdict is what rendering found out.
type Verdict struct {
	// Err says why the deployment is not sent; nil lets it through.
	Err error
}

// check holds a cluster back whose deployment does not render, or was not rendered yet. What a cluster was
// told before, at least as the next thing to do, is not asked about again. asked
// holds what the plan asks for already.
func (p *Plan) check(s Snapshot, target *Targeted, current *fleet.BundleDeployment, asked map[CheckID]bool) {
	if !s.Validate || target.Err != nil || !news(current, target.DeploymentID) {
		return
	}
	id := CheckID{target.DeploymentID, target.Cluster.KubernetesVersion}
	if !asked[id] {
		asked[id] = true
		p.Checks = append(p.Checks, Check{ID: id, Options: target.Options})
	}
	verdict, known := s.Verdicts[id]
	switch {
	case !known:
		p.Unchecked++
		target.held = true
	case verdict.Err != nil:
		target.Err, target.held = verdict.Err, true
	}
}

// news says that a deployment that may be told something was not told of this id yet.
func news(current *fleet.BundleDeployment, id string) bool {
	return current == nil ||
		current.DeletionTimestamp == nil && current.Spec.DeploymentID != id && current.Spec.StagedDeploymentID != id
}
