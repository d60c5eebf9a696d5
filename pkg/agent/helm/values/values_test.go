package values

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func TestParse(t *testing.T) {
	for name, test := range map[string]struct {
		data      string
		found     bool
		want      int
		wantClass fault.Class
	}{
		"values":   {"a: 1\nb: 2\n", true, 2, ""},
		"empty":    {"", true, 0, ""},
		"no key":   {"", false, 0, fault.Waiting},
		"no YAML":  {"a: [secret", true, 0, fault.Stalled},
		"a list":   {"[secret]", true, 0, fault.Stalled},
		"a string": {"secret", true, 0, fault.Stalled},
	} {
		got, err := parse("secret n/s", "k", []byte(test.data), test.found)
		if fault.ClassOf(err) != test.wantClass || len(got) != test.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if err != nil && strings.Contains(err.Error(), "[secret") {
			t.Errorf("%s: the message quotes a value: %v", name, err)
		}
	}
}
