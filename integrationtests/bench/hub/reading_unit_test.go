package hub

import (
	"math"
	"strings"
	"testing"
)

func TestQuantile(t *testing.T) {
	counted := histogram{0.1: 50, 0.2: 90, 1: 100, math.Inf(1): 100}
	for name, test := range map[string]struct {
		in    histogram
		share float64
		want  float64
	}{
		"none":           {nil, 0.5, 0},
		"empty":          {histogram{0.1: 0, math.Inf(1): 0}, 0.5, 0},
		"median":         {counted, 0.5, 0.1},
		"within":         {counted, 0.7, 0.15},
		"nearly all":     {counted, 0.99, 0.92},
		"beyond buckets": {histogram{0.1: 1, math.Inf(1): 100}, 0.99, 0.1},
		"since":          {counted.since(histogram{0.1: 50, 0.2: 50, 1: 50, math.Inf(1): 50}), 0.5, 0.1625},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.in.quantile(test.share); math.Abs(got-test.want) > 1e-9 {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestFamilies(t *testing.T) {
	const text = `# HELP a_total about a
# TYPE a_total counter
a_total{x="1",y="p"} 3
a_total{x="1",y="q"} 4
a_total{x="2",y="q"} 5
# TYPE a_total_more counter
a_total_more 7
# TYPE b gauge
b 9
`
	found, err := families(strings.NewReader(text), "a_total")
	if err != nil {
		t.Fatal(err)
	}
	if sums := sumBy(found["a_total"], "x"); len(sums) != 2 || sums["1"] != 7 || sums["2"] != 5 {
		t.Errorf("got %v", sums)
	}
	if found["b"] != nil {
		t.Error("a family that nobody asked for is read")
	}
}
