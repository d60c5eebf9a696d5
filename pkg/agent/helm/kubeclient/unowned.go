package kubeclient

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
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
		return fault.New(fault.Stalled, ownership.ReasonNotOwned,
			"%s exists and belongs to nobody; set helm.takeOwnership to adopt it", texts[0])
	}
	named := strings.Join(texts[:min(len(texts), maxNamed)], ", ")
	if more := len(texts) - maxNamed; more > 0 {
		named += fmt.Sprintf(" and %d more", more)
	}
	return fault.New(fault.Stalled, ownership.ReasonNotOwned,
		"%d objects exist and belong to nobody: %s; set helm.takeOwnership to adopt them", len(texts), named)
}
