package render

import (
	"context"
	"fmt"
	"slices"

	"helm.sh/helm/v3/pkg/chartutil"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/bundle/render/helmchart"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/manifest"
)

// DefaultKubeVersion is what templates see offline when the caller does not say which cluster is meant.
const DefaultKubeVersion = "v1.37.0"

// Capabilities are what templates can learn about the cluster.
type Capabilities struct {
	// KubeVersion, DefaultKubeVersion when empty.
	KubeVersion string
	// APIVersions beside the built-in ones: "group/version" and "group/version/Kind".
	APIVersions []string
}

// Objects returns what the bundle deploys, without a cluster: the objects in the order they are
// installed, then the hooks. Definitions in a chart's crds/ folder are not among them, nor are the marks
// of an agent; lookup finds nothing and getHostByName is off. Templates cannot be interrupted: when the
// context ends first, its error is returned and the rendering ends later by itself.
func Objects(ctx context.Context, in Input, capabilities Capabilities, scoper Scoper) ([]*unstructured.Unstructured, error) {
	if err := ctx.Err(); err != nil {
		return nil, Explain(in, err)
	}
	type outcome struct {
		objects []*unstructured.Unstructured
		err     error
	}
	done := make(chan outcome, 1)
	go func() {
		objects, err := renderOffline(ctx, in, capabilities, scoper)
		done <- outcome{objects, err}
	}()
	select {
	case <-ctx.Done():
		return nil, Explain(in, ctx.Err())
	case result := <-done:
		return result.objects, Explain(in, result.err)
	}
}

func renderOffline(ctx context.Context, in Input, capabilities Capabilities, scoper Scoper) (_ []*unstructured.Unstructured, err error) {
	// Charts are foreign code to Helm's library; a panic in it is a chart that does not render.
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("rendering failed: %v", cause)
		}
	}()
	release, err := build(ctx, in, nil, scoper)
	if err != nil {
		return nil, err
	}
	return release.offline(capabilities)
}

// offline renders a release that was built without marks.
func (r *Release) offline(capabilities Capabilities) ([]*unstructured.Unstructured, error) {
	known, err := capabilities.helm()
	if err != nil {
		return nil, err
	}
	return r.renderFor(helmchart.Cluster{Capabilities: known}, true)
}

// renderFor renders as an install or as an upgrade.
func (r *Release) renderFor(cluster helmchart.Cluster, install bool) ([]*unstructured.Unstructured, error) {
	output, err := r.template(cluster, install)
	if err != nil {
		return nil, err
	}
	objects, err := r.finisher.finish(output.Manifests)
	if err != nil {
		return nil, err
	}
	hookObjects, err := r.finisher.hooks(output.Hooks)
	if err != nil {
		return nil, err
	}
	result := make([]*unstructured.Unstructured, 0, len(objects)+len(hookObjects))
	for _, object := range slices.Concat(objects, hookObjects) {
		result = append(result, object.Unstructured)
	}
	return result, nil
}

// template executes the chart's templates as Helm's install or upgrade action does.
func (r *Release) template(cluster helmchart.Cluster, install bool) (*helmchart.Output, error) {
	options := chartutil.ReleaseOptions{Name: r.Name, Namespace: r.Namespace, Revision: 1, IsInstall: install, IsUpgrade: !install}
	if !install {
		options.Revision = 2
	}
	return helmchart.Template(r.Chart, r.Values, options, cluster, helmchart.Limits{
		Bytes: maxOutput, SkipSchemaValidation: r.SkipSchemaValidation,
	})
}

// hooks returns the objects of hooks where the options want them.
func (f *finisher) hooks(rendered []byte) ([]manifest.Object, error) {
	objects, err := manifest.ParseRendered("hooks", rendered)
	if err != nil {
		return nil, err
	}
	for _, object := range objects {
		if err := f.place(object, f.scopes); err != nil {
			return nil, err
		}
	}
	return objects, nil
}

func (c Capabilities) helm() (*chartutil.Capabilities, error) {
	version := c.KubeVersion
	if version == "" {
		version = DefaultKubeVersion
	}
	parsed, err := chartutil.ParseKubeVersion(version)
	if err != nil {
		return nil, fmt.Errorf("read Kubernetes version %q: %w", version, err)
	}
	known := chartutil.DefaultCapabilities.Copy()
	known.KubeVersion = *parsed
	known.APIVersions = slices.Concat(known.APIVersions, c.APIVersions)
	return known, nil
}
