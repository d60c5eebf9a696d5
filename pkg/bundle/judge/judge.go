package judge

import (
	"context"

	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Result of one rendering, as metrics count it.
type Result string

// The results.
const (
	// Passed bundles render.
	Passed Result = "passed"
	// Failed ones do not, on any cluster of the version: they are held back.
	Failed Result = "failed"
	// MemberDecides says that it failed here and may render on the cluster.
	MemberDecides Result = "member_decides"
	// GaveUp says that it took too long or too much.
	GaveUp Result = "gave_up"
)

// Results lists all of them.
func Results() []Result { return []Result{Passed, Failed, MemberDecides, GaveUp} }

// Job is one bundle to render.
type Job struct {
	Input render.Input
	// KubernetesVersion is empty when it is not known.
	KubernetesVersion string
}

// Finding is what a rendering gave, as it is remembered.
type Finding struct {
	Result Result
	// Message of a failure.
	Message string
	// ByVersion says that another version may have another finding.
	ByVersion bool
}

// Judge renders and decides whether a failure counts. Templates notice neither the end of the context nor how
// much memory they take: whoever calls it bounds both.
func Judge(ctx context.Context, job Job) Finding {
	lookup := &nowhere{}
	capabilities := render.Capabilities{KubeVersion: job.KubernetesVersion}
	found := render.Check(ctx, job.Input, capabilities, lookup)
	result := Finding{Result: Passed, ByVersion: found.ByVersion}
	switch {
	case found.Err == nil:
	case fault.ClassOf(found.Err) != fault.Stalled:
		result.Result = GaveUp
	case found.ByMember || lookup.asked || found.ByVersion && job.KubernetesVersion == "":
		result.Result = MemberDecides
	default:
		result.Result, result.Message = Failed, found.Err.Error()
	}
	return result
}
