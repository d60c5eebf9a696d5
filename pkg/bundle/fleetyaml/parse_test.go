package fleetyaml

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const path = "app/fleet.yaml"

func warningsOf(warnings []Warning) []string {
	var out []string
	for _, warning := range warnings {
		out = append(out, warning.String())
	}
	return out
}

func TestParseWarnings(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"nothing":              {"", nil},
		"comment":              {"# nothing\n", nil},
		"null":                 {"null\n", nil},
		"known":                {"name: a\nhelm:\n  values:\n    whatever: {it: is}\nannotations: {a: b}\n", nil},
		"near":                 {"defaultNamespaces: x\n", []string{`app/fleet.yaml:1:1: unknown key "defaultNamespaces" is ignored; did you mean "defaultNamespace"?`}},
		"deep":                 {"targetCustomizations:\n- name: a\n  helm:\n    value: {}\n", []string{`app/fleet.yaml:4:5: unknown key "targetCustomizations[0].helm.value" is ignored; did you mean "values"?`}},
		"in a selector":        {"targetCustomizations:\n- clusterSelector:\n    matchLabel: {a: b}\n", []string{`app/fleet.yaml:3:5: unknown key "targetCustomizations[0].clusterSelector.matchLabel" is ignored; did you mean "matchLabels"?`}},
		"a level too high":     {"releaseName: x\n", []string{`app/fleet.yaml:1:1: unknown key "releaseName" is ignored; did you mean "helm.releaseName"?`}},
		"nothing near":         {"somethingElseEntirely: x\n", []string{`app/fleet.yaml:1:1: unknown key "somethingElseEntirely" is ignored`}},
		"other case":           {"defaultnamespace: x\n", []string{`app/fleet.yaml:1:1: "defaultnamespace" is read as "defaultNamespace"; write it so`}},
		"of the engine":        {"resources: []\nvaluesHash: x\n", []string{`app/fleet.yaml:1:1: "resources" is set by the engine and not read from here`, `app/fleet.yaml:2:1: "valuesHash" is set by the engine and not read from here`}},
		"metadata":             {"finalizers: [x]\n", []string{`app/fleet.yaml:1:1: unknown key "finalizers" is ignored`}},
		"reserved label":       {"labels:\n  fleet.cattle.io/commit: x\n  ok: y\n", []string{`app/fleet.yaml:2:3: labels: "fleet.cattle.io/commit" is reserved for the engine and left out`}},
		"reserved annotation":  {"annotations: {objectset.rio.cattle.io/id: x}\n", []string{`app/fleet.yaml:1:15: annotations: "objectset.rio.cattle.io/id" is reserved for the engine and left out`}},
		"second document":      {"name: a\n---\nname: b\n", []string{`app/fleet.yaml:3:1: only the first document of the file is read, and this is another one`}},
		"word for a truth":     {"helm:\n  values: {y: 1, \"n\": 2, off: 3, 010: 4}\n", []string{`app/fleet.yaml:2:12: the key y is read as "true", as YAML 1.1 and Helm have it; quote it if the word is meant`, `app/fleet.yaml:2:26: the key off is read as "false", as YAML 1.1 and Helm have it; quote it if the word is meant`}},
		"labels in a selector": {"overrideTargets: [{clusterSelector: {env: prod}}]\n", []string{`app/fleet.yaml:1:38: unknown key "overrideTargets[0].clusterSelector.env" is ignored; did you mean "matchLabels.env"?`}},
		"values from nowhere":  {"helm: {valuesFrom: [{}]}\n", []string{`app/fleet.yaml:1:21: helm.valuesFrom[0]: has neither a configMapKeyRef nor a secretKeyRef, so it gives no values`}},
		"partition of nobody":  {"rolloutStrategy: {partitions: [{name: a}]}\n", []string{"app/fleet.yaml:1:32: rolloutStrategy.partitions[0]: has no selector, so no cluster is ever in it"}},
		"type without partitions": {"rolloutStrategy: {type: All, maxUnavailable: 1, mandatoryPartitions: []}\n", []string{
			"app/fleet.yaml:1:30: rolloutStrategy.maxUnavailable: has no effect with type All",
			"app/fleet.yaml:1:49: rolloutStrategy.mandatoryPartitions: has no effect with type All"}},
		"size of no partition": {"rolloutStrategy: {type: Progressive, autoPartitionSize: 10}\n", []string{
			"app/fleet.yaml:1:38: rolloutStrategy.autoPartitionSize: has no effect with type Progressive"}},
		"every rollout field": {`rolloutStrategy:
  type: ProgressivePerGroup
  maxConcurrency: 10%
  minSuccessTime: 5m
  progressDeadline: 1h
  maxFailures: 2
  mandatoryPartitions: [canary]
  partitions: [{name: canary, clusterGroup: canary}]
`, nil},
		"copies of nothing": {"downstreamResources: [{kind: Pod, name: x}, {kind: secret}, {kind: secret, name: x}]\n", []string{
			"app/fleet.yaml:1:23: downstreamResources[0]: copies nothing; it needs a name, and Secret or ConfigMap as kind",
			"app/fleet.yaml:1:45: downstreamResources[1]: copies nothing; it needs a name, and Secret or ConfigMap as kind"}},
		"patches without effect": {"diff: {comparePatches: [{jsonPointers: [data, /x], operations: [{op: drop, path: /x}, {op: remove, path: x}, {op: ignore}, {op: remove, path: /x}]}]}\n", []string{
			`app/fleet.yaml:1:41: diff.comparePatches[0].jsonPointers[0]: "data" is no JSON pointer: it starts with /`,
			`app/fleet.yaml:1:65: diff.comparePatches[0].operations[0]: op "drop" is none of add, remove, replace, move, copy, test, ignore`,
			`app/fleet.yaml:1:87: diff.comparePatches[0].operations[1]: path "x" is no JSON pointer: it starts with /`}},
		"end of document":     {"name: a\n---\n", nil},
		"scan without image":  {"imageScans: [{tagName: a}]\n", []string{`app/fleet.yaml:1:14: imageScans[0] has no image and is left out`}},
		"empty list":          {"overrideTargets: []\n", []string{`app/fleet.yaml:1:1: an empty overrideTargets overrides nothing; the GitRepo's targets apply`}},
		"nothing to override": {"overrideTargets:\n", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, warnings, err := Parse([]byte(test.text), path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, warningsOf(warnings)); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseErrors(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []string
	}{
		"syntax":                             {"a: [\n", []string{"app/fleet.yaml", "line"}},
		"no mapping":                         {"- a\n", []string{"app/fleet.yaml:1:1: the file: want a mapping"}},
		"text for a mapping":                 {"a: b\nhelm: c\n", []string{`app/fleet.yaml:2:7: helm: want a mapping of keys to values, got "c"`}},
		"mapping for a text":                 {"name: {a: b}\n", []string{"app/fleet.yaml:1:7: name: want a text, got a mapping"}},
		"text for a list":                    {"helm: {valuesFiles: a.yaml}\n", []string{"helm.valuesFiles: want a list"}},
		"text for a number":                  {"helm: {timeoutSeconds: 5m}\n", []string{`helm.timeoutSeconds: want a whole number, got "5m"`}},
		"text for a truth":                   {"paused: maybe\n", []string{`paused: want true or false, got "maybe"`}},
		"quoted truth":                       {"paused: 'true'\n", []string{`paused: want true or false`}},
		"list for values":                    {"helm: {values: [a]}\n", []string{"helm.values: want a mapping"}},
		"twice":                              {"name: a\nhelm:\n  chart: a\n  chart: b\n", []string{`app/fleet.yaml:4:3: "chart" is set twice, first in line 3`}},
		"twice in values":                    {"helm:\n  values:\n    a: 1\n    a: 2\n", []string{`:4:5: "a" is set twice`}},
		"twice in another way":               {"helm:\n  values:\n    on: 1\n    true: 2\n", []string{`:4:5: "true" is set twice`}},
		"twice in other case":                {"name: a\nNAME: b\n", []string{`"name" is set twice`}},
		"more than one":                      {"helm: c\nname: [a]\n", []string{"helm: want", "name: want"}},
		"unknown state":                      {"dependsOn:\n- name: a\n  acceptedStates: [Ready, Fine]\n", []string{`app/fleet.yaml:3:27: dependsOn[0].acceptedStates[1]: "Fine" is no state`}},
		"dependency on nobody":               {"dependsOn: [{acceptedStates: [Ready]}]\n", []string{"dependsOn[0]: needs a name or a selector"}},
		"mode":                               {"targetCustomizationMode: SomeMatches\n", []string{"FirstMatch or AllMatches", "SomeMatches"}},
		"name":                               {"name: Not_A_Name\n", []string{`app/fleet.yaml:1:1: name: "Not_A_Name" cannot name a Bundle`}},
		"long name":                          {"name: " + strings.Repeat("a", 64) + "\n", []string{"cannot name a Bundle"}},
		"label value":                        {"labels: {a: 'b c'}\n", []string{"labels.a: the value is not valid"}},
		"label key":                          {"labels: {'a b': c}\n", []string{`labels: the key "a b" is not valid`}},
		"tab":                                {"helm:\n\tvalues: {}\n", []string{"read app/fleet.yaml: yaml: line 2: ", "indent with spaces, not tabs"}},
		"namespace":                          {"namespace: Web\n", []string{`app/fleet.yaml:1:1: namespace: "Web" cannot name a namespace`}},
		"namespace of a target":              {"targetCustomizations: [{defaultNamespace: a.b}]\n", []string{`targetCustomizations[0].defaultNamespace: "a.b" cannot name a namespace`}},
		"values from no name":                {"helm: {valuesFrom: [{configMapKeyRef: {key: a}}, {secretKeyRef: {}}]}\n", []string{"app/fleet.yaml:1:21: helm.valuesFrom[0].configMapKeyRef: needs the name", "helm.valuesFrom[1].secretKeyRef: needs the name"}},
		"namespace's label":                  {"namespaceLabels: {'a b': c}\n", []string{`app/fleet.yaml:1:19: namespaceLabels: the key "a b" is not valid`}},
		"namespace's annotation of a target": {"targetCustomizations: [{namespaceAnnotations: {'a b': c}}]\n", []string{`targetCustomizations[0].namespaceAnnotations: the key "a b" is not valid`}},
		"new clusters":                       {"rolloutStrategy: {maxNew: -1}\n", []string{"rolloutStrategy.maxNew: want a number of clusters, got -1"}},
		"pattern of a patch":                 {"diff: {comparePatches: [{name: 'a(', operations: [{op: ignore}]}]}\n", []string{`diff.comparePatches[0].name: with op ignore it is a regular expression, and "a(" is none`}},
		"strategy":                           {"apply: {strategy: Update}\n", []string{`app/fleet.yaml:1:9: apply.strategy: want Helm, ServerSideApply, CreateOnly or ReadOnly, got "Update"`}},
		"fields by jq":                       {"apply: {ignoreFields: [{condition: OnMemberChange, jqPaths: [.a]}]}\n", []string{"apply.ignoreFields[0]: names no field; it needs jsonPointers or jsonPaths"}},
		"when fields are ignored":            {"apply: {ignoreFields: [{condition: Never, jsonPointers: [/a]}]}\n", []string{`apply.ignoreFields[0].condition: want OnMemberPresent or OnMemberChange, got "Never"`}},
		"fields to ignore":                   {"targetCustomizations: [{apply: {ignoreFields: [{condition: OnMemberChange, jsonPointers: [a], jsonPaths: ['.a[1:2]']}]}}]\n", []string{`ignoreFields[0].jsonPointers[0]: "a" is no JSON pointer`, `ignoreFields[0].jsonPaths[0]: ".a[1:2]" is no JSONPath that is understood`}},
		"rule of readiness":                  {"manifestConfigs:\n- resource: {kind: Jar}\n  conditionRules: [{name: lid, expression: 'object.'}]\n", []string{"app/fleet.yaml:3:20: manifestConfigs[0].conditionRules[0] (lid): the expression cannot be compiled"}},
		"rule of nothing":                    {"manifestConfigs: [{resource: {kind: Jar}, conditionRules: [{name: lid}]}]\n", []string{"conditionRules[0] (lid): needs an expression or a condition"}},
		"release name":                       {"targetCustomizations: [{helm: {releaseName: A_b}}]\n", []string{`targetCustomizations[0].helm.releaseName: "A_b" cannot name a Helm release`}},
		"selector":                           {"overrideTargets: [{clusterSelector: {matchExpressions: [{key: a, operator: Like}]}}]\n", []string{"overrideTargets[0].clusterSelector", "Like"}},
		"amount":                             {"rolloutStrategy: {maxUnavailable: half}\n", []string{`rolloutStrategy.maxUnavailable: want a number or a percentage such as 25%, got "half"`}},
		"partition's amount":                 {"rolloutStrategy: {partitions: [{maxUnavailable: -1}]}\n", []string{"partitions[0].maxUnavailable"}},
		"rollout type":                       {"rolloutStrategy: {type: Canary}\n", []string{`rolloutStrategy.type: want Partitioned, All, Progressive or ProgressivePerGroup, got "Canary"`}},
		"rollout amounts":                    {"rolloutStrategy: {maxFailures: some, maxConcurrency: -1}\n", []string{"rolloutStrategy.maxFailures", "rolloutStrategy.maxConcurrency"}},
		"rollout times":                      {"rolloutStrategy: {minSuccessTime: -5m, progressDeadline: -1s}\n", []string{"rolloutStrategy.minSuccessTime: want a span of time such as 10m", "rolloutStrategy.progressDeadline"}},
		"rollout time without unit":          {"rolloutStrategy: {minSuccessTime: 5d}\n", []string{"5d"}},
		"mandatory partition":                {"rolloutStrategy: {mandatoryPartitions: [a, b, a], partitions: [{name: a, clusterName: x}]}\n", []string{`mandatoryPartitions[1]: there is no partition named "b"`, `mandatoryPartitions[2]: "a" is listed twice`}},
		"scan without a tag":                 {"imageScans: [{image: a}]\n", []string{"imageScans[0]: needs a tagName"}},
		"bad duration":                       {"imageScans: [{image: a, tagName: b, interval: 5d}]\n", []string{"5d"}},
		"merge of a text":                    {"helm: {<<: a}\n", []string{"a merge key needs a mapping"}},
		"undefined alias":                    {"helm: *a\n", []string{"app/fleet.yaml"}},
		"key that is a list":                 {"helm: {values: {[a]: b}}\n", []string{"a key must be a text"}},
		"deep":                               {"helm: {values: {a: " + strings.Repeat("[", 300) + strings.Repeat("]", 300) + "}}", []string{"nested too deeply"}},
		"aliases without end":                {bomb(), []string{"too large"}},
		"merge of itself":                    {"helm: {values: &a {<<: *a}}\n", []string{"nested too deeply"}},
		"alias of itself":                    {"helm: {values: &a {b: *a}}\n", []string{"nested too deeply"}},
		"too large":                          {strings.Repeat("#", maxSize+1), []string{"limit"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := Parse([]byte(test.text), path)
			if fault.ClassOf(err) != fault.Stalled || fault.ReasonOf(err) != ReasonInvalid {
				t.Fatalf("got %v, want a stalled error", err)
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q does not say %q", err, want)
				}
			}
		})
	}
}

// Conditions repeat the error, so it must be the same each time.
func TestParseErrorsInOrder(t *testing.T) {
	text := "labels: {a: '!', b: '!', c: '!', d: '!'}\nrolloutStrategy: {maxUnavailable: x, maxUnavailablePartitions: x, autoPartitionSize: x}\n"
	_, _, first := Parse([]byte(text), path)
	for range 20 {
		if _, _, err := Parse([]byte(text), path); err.Error() != first.Error() {
			t.Fatalf("got\n%v\nafter\n%v", err, first)
		}
	}
}

// bomb is a document that aliases itself into billions of nodes.
func bomb() string {
	var text strings.Builder
	text.WriteString("helm:\n  values:\n    a0: &a0 [x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		from := string(rune('0' + i))
		text.WriteString("    a" + string(rune('1'+i)) + ": &a" + string(rune('1'+i)) + " [" + strings.TrimSuffix(strings.Repeat("*a"+from+", ", 9), ", ") + "]\n")
	}
	return text.String()
}

// Text stays text where a text is wanted; values mean what they mean to Helm.
func TestParseScalars(t *testing.T) {
	file, warnings, err := Parse([]byte(`
name: 123
labels: {a: yes, b: 1.10, c: 010, d: 2020-01-01, e: null, f: ~}
forceSyncGeneration: 12
keepResources: yes
createNamespace: false
rolloutStrategy: {maxUnavailable: 10%, maxNew: 3, maxUnavailablePartitions: 2, autoPartitionSize: "40"}
helm:
  version: 1.20
  templateValues: {x: 1e3}
  values:
    plain: [1, -2, 1.50, 1e3, 0x10, 010, yes, off, "yes", '1', !!str 5, 2020-01-01, ~, null, 1_000, .inf-like, 12345678901234567890]
    base: &base {a: 1, b: 2}
    merged: {<<: *base, b: 3}
    block: |
      yes
    1: one
    yes: two
`), path)
	if err != nil || len(warnings) != 1 {
		t.Fatal(err, warnings)
	}
	want := map[string]string{"a": "yes", "b": "1.10", "c": "010", "d": "2020-01-01", "e": "", "f": ""}
	if diff := cmp.Diff(want, file.Labels); diff != "" {
		t.Errorf("labels (-want +got):\n%s", diff)
	}
	if file.Name != "123" || file.Helm.Version != "1.20" || file.Helm.TemplateValues["x"] != "1e3" {
		t.Errorf("name %q, version %q, template %q", file.Name, file.Helm.Version, file.Helm.TemplateValues["x"])
	}
	if file.ForceSyncGeneration != 12 || !file.KeepResources || *file.CreateNamespace {
		t.Errorf("generation %d, keep %v, create %v", file.ForceSyncGeneration, file.KeepResources, *file.CreateNamespace)
	}
	strategy := file.RolloutStrategy
	if strategy.MaxUnavailable.StrVal != "10%" || *strategy.MaxNew != 3 || strategy.MaxUnavailablePartitions.IntVal != 2 {
		t.Errorf("strategy %+v", strategy)
	}
	values, err := json.Marshal(file.Helm.Values)
	if err != nil {
		t.Fatal(err)
	}
	wantValues := `{"1":"one","base":{"a":1,"b":2},"block":"yes\n","merged":{"a":1,"b":3},` +
		`"plain":[1,-2,1.5,1000,16,8,true,false,"yes","1","5","2020-01-01",null,null,1000,".inf-like",12345678901234567000],"true":"two"}`
	if diff := cmp.Diff(wantValues, string(values)); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
}

func TestReserved(t *testing.T) {
	for key, want := range map[string]bool{
		"fleet.cattle.io/x": true, "management.cattle.io/x": true, "objectset.rio.cattle.io/x": true,
		"fleet.cattle.io": false, "app": false, "cattle.io/x": false,
	} {
		if got := Reserved(key); got != want {
			t.Errorf("%s: %v, want %v", key, got, want)
		}
	}
}
