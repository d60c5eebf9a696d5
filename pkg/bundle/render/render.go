package render

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/postrender"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// ReasonRenderFailed is the reason of every error that a bundle's content or options cause.
const ReasonRenderFailed = "RenderFailed"

// maxOutput is the limit in bytes of what one bundle may render to.
const maxOutput = 128 << 20

// Input is one bundle with the options of one cluster.
type Input struct {
	// BundleID is the name of the BundleDeployment; the release and the set of objects are named after it.
	BundleID string
	// ManifestID names the content; it becomes the version of a generated chart.
	ManifestID string
	// Commit the content was read from, if any.
	Commit string
	// Manifest holds the files.
	Manifest content.Manifest
	// Options are the cluster's, merged and with templates rendered. Helm.Values holds all values,
	// those of valuesFrom included.
	Options fleet.BundleDeploymentOptions
}

// Marks say whose objects the release makes.
type Marks struct {
	// AgentNamespace and AgentScope identify the agent on its cluster; the scope is mostly empty.
	AgentNamespace string
	AgentScope     string
}

// Release is what Helm's install and upgrade actions take. An action changes the chart, so a release is
// good for one action; Build is cheap enough to be called for each.
type Release struct {
	Name      string
	Namespace string
	Chart     *chart.Chart
	Values    map[string]any
	// PostRenderer adds plain manifests, runs Kustomize, puts objects into their namespace, marks them as
	// the bundle's and orders them. Helm does not post-render hooks: pass those to Place.
	PostRenderer postrender.PostRenderer
	// DisableDNS and SkipSchemaValidation are the switches of Helm's actions.
	DisableDNS           bool
	SkipSchemaValidation bool
	// Style the bundle was found to have.
	Style Style

	finisher *finisher
}

// ReleaseName returns the name of the Helm release of a BundleDeployment.
func ReleaseName(bundleID string, options fleet.BundleDeploymentOptions) string {
	if options.Helm != nil && options.Helm.ReleaseName != "" {
		return options.Helm.ReleaseName
	}
	return names.HelmRelease(bundleID)
}

// ReleaseNamespace returns the namespace of the Helm release, which receives every object that names none.
func ReleaseNamespace(options fleet.BundleDeploymentOptions) string {
	switch {
	case options.TargetNamespace != "":
		return options.TargetNamespace
	case options.DefaultNamespace != "":
		return options.DefaultNamespace
	}
	return "default"
}

// Build returns the release that deploys the bundle. The scoper says which kinds are cluster-scoped; nil
// knows the built-in ones. The context bounds the wait for Kustomize in the post-renderer too, so it must
// live as long as the release is used. Errors are of class fault.Stalled unless the context ended.
func Build(ctx context.Context, in Input, marks Marks, scoper Scoper) (*Release, error) {
	release, err := build(ctx, in, &marks, scoper)
	if err != nil {
		return nil, Explain(in, err)
	}
	return release, nil
}

func build(ctx context.Context, in Input, marks *Marks, scoper Scoper) (*Release, error) {
	tree, err := unpack(in.Manifest)
	if err != nil {
		return nil, err
	}
	plan, err := planFor(tree, in.Options)
	if err != nil {
		return nil, err
	}
	release := &Release{
		Name:      ReleaseName(in.BundleID, in.Options),
		Namespace: ReleaseNamespace(in.Options),
		Values:    map[string]any{},
		Style:     plan.style,
	}
	if helm := in.Options.Helm; helm != nil {
		release.DisableDNS, release.SkipSchemaValidation = helm.DisableDNS, helm.SkipSchemaValidation
		if release.Values, err = copyValues(helm.Values); err != nil {
			return nil, err
		}
	}
	if err := chartutil.ValidateReleaseName(release.Name); err != nil {
		return nil, fmt.Errorf("release name %q: %w", release.Name, err)
	}
	if release.Chart, err = plan.chart(in); err != nil {
		return nil, err
	}
	if marks != nil {
		annotate(release.Chart, in, *marks)
	}
	raw, err := plan.objects()
	if err != nil {
		return nil, err
	}
	release.finisher = &finisher{
		ctx: ctx, in: in, plan: plan, raw: raw, marks: marks, release: release.Namespace,
		scopes: scopesOf(scoper, release.Chart),
	}
	release.PostRenderer = release.finisher
	return release, nil
}

// Place puts objects that do not pass the post-renderer, which is hooks, where the options want
// them. It may be called again for objects that are in place. A cluster-scoped object is an error when the
// options force a namespace.
func (r *Release) Place(objects ...*unstructured.Unstructured) error {
	if err := r.finisher.placeHooks(objects); err != nil {
		return Explain(r.finisher.in, err)
	}
	return nil
}

// copyValues returns the values as Helm reads them from a file: the actions change them, and templates see
// every number as float64.
func copyValues(values *fleet.GenericMap) (map[string]any, error) {
	result := map[string]any{}
	if values == nil || values.Data == nil {
		return result, nil
	}
	data, err := json.Marshal(values.Data)
	if err != nil {
		return nil, errors.New("the values cannot be written as JSON")
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return nil, errors.New("the values cannot be read as JSON")
	}
	return result, nil
}

// unpack returns the files by name.
func unpack(manifest content.Manifest) (map[string][]byte, error) {
	tree := make(map[string][]byte, len(manifest.Resources))
	total := 0
	for _, resource := range manifest.Resources {
		name, err := cleanName(resource.Name)
		if err != nil {
			return nil, err
		}
		if _, ok := tree[name]; ok {
			return nil, fmt.Errorf("%s: the bundle holds two files of this name", name)
		}
		data, err := content.Decode(resource)
		if err != nil {
			return nil, err
		}
		if total += len(data); total > content.MaxStored {
			return nil, fmt.Errorf("%s: %w", name, content.ErrTooLarge)
		}
		tree[name] = data
	}
	return tree, nil
}
