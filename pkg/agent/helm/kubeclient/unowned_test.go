package kubeclient

import (
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func TestNotOwned(t *testing.T) {
	if err := notOwned(nil); err != nil {
		t.Errorf("nothing is in the way: %v", err)
	}
	var keys []manifest.Key
	for i := range 25 {
		keys = append(keys, manifest.Key{GroupKind: schema.GroupKind{Kind: "Secret"}, Namespace: "n", Name: "s" + strconv.Itoa(10+i)})
	}
	for name, test := range map[string]struct {
		keys     []manifest.Key
		want     []string
		wantLess string
	}{
		"one":  {keys[:1], []string{"Secret n/s10 exists", "helm.takeOwnership", "adopt it"}, "objects"},
		"two":  {[]manifest.Key{keys[1], keys[0]}, []string{"2 objects exist", "Secret n/s10, Secret n/s11;", "adopt them"}, "more"},
		"many": {keys, []string{"25 objects exist", "n/s29 and 5 more;"}, "n/s30"},
	} {
		err := notOwned(test.keys)
		if fault.ClassOf(err) != fault.Stalled || fault.ReasonOf(err) != ownership.ReasonNotOwned {
			t.Errorf("%s: class %s, reason %s", name, fault.ClassOf(err), fault.ReasonOf(err))
		}
		for _, want := range test.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %q lacks %q", name, err, want)
			}
		}
		if strings.Contains(err.Error(), test.wantLess) {
			t.Errorf("%s: %q says %q", name, err, test.wantLess)
		}
	}
}
