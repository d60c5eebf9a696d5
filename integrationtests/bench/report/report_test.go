package report

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func sheet() *Sheet {
	s := &Sheet{Machine: Machine{OS: "linux", Arch: "amd64", CPUs: 2, MemoryBytes: 25e9, Go: "go1.26"}}
	s.Add(
		Figure{Chapter: "push", Name: "webhook, longest", Value: 0.75, Unit: Seconds, Floor: new(0.5), Limit: new(2.0)},
		Figure{Chapter: "writes", Name: "creates", Value: 61, Floor: new(60.0), Limit: new(60.0)},
	)
	s.Add(
		Figure{Chapter: "push", Name: "poll, longest", Value: 2.0004, Unit: Seconds},
		Figure{Chapter: "writes", Name: "writes", Value: 1.25, Unit: "a pair", Floor: new(0.0)},
		Figure{Chapter: "memory", Name: "controller", Value: 119.6, Unit: Megabytes, Limit: new(120.0)},
	)
	return s
}

func TestTable(t *testing.T) {
	var out bytes.Buffer
	if err := sheet().WriteTable(&out); err != nil {
		t.Fatal(err)
	}
	want := `linux/amd64, 2 CPUs, go1.26, 25 GB

push                value    floor  ratio  limit
  webhook, longest  0.750 s  0.500  1.50   2.000  holds
  poll, longest     2.000 s  -      -      -

writes     value        floor  ratio  limit
  creates  61           60     1.02   60     EXCEEDED
  writes   1.25 a pair  0      -      -

memory        value   floor  ratio  limit
  controller  120 MB  -      -      120    holds
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestJSON(t *testing.T) {
	s := &Sheet{Machine: Machine{OS: "linux", Arch: "arm64", CPUs: 1, Go: "go1.26"}}
	var empty bytes.Buffer
	if err := s.WriteJSON(&empty); err != nil {
		t.Fatal(err)
	}
	const machine = "{\n  \"machine\": {\n    \"os\": \"linux\",\n    \"arch\": \"arm64\",\n    \"cpus\": 1,\n    \"go\": \"go1.26\"\n  },\n"
	if diff := cmp.Diff(machine+"  \"figures\": []\n}\n", empty.String()); diff != "" {
		t.Error(diff)
	}
	s.Add(Figure{Chapter: "a", Name: "b", Value: 3, Floor: new(2.0), Limit: new(2.5)}, Figure{Chapter: "a", Name: "c", Value: 1, Unit: Seconds})
	var out bytes.Buffer
	if err := s.WriteJSON(&out); err != nil {
		t.Fatal(err)
	}
	want := machine + `  "figures": [
    {
      "chapter": "a",
      "name": "b",
      "value": 3,
      "floor": 2,
      "ratio": 1.5,
      "limit": 2.5,
      "holds": false
    },
    {
      "chapter": "a",
      "name": "c",
      "value": 1,
      "unit": "s"
    }
  ]
}
`
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Error(diff)
	}
}

func TestSpread(t *testing.T) {
	for name, test := range map[string]struct {
		in              []time.Duration
		median, longest float64
	}{
		"none": {nil, 0, 0},
		"one":  {[]time.Duration{2e9}, 2, 2},
		"odd":  {[]time.Duration{3e9, 1e9, 2e9}, 2, 3},
		"even": {[]time.Duration{4e9, 1e9, 3e9, 2e9}, 3, 4},
	} {
		t.Run(name, func(t *testing.T) {
			if median, longest := Spread(test.in); median != test.median || longest != test.longest {
				t.Errorf("got %v and %v, want %v and %v", median, longest, test.median, test.longest)
			}
		})
	}
}
