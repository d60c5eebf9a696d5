package join

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func TestTrustsSystem(t *testing.T) {
	for mode, want := range map[string]bool{"": false, "strict": false, "system-store": true} {
		if got, err := (Settings{AgentTLSMode: mode}).trustsSystem(); err != nil || got != want {
			t.Errorf("mode %q: %v, %v", mode, got, err)
		}
	}
	if _, err := (Settings{AgentTLSMode: "none"}).trustsSystem(); fault.ClassOf(err) != fault.Stalled || !strings.Contains(err.Error(), "none") {
		t.Errorf("unknown mode: %v", err)
	}
}
