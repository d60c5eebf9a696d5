package v1alpha1

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const crdFile = "../../../../charts/fleet-crd/templates/crds.yaml"

// additions lists the paths this project adds to upstream's schema; a path below one of them needs no entry.
var additions = []string{
	"Bundle .spec.rolloutStrategy.mandatoryPartitions",
	"Bundle .spec.rolloutStrategy.maxConcurrency",
	"Bundle .spec.rolloutStrategy.maxFailures",
	"Bundle .spec.rolloutStrategy.minSuccessTime",
	"Bundle .spec.rolloutStrategy.progressDeadline",
	"Bundle .spec.rolloutStrategy.type",
	"Bundle .status.observedTargets",
	"Bundle .status.rollout",
	"BundleDeployment .status.ackedDeploymentID",
	"Bundle .spec.validate",
	"Bundle .spec.merge",
	"GitRepo .spec.merge",
	"HelmOp .spec.merge",
	"BundleDeployment .spec.parts",
	"BundleDeployment .status.parts",
	"Bundle .spec.apply",
	"Bundle .spec.manifestConfigs",
	"Bundle .spec.targets[].apply",
	"Bundle .spec.targets[].manifestConfigs",
	"BundleDeployment .spec.options.apply",
	"BundleDeployment .spec.options.manifestConfigs",
	"BundleDeployment .spec.stagedOptions.apply",
	"BundleDeployment .spec.stagedOptions.manifestConfigs",
	"HelmOp .spec.apply",
	"HelmOp .spec.manifestConfigs",
	"HelmOp .spec.targets[].apply",
	"HelmOp .spec.targets[].manifestConfigs",
	"BundleDeployment .status.comparePatches",
	"Bundle .spec.contentsStorage",
	"Cluster .status.display.error",
	"Cluster .status.display.message",
	"Cluster .status.phase",
	"Cluster .status.versions",
	"ClusterRegistration .spec.agentID",
	"ClusterRegistration .spec.agentVersion",
	"ClusterRegistration .spec.clusterName",
	"ClusterRegistration .spec.csr",
	"ClusterRegistration .spec.kubernetesVersion",
	"ClusterRegistration .spec.protocolVersion",
	"ClusterRegistration .status.certificate",
	"ClusterRegistration .status.certificateExpires",
	"ClusterRegistration .status.clusterNamespace",
	"ClusterRegistration .status.csrName",
	"ClusterRegistration .status.identity",
	"ClusterRegistration .status.message",
	"ClusterRegistration .status.reason",
	"ClusterRegistration .status.state",
	"GitRepo .spec.validate",
	"GitRepo .status.display.transitioning",
	"GitRepo .status.resources[].perClusterState.errApplied",
	"GitRepo .status.resources[].perClusterState.outOfSync",
	"HelmOp .spec.rolloutStrategy.mandatoryPartitions",
	"HelmOp .spec.rolloutStrategy.maxConcurrency",
	"HelmOp .spec.rolloutStrategy.maxFailures",
	"HelmOp .spec.rolloutStrategy.minSuccessTime",
	"HelmOp .spec.rolloutStrategy.progressDeadline",
	"HelmOp .spec.rolloutStrategy.type",
	"HelmOp .spec.validate",
	"Content .chunks",
	"HelmOp .spec.contentsStorage",
	"HelmOp .status.display.transitioning",
	"HelmOp .status.resources[].perClusterState.errApplied",
	"HelmOp .status.resources[].perClusterState.outOfSync",
}

// The generated definitions hold every path of upstream's, with the same type, scope and columns, and
// nothing else but the listed additions. The table is testdata/fields.tsv: kind, path, type, extra.
func TestDefinitionsMatchTheFieldTable(t *testing.T) {
	want := readTable(t)
	got := map[string]string{}
	for _, crd := range readDefinitions(t) {
		maps.Copy(got, facts(crd))
	}
	used := map[string]bool{}
	for key := range got {
		if _, known := want[key]; known {
			continue
		}
		added := slices.IndexFunc(additions, func(a string) bool {
			return key == a || strings.HasPrefix(key, a+".") || strings.HasPrefix(key, a+"[") || strings.HasPrefix(key, a+"{")
		})
		if added < 0 {
			t.Errorf("not in the table and not a listed addition: %s (%s)", key, got[key])
			continue
		}
		used[additions[added]] = true
		delete(got, key)
	}
	for _, addition := range additions {
		if !used[addition] {
			t.Errorf("listed addition is not in the definitions: %s", addition)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("definitions differ from the table (-table +generated):\n%s", diff)
	}
}

func readTable(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile("testdata/fields.tsv")
	if err != nil {
		t.Fatal(err)
	}
	table := map[string]string{}
	for line := range strings.Lines(string(data)) {
		columns := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(columns) < 3 {
			continue
		}
		key, value := columns[0]+" "+columns[1], strings.TrimSpace(strings.Join(columns[2:], " "))
		if columns[1] == "column" {
			key, value = columns[0]+" column "+columns[2], columns[3]
		}
		table[key] = value
	}
	if len(table) < 1800 {
		t.Fatalf("table has %d rows, want all of upstream's", len(table))
	}
	return table
}

func readDefinitions(t *testing.T) []apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile(crdFile)
	if err != nil {
		t.Fatal(err)
	}
	var definitions []apiextensionsv1.CustomResourceDefinition
	for document := range bytes.SplitSeq(data, []byte("\n---\n")) {
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(bytes.TrimPrefix(document, []byte("---\n")), &crd); err != nil {
			t.Fatal(err)
		}
		definitions = append(definitions, crd)
	}
	return definitions
}

func facts(crd apiextensionsv1.CustomResourceDefinition) map[string]string {
	kind, version := crd.Spec.Names.Kind, crd.Spec.Versions[0]
	found := map[string]string{kind + " scope": string(crd.Spec.Scope) + " " + crd.Spec.Names.Plural}
	for _, column := range version.AdditionalPrinterColumns {
		found[kind+" column "+column.Name] = column.JSONPath
	}
	walk(kind+" ", *version.Schema.OpenAPIV3Schema, found)
	return found
}

func walk(path string, schema apiextensionsv1.JSONSchemaProps, found map[string]string) {
	name := path
	if strings.HasSuffix(name, " ") {
		name += "."
	}
	value := schema.Type
	if schema.XIntOrString {
		value = "int-or-string"
	}
	var enum []string
	for _, option := range schema.Enum {
		enum = append(enum, strings.Trim(string(option.Raw), `"`))
	}
	if enum != nil {
		value += fmt.Sprintf(" enum=%s", strings.Join(enum, ","))
	}
	found[name] = value
	for key, property := range schema.Properties {
		walk(path+"."+key, property, found)
	}
	if schema.Items != nil && schema.Items.Schema != nil {
		walk(path+"[]", *schema.Items.Schema, found)
	}
	if schema.AdditionalProperties != nil && schema.AdditionalProperties.Schema != nil {
		walk(path+"{}", *schema.AdditionalProperties.Schema, found)
	}
}
