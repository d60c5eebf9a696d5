package match

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

var north = Cluster{Namespace: "ws", Name: "north", Labels: map[string]string{
	"env": "prod", "region": "eu", fleet.DisplayNameLabel: "Nordstern",
}}

const groupObjects = `
- {metadata: {namespace: ws, name: zulu, labels: {tier: gold}}, spec: {selector: {matchLabels: {env: prod}}}}
- {metadata: {namespace: ws, name: alpha, labels: {tier: tin}}, spec: {selector: {matchLabels: {region: eu}}}}
- {metadata: {namespace: ws, name: empty}}
- {metadata: {namespace: ws, name: everyone}, spec: {selector: {}}}
- {metadata: {namespace: elsewhere, name: foreign}, spec: {selector: {}}}
- {metadata: {namespace: ws, name: broken}, spec: {selector: {matchExpressions: [{key: a, operator: Nope}]}}}
`

func decode[T any](t testing.TB, text string) T {
	t.Helper()
	var value T
	if err := yaml.UnmarshalStrict([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return value
}

func groupsOf(t testing.TB, cluster Cluster) []Group {
	t.Helper()
	groups, invalid := Groups(decode[[]fleet.ClusterGroup](t, groupObjects))
	if len(invalid) != 1 || !strings.Contains(invalid[0].Error(), "cluster group ws/broken") {
		t.Fatalf("invalid groups: %v", invalid)
	}
	return GroupsOf(cluster, groups)
}

func TestGroupsOf(t *testing.T) {
	var got []string
	for _, group := range groupsOf(t, north) {
		got = append(got, group.Name)
	}
	if diff := cmp.Diff([]string{"alpha", "everyone", "zulu"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestSelector(t *testing.T) {
	for name, test := range map[string]struct {
		selector string
		want     bool
	}{
		"no criteria":                   {"{name: x}", false},
		"name":                          {"{clusterName: north}", true},
		"display name":                  {"{clusterName: Nordstern}", true},
		"other name":                    {"{clusterName: south}", false},
		"labels":                        {"{clusterSelector: {matchLabels: {env: prod}}}", true},
		"empty selector":                {"{clusterSelector: {}}", true},
		"expression":                    {"{clusterSelector: {matchExpressions: [{key: env, operator: In, values: [dev, prod]}]}}", true},
		"other labels":                  {"{clusterSelector: {matchLabels: {env: dev}}}", false},
		"all must hold":                 {"{clusterName: north, clusterSelector: {matchLabels: {env: dev}}}", false},
		"group":                         {"{clusterGroup: zulu}", true},
		"group of another namespace":    {"{clusterGroup: foreign}", false},
		"group without selector":        {"{clusterGroup: empty}", false},
		"group labels":                  {"{clusterGroupSelector: {matchLabels: {tier: gold}}}", true},
		"any group":                     {"{clusterGroupSelector: {}}", true},
		"name and labels of one group":  {"{clusterGroup: zulu, clusterGroupSelector: {matchLabels: {tier: gold}}}", true},
		"name and labels of two groups": {"{clusterGroup: alpha, clusterGroupSelector: {matchLabels: {tier: gold}}}", false},
		"group and cluster":             {"{clusterGroup: alpha, clusterSelector: {matchLabels: {env: prod}}}", true},
	} {
		t.Run(name, func(t *testing.T) {
			selector, err := NewSelector(decode[fleet.ClusterTarget](t, test.selector))
			if err != nil {
				t.Fatal(err)
			}
			if got := selector.Matches(north, groupsOf(t, north)); got != test.want {
				t.Errorf("got %v", got)
			}
			if reason := selector.Reason(north, groupsOf(t, north)); (reason == "") != test.want {
				t.Errorf("reason %q", reason)
			}
		})
	}
}

// A cluster in no group is matched by nothing that speaks of groups, an empty group selector included.
func TestClusterInNoGroup(t *testing.T) {
	for text, want := range map[string]bool{
		"{clusterGroupSelector: {}}": false, "{clusterGroup: zulu}": false,
		"{clusterSelector: {}}": true, "{clusterName: lone, clusterGroupSelector: {}}": false,
	} {
		selector, err := NewSelector(decode[fleet.ClusterTarget](t, text))
		if err != nil {
			t.Fatal(err)
		}
		if got := selector.Matches(Cluster{Name: "lone"}, nil); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func TestMatch(t *testing.T) {
	const restrictions = "targetRestrictions: [{name: r1, clusterGroup: zulu}, {name: r2, clusterName: north}]\n"
	for name, test := range map[string]struct {
		spec        string
		want        Result
		wantOptions []int
	}{
		"no targets":                              {"{}", Result{Destination: -1, DoNotDeploy: -1}, nil},
		"destination":                             {"targets: [{clusterName: south}, {clusterName: north}]", Result{Deploy: true, Destination: 1, DoNotDeploy: -1}, []int{1}},
		"first destination wins":                  {"targets: [{clusterSelector: {}}, {clusterName: north}]", Result{Deploy: true, DoNotDeploy: -1}, []int{0}},
		"destination says no":                     {"targets: [{clusterSelector: {}, doNotDeploy: true}]", Result{DoNotDeploy: 0}, nil},
		"customization":                           {restrictions + "targets: [{clusterName: south}, {clusterName: north}, {clusterSelector: {}}, {clusterGroup: zulu}, {clusterName: north}]", Result{Deploy: true, Destination: 3, Customizations: []int{1}, DoNotDeploy: -1}, []int{1}},
		"all customizations":                      {restrictions + "targetCustomizationMode: AllMatches\ntargets: [{clusterName: north}, {clusterName: south}, {clusterSelector: {}}, {clusterName: south}, {clusterName: north}]", Result{Deploy: true, Destination: 4, Customizations: []int{0, 2}, DoNotDeploy: -1}, []int{4, 0, 2}},
		"customization cannot widen":              {"targetRestrictions: [{clusterName: south}]\ntargets: [{clusterName: north}, {clusterName: south}]", Result{Destination: -1, DoNotDeploy: -1}, nil},
		"destination beyond restrictions":         {"targetRestrictions: [{clusterName: south}]\ntargets: [{clusterSelector: {}}]", Result{Destination: -1, DoNotDeploy: -1}, nil},
		"restriction and destination, one group":  {"targetRestrictions: [{clusterGroup: zulu}]\ntargets: [{clusterGroupSelector: {matchLabels: {tier: gold}}}]", Result{Deploy: true, DoNotDeploy: -1}, []int{0}},
		"restriction and destination, two groups": {"targetRestrictions: [{clusterGroup: zulu}]\ntargets: [{clusterGroup: alpha}]", Result{Destination: -1, DoNotDeploy: -1}, nil},
		"first match says no":                     {restrictions + "targets: [{clusterName: north, doNotDeploy: true}, {clusterGroup: zulu}, {clusterName: north}]", Result{Destination: 1, Customizations: []int{0}, DoNotDeploy: 0}, nil},
		"later match would say no":                {restrictions + "targets: [{clusterName: north}, {clusterName: north, doNotDeploy: true}, {clusterGroup: zulu}, {clusterName: north}]", Result{Deploy: true, Destination: 2, Customizations: []int{0}, DoNotDeploy: -1}, []int{0}},
		"any of all matches says no":              {restrictions + "targetCustomizationMode: AllMatches\ntargets: [{clusterName: north}, {clusterName: north, doNotDeploy: true}, {clusterGroup: zulu}, {clusterName: north}]", Result{Destination: 2, Customizations: []int{0, 1}, DoNotDeploy: 1}, nil},
		"more restrictions than targets":          {restrictions + "targets: [{clusterName: north}]", Result{Deploy: true, DoNotDeploy: -1}, []int{0}},
	} {
		t.Run(name, func(t *testing.T) {
			spec := decode[fleet.BundleSpec](t, test.spec)
			matcher, err := Compile(&spec)
			if err != nil {
				t.Fatal(err)
			}
			got := matcher.Match(north, groupsOf(t, north))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
			if got.Deploy {
				if diff := cmp.Diff(test.wantOptions, got.Options(spec.TargetCustomizationMode)); diff != "" {
					t.Errorf("options: %s", diff)
				}
			}
			explained, verdicts := matcher.Explain(north, groupsOf(t, north))
			if diff := cmp.Diff(got, explained); diff != "" {
				t.Errorf("explained: %s", diff)
			}
			for _, verdict := range verdicts {
				if verdict.Used == (verdict.Reason != "") {
					t.Errorf("verdict %+v: a reason is for what is not used", verdict)
				}
			}
		})
	}
}

func TestExplainSaysWhyNot(t *testing.T) {
	spec := decode[fleet.BundleSpec](t, `
targetRestrictions: [{name: all, clusterSelector: {}}]
targets: [{name: none}, {name: dev, clusterSelector: {matchLabels: {env: dev}}}, {name: prod, clusterSelector: {matchLabels: {env: prod}}}, {name: late, clusterName: north}, {name: all, clusterSelector: {}}]`)
	matcher, err := Compile(&spec)
	if err != nil {
		t.Fatal(err)
	}
	_, verdicts := matcher.Explain(north, nil)
	for i, want := range []string{"", "no criteria", `clusterSelector "env=dev" does not match`, "", "only the first is applied", ""} {
		if got := verdicts[i].Reason; (want == "") != (got == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", verdicts[i].Name, got, want)
		}
	}
}

func TestInvalidSelectorNamesItsEntry(t *testing.T) {
	const bad = "clusterSelector: {matchExpressions: [{key: a, operator: Nope}]}"
	for text, want := range map[string]string{
		"targets: [{clusterName: a}, {name: x, " + bad + "}]":     `target 2 ("x")`,
		"targetRestrictions: [{name: q, " + bad + "}]":            `target restriction 1 ("q")`,
		"rolloutStrategy: {partitions: [{name: z, " + bad + "}]}": `rollout partition 1 ("z")`,
	} {
		spec := decode[fleet.BundleSpec](t, text)
		_, err := Compile(&spec)
		if fault.ClassOf(err) != fault.Stalled || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
}

// A change of a label that Keys does not name changes no answer.
func TestKeysAreComplete(t *testing.T) {
	spec := decode[fleet.BundleSpec](t, `
targetRestrictions: [{clusterSelector: {}}, {clusterGroup: zulu}]
targets: [{clusterSelector: {matchExpressions: [{key: a, operator: Exists}]}}, {clusterGroup: alpha}, {clusterName: Nordstern}, {clusterSelector: {}}, {clusterGroupSelector: {matchLabels: {tier: gold}}}]
rolloutStrategy: {partitions: [{clusterSelector: {matchLabels: {b: one}}}]}`)
	matcher, err := Compile(&spec)
	if err != nil {
		t.Fatal(err)
	}
	groups, _ := Groups(decode[[]fleet.ClusterGroup](t, groupObjects))
	keys := matcher.Keys(groups)
	if diff := cmp.Diff([]string{"a", "b", "env", fleet.DisplayNameLabel, "region"}, keys); diff != "" {
		t.Error(diff)
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		cluster := Cluster{Namespace: "ws", Name: "north", Labels: map[string]string{}}
		for _, key := range append([]string{"x", "y"}, keys...) {
			if random.IntN(2) == 0 {
				cluster.Labels[key] = []string{"prod", "eu", "one", "Nordstern"}[random.IntN(4)]
			}
		}
		before := matcher.Match(cluster, GroupsOf(cluster, groups))
		cluster.Labels["x"], cluster.Labels["other"] = "changed", "new"
		if diff := cmp.Diff(before, matcher.Match(cluster, GroupsOf(cluster, groups))); diff != "" {
			t.Fatal(diff)
		}
	}
}
