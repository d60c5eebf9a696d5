package validation

import (
	"crypto/sha256"
	"encoding/json"

	"helm.sh/helm/v3/pkg/chartutil"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/judge"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// verdict is what a finding means for a deployment.
func verdict(f judge.Finding) target.Verdict {
	if f.Result != judge.Failed {
		return target.Verdict{}
	}
	return target.Verdict{Err: fault.New(fault.Stalled, render.ReasonRenderFailed, "%s", f.Message)}
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
