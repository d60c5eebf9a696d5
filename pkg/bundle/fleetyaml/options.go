package fleetyaml

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

var releaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// operations are the verbs of JSON patches, and the one that ignores a whole object.
var operations = []string{"add", "remove", "replace", "move", "copy", "test", "ignore"}

// checkOptions looks at what a bundle and a customization both may say.
func (p *parser) checkOptions(path string, options fleet.BundleDeploymentOptions) {
	p.checkNamespace(join(path, "namespace"), options.TargetNamespace)
	p.checkNamespace(join(path, "defaultNamespace"), options.DefaultNamespace)
	p.checkLabels(join(path, "namespaceLabels"), options.NamespaceLabels)
	p.checkAnnotations(join(path, "namespaceAnnotations"), options.NamespaceAnnotations)
	p.checkDownstream(join(path, "downstreamResources"), options.DownstreamResources)
	if options.Diff != nil {
		p.checkPatches(join(path, "diff.comparePatches"), options.Diff.ComparePatches)
	}
	p.checkApply(join(path, "apply"), options.Apply)
	for i, config := range options.ManifestConfigs {
		p.checkManifestConfig(fmt.Sprintf("%s[%d]", join(path, "manifestConfigs"), i), config)
	}
	if options.Helm == nil {
		return
	}
	p.checkValuesFrom(join(path, "helm.valuesFrom"), options.Helm.ValuesFrom)
	name, at := options.Helm.ReleaseName, join(path, "helm.releaseName")
	if name != "" && (len(name) > 53 || !releaseName.MatchString(name)) {
		p.fail(p.at(at), "%s: %q cannot name a Helm release: at most 53 lower-case letters, digits, dashes and dots are allowed", at, name)
	}
}

func (p *parser) checkNamespace(path, name string) {
	if name != "" && len(validation.IsDNS1123Label(name)) > 0 {
		p.fail(p.at(path), "%s: %q cannot name a namespace: at most 63 lower-case letters, digits and dashes are allowed", path, name)
	}
}

// checkValuesFrom finds entries that lead nowhere; the agent could only fail on them, on every cluster.
func (p *parser) checkValuesFrom(path string, entries []fleet.ValuesFrom) {
	for i, entry := range entries {
		at := fmt.Sprintf("%s[%d]", path, i)
		if entry.ConfigMapKeyRef == nil && entry.SecretKeyRef == nil {
			p.warn(p.at(at), "%s: has neither a configMapKeyRef nor a secretKeyRef, so it gives no values", at)
		}
		if ref := entry.ConfigMapKeyRef; ref != nil && ref.Name == "" {
			p.fail(p.at(at), "%s.configMapKeyRef: needs the name of a ConfigMap", at)
		}
		if ref := entry.SecretKeyRef; ref != nil && ref.Name == "" {
			p.fail(p.at(at), "%s.secretKeyRef: needs the name of a Secret", at)
		}
	}
}

// checkDownstream finds entries that copy nothing.
func (p *parser) checkDownstream(path string, entries []fleet.DownstreamResource) {
	for i, entry := range entries {
		at := fmt.Sprintf("%s[%d]", path, i)
		kind := strings.ToLower(entry.Kind)
		if entry.Name == "" || kind != "secret" && kind != "configmap" {
			p.warn(p.at(at), "%s: copies nothing; it needs a name, and Secret or ConfigMap as kind", at)
		}
	}
}

// checkPatches finds exceptions from the comparison that have no effect, before somebody wonders on a cluster.
func (p *parser) checkPatches(path string, patches []fleet.ComparePatch) {
	for i, patch := range patches {
		for j, pointer := range patch.JsonPointers {
			if !strings.HasPrefix(pointer, "/") {
				at := fmt.Sprintf("%s[%d].jsonPointers[%d]", path, i, j)
				p.warn(p.at(at), "%s: %q is no JSON pointer: it starts with /", at, pointer)
			}
		}
		for j, operation := range patch.Operations {
			at := fmt.Sprintf("%s[%d].operations[%d]", path, i, j)
			if _, err := regexp.Compile(patch.Name); err != nil && operation.Op == "ignore" {
				p.fail(p.at(at), "%s[%d].name: with op ignore it is a regular expression, and %q is none: %v", path, i, patch.Name, err)
			}
			switch {
			case !slices.Contains(operations, operation.Op):
				p.warn(p.at(at), "%s: op %q is none of %s", at, operation.Op, strings.Join(operations, ", "))
			case operation.Op != "ignore" && !strings.HasPrefix(operation.Path, "/"):
				p.warn(p.at(at), "%s: path %q is no JSON pointer: it starts with /", at, operation.Path)
			}
		}
	}
}
