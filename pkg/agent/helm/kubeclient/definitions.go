package kubeclient

import (
	"fmt"

	"helm.sh/helm/v3/pkg/chart"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// ApplyDefinitions creates and updates what a chart ships in its crds folder, which Helm only ever
// creates. A definition that somebody else has installed is left alone.
func (c *Client) ApplyDefinitions(root *chart.Chart) error {
	var definitions []*unstructured.Unstructured
	for _, file := range root.CRDObjects() {
		objects, err := manifest.Parse(file.File.Data)
		if err != nil {
			return fault.Wrap(fault.Stalled, "InvalidManifest", fmt.Errorf("read %s: %w", file.Filename, err))
		}
		definitions = append(definitions, objects...)
	}
	var applied manifest.Phase
	for _, definition := range definitions {
		manifest.Concede(definition)
		c.claim.Mark(definition)
		written, err := c.identity.Writer.Apply(c.ctx, definition, apply.Options{Claim: c.claim})
		c.defines = c.defines || err == nil && written.Action != apply.Unchanged
		switch reason := fault.ReasonOf(err); {
		case err == nil:
			applied = append(applied, definition)
		case reason == ownership.ReasonOwnedByOther, reason == ownership.ReasonNotOwned:
		default:
			return err
		}
	}
	return c.waitEstablished(applied)
}
