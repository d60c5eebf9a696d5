package target

import "testing"

func TestReach(t *testing.T) {
	const plain = "targets: [{name: a, clusterSelector: {matchLabels: {env: prod}}}]"
	for name, test := range map[string]struct {
		spec string
		same bool
	}{
		"itself":          {plain, true},
		"values":          {"{helm: {values: {a: b}}, targets: [{name: a, namespace: x, clusterSelector: {matchLabels: {env: prod}}, helm: {chart: x}}]}", true},
		"another name":    {"targets: [{name: b, clusterSelector: {matchLabels: {env: prod}}}]", true},
		"paused":          {"{paused: true, " + plain + "}", true},
		"rollout":         {"{rolloutStrategy: {maxNew: 3}, " + plain + "}", true},
		"default mode":    {"{targetCustomizationMode: FirstMatch, " + plain + "}", true},
		"another mode":    {"{targetCustomizationMode: AllMatches, " + plain + "}", false},
		"another label":   {"targets: [{name: a, clusterSelector: {matchLabels: {env: dev}}}]", false},
		"any cluster":     {"targets: [{name: a, clusterSelector: {}}]", false},
		"taken out":       {"targets: [{name: a, doNotDeploy: true, clusterSelector: {matchLabels: {env: prod}}}]", false},
		"a restriction":   {"{targetRestrictions: [{clusterName: c}], " + plain + "}", false},
		"one more target": {"targets: [{name: a, clusterSelector: {matchLabels: {env: prod}}}, {clusterName: c}]", false},
	} {
		before, after := Reach(&bundleOf(t, plain).Spec), Reach(&bundleOf(t, test.spec).Spec)
		if before == "" || (before == after) != test.same {
			t.Errorf("%s: %q became %q", name, before, after)
		}
	}
}
