package validation

import (
	"context"
	"crypto/sha256"
	"encoding/json"

	"helm.sh/helm/v3/pkg/chartutil"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/target"
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

func (f Finding) verdict() target.Verdict {
	if f.Result != Failed {
		return target.Verdict{}
	}
	return target.Verdict{Err: fault.New(fault.Stalled, render.ReasonRenderFailed, "%s", f.Message)}
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

// known returns a version that can be judged by, or nothing: what agents report is not to be relied on.
func known(version string) string {
	if _, err := chartutil.ParseKubeVersion(version); err != nil {
		return ""
	}
	return version
}

// key stands for what rendering sees of a bundle and its options, apart from the version.
type key [sha256.Size]byte

// keyOf returns the key. Options that make no difference to rendering do not count.
func keyOf(bundle, manifest string, options fleet.BundleDeploymentOptions) (key, error) {
	seen := fleet.BundleDeploymentOptions{
		DefaultNamespace: options.DefaultNamespace, TargetNamespace: options.TargetNamespace,
		Kustomize: options.Kustomize, YAML: options.YAML, DeleteCRDResources: options.DeleteCRDResources,
	}
	if helm := options.Helm; helm != nil {
		seen.Helm = &fleet.HelmOptions{
			Chart: helm.Chart, Repo: helm.Repo, Version: helm.Version, ReleaseName: helm.ReleaseName,
			Values: helm.Values, ValuesFrom: helm.ValuesFrom,
			DisableDNS: helm.DisableDNS, SkipSchemaValidation: helm.SkipSchemaValidation,
		}
	}
	text, err := json.Marshal([]any{bundle, manifest, seen})
	return sha256.Sum256(text), err
}

// forVersion is the key of a finding that holds for one version only.
func (k key) forVersion(version string) key {
	return sha256.Sum256(append(k[:], version...))
}
