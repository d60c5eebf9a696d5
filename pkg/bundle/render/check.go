package render

import (
	"context"
	"fmt"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/engine"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render/helmchart"
)

// Finding is what Check found out.
type Finding struct {
	// Err says why the bundle does not render, as Objects does.
	Err error
	// ByVersion says that the outcome may be another with another version of Kubernetes, and ByMember that it
	// may be another on the cluster itself, with values and facts that only the cluster has.
	ByVersion, ByMember bool
}

// Check renders like Objects, but keeps nothing, and says what the outcome depends on. Questions that lookup
// answers are the caller's to note. It does not return before it is through: who calls it bounds its time.
func Check(ctx context.Context, in Input, capabilities Capabilities, lookup engine.ClientProvider) Finding {
	known, err := capabilities.helm()
	if err != nil {
		return Finding{Err: err, ByVersion: true}
	}
	asked := &helmchart.Asked{}
	c := check{in: in, cluster: helmchart.Cluster{Capabilities: known, Lookup: lookup, Asked: asked}}
	if err := c.render(ctx, true); err != nil {
		c.found.Err = Explain(in, err)
		// Whether the release is there already is the member's to know.
		c.found.ByMember = c.found.ByMember || c.render(ctx, false) == nil
	}
	c.found.ByVersion, c.found.ByMember = asked.Version, c.found.ByMember || asked.Kinds
	return c.found
}

// check is one bundle that is looked at.
type check struct {
	in      Input
	cluster helmchart.Cluster
	found   Finding
}

func (c *check) render(ctx context.Context, install bool) (err error) {
	// Charts are foreign code to Helm's library; a panic in it is a chart that does not render.
	defer func() {
		if cause := recover(); cause != nil {
			err = fmt.Errorf("rendering failed: %v", cause)
		}
	}()
	release, err := build(ctx, c.in, nil, nil)
	if err != nil {
		return err // files alone decide this: no template was executed
	}
	c.found.ByMember = release.looksAtValues() && (readsMember(c.in.Options.Helm) || resolvesNames(release))
	_, err = release.renderFor(c.cluster, install)
	return err
}

// looksAtValues says that values can make a difference: there are templates, or a schema.
func (r *Release) looksAtValues() bool {
	switch r.Style {
	case Helm, HelmAndKustomize:
		return true
	case Raw:
		return len(r.Chart.Templates) > 0
	}
	return false
}

// readsMember says that some of the values are the member's own.
func readsMember(helm *fleet.HelmOptions) bool { return helm != nil && len(helm.ValuesFrom) > 0 }

// resolvesNames says that templates may ask for addresses, which they get from the member only.
func resolvesNames(r *Release) bool {
	return !r.DisableDNS && mentions(r.Chart, "getHostByName")
}

func mentions(in *chart.Chart, word string) bool {
	for _, files := range [][]*chart.File{in.Templates, in.Files} {
		for _, file := range files {
			if strings.Contains(string(file.Data), word) {
				return true
			}
		}
	}
	for _, dependency := range in.Dependencies() {
		if mentions(dependency, word) {
			return true
		}
	}
	return false
}
