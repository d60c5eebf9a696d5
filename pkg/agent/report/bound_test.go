package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// A status stays below 64 KiB with any number of objects that all fail with long messages, and the same facts
// make the same status.
func TestStatusStaysSmall(t *testing.T) {
	long := strings.Repeat("trouble ", 2000)
	for name, test := range map[string]struct {
		objects   int
		failure   error
		bad       bool
		wantWhole bool
	}{
		"one, fine":             {objects: 1, wantWhole: true},
		"three hundred, fine":   {objects: 300, wantWhole: true},
		"three thousand, fine":  {objects: 3000},
		"three hundred, failed": {objects: 300, failure: errors.New(long), bad: true},
		"nothing but a failure": {failure: errors.New(long), wantWhole: true},
	} {
		t.Run(name, func(t *testing.T) {
			facts := Facts{Known: true, Release: "n/r:1", Applied: test.failure == nil, Failure: test.failure}
			for i := range test.objects {
				one := sight(fmt.Sprintf("object-with-a-long-name-%04d", i), diff.InSync, true)
				if test.bad {
					one.Ready, one.Verdict = false, diff.Verdict{State: diff.Modified, Patch: long}
					one.Summary = fleet.ObjectSummary{State: "failed", Error: true, Message: []string{long, long, long, long}}
				}
				facts.Objects = append(facts.Objects, one)
			}
			bd := deployment("old")
			made := Status(bd, facts, time.Unix(0, 0))
			encoded, err := json.Marshal(made)
			if err != nil {
				t.Fatal(err)
			}
			if len(encoded) > 64<<10 {
				t.Errorf("%d bytes", len(encoded))
			}
			if whole := len(made.Resources) == test.objects; whole != test.wantWhole || !whole && !made.IncompleteState {
				t.Errorf("%d of %d objects are listed, incomplete %v", len(made.Resources), test.objects, made.IncompleteState)
			}
			if counts := made.ResourceCounts; counts.DesiredReady != test.objects {
				t.Errorf("counts %+v", counts)
			}
			bd.Status = *made
			if patch, err := Patch(made, Status(bd, facts, time.Unix(60, 0))); patch != nil || err != nil {
				t.Errorf("the same facts make another status: %.200s, %v", patch, err)
			}
		})
	}
}
