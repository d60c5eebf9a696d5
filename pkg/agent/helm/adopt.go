package helm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// maxNamed bounds the objects that one message names.
const maxNamed = 20

// notOwned returns the refusal that names all objects which helm.takeOwnership would adopt, nil for none.
func notOwned(keys []manifest.Key) error {
	if len(keys) == 0 {
		return nil
	}
	texts := make([]string, 0, len(keys))
	for _, key := range keys {
		texts = append(texts, key.String())
	}
	slices.Sort(texts)
	if len(texts) == 1 {
		return fault.New(fault.Stalled, apply.ReasonNotOwned,
			"%s exists and belongs to nobody; set helm.takeOwnership to adopt it", texts[0])
	}
	named := strings.Join(texts[:min(len(texts), maxNamed)], ", ")
	if more := len(texts) - maxNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fault.New(fault.Stalled, apply.ReasonNotOwned,
		"%d objects exist and belong to nobody: %s; set helm.takeOwnership to adopt them", len(texts), named)
}

// abandoned returns whether a bundle's release is gone. Its records are looked for as the agent, which tells no
// more of them than that.
func (d *Deployer) abandoned(ctx context.Context) func(namespace, release string) bool {
	return func(namespace, release string) bool {
		self, err := d.member.Self()
		if err != nil {
			return false
		}
		records, err := self.Clients.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: labels.Set{"owner": "helm", "name": release}.String(), Limit: 1,
		})
		return err == nil && len(records.Items) == 0
	}
}
