package removal

import (
	"testing"

	"github.com/go-logr/logr"

	"github.com/fairlead-dev/fairlead/pkg/agent/helm/releases"
)

// The agent's own release is one of a bundle of its name in its own namespace; a bundle of that name elsewhere is like
// any other.
func TestIsSelf(t *testing.T) {
	remover := NewRemover(nil, "agents", logr.Discard())
	for name, test := range map[string]struct {
		record releases.Record
		want   bool
	}{
		"the agent":       {releases.Record{Namespace: "agents", BundleID: "fleet-agent-c1"}, true},
		"a bundle beside": {releases.Record{Namespace: "agents", BundleID: "monitoring"}, false},
		"the name of it":  {releases.Record{Namespace: "apps", BundleID: "fleet-agent-c1"}, false},
		"an empty bundle": {releases.Record{Namespace: "agents"}, false},
	} {
		if got := remover.isSelf(test.record); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
