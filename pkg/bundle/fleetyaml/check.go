package fleetyaml

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

// reserved start label and annotation keys that only the engine and Rancher may set.
var reserved = []string{fleet.ReservedPrefix, "management.cattle.io/", "objectset.rio.cattle.io/"}

var releaseName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)

// Reserved says that a label or annotation key may not come from users.
func Reserved(key string) bool {
	return slices.ContainsFunc(reserved, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func (p *parser) at(path string) *yaml.Node {
	return p.positions[path]
}

// check finds what has the right type and is wrong all the same, before a cluster or the API does.
func (p *parser) check(file *File) {
	p.checkMetadata(file)
	p.checkOptions("", file.BundleDeploymentOptions)
	for i, target := range file.Targets {
		p.checkTarget(fmt.Sprintf("targets[%d]", i), target)
	}
	for i, target := range file.TargetCustomizations {
		p.checkTarget(fmt.Sprintf("targetCustomizations[%d]", i), target)
	}
	for i, target := range file.OverrideTargets {
		p.checkSelectors(fmt.Sprintf("overrideTargets[%d]", i), target)
	}
	if file.OverrideTargets != nil && len(file.OverrideTargets) == 0 {
		p.warn(p.at("overrideTargets"), "an empty overrideTargets overrides nothing; the GitRepo's targets apply")
		file.OverrideTargets = nil
	}
	switch file.TargetCustomizationMode {
	case "", fleet.FirstMatch, fleet.AllMatches:
	default:
		p.fail(p.at("targetCustomizationMode"), "targetCustomizationMode: want %s or %s, got %q",
			fleet.FirstMatch, fleet.AllMatches, file.TargetCustomizationMode)
	}
	p.checkDependencies(file.DependsOn)
	p.checkRollout(file.RolloutStrategy)
	p.checkScans(file)
}

func (p *parser) checkMetadata(file *File) {
	if file.Name != "" {
		// The name becomes a label's value on every deployment.
		problems := validation.IsDNS1123Subdomain(file.Name)
		if len(problems) == 0 {
			problems = validation.IsValidLabelValue(file.Name)
		}
		if len(problems) > 0 {
			p.fail(p.at("name"), "name: %q cannot name a Bundle: %s", file.Name, problems[0])
		}
	}
	labels := p.allowed("labels", file.Labels)
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			p.fail(p.at("labels."+key), "labels: the key %q is not valid: %s", key, problems[0])
		}
		if problems := validation.IsValidLabelValue(labels[key]); len(problems) > 0 {
			p.fail(p.at("labels."+key), "labels.%s: the value is not valid: %s", key, problems[0])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.allowed("annotations", file.Annotations))) {
		if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
			p.fail(p.at("annotations."+key), "annotations: the key %q is not valid: %s", key, problems[0])
		}
	}
}

// allowed removes reserved keys from the map, with a warning for each.
func (p *parser) allowed(field string, values map[string]string) map[string]string {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		if Reserved(key) {
			p.warn(p.at(field+"."+key), "%s: %q is reserved for the engine and left out", field, key)
			delete(values, key)
		}
	}
	return values
}

func (p *parser) checkTarget(path string, target fleet.BundleTarget) {
	p.checkSelectors(path, target.ClusterTarget)
	p.checkOptions(path, target.BundleDeploymentOptions)
}

func (p *parser) checkSelectors(path string, target fleet.ClusterTarget) {
	p.checkSelector(join(path, "clusterSelector"), target.ClusterSelector)
	p.checkSelector(join(path, "clusterGroupSelector"), target.ClusterGroupSelector)
}

func (p *parser) checkSelector(path string, selector *metav1.LabelSelector) {
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		p.fail(p.at(path), "%s: %v", path, err)
	}
}

func (p *parser) checkOptions(path string, options fleet.BundleDeploymentOptions) {
	p.checkNamespace(join(path, "namespace"), options.TargetNamespace)
	p.checkNamespace(join(path, "defaultNamespace"), options.DefaultNamespace)
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

func (p *parser) checkDependencies(refs []fleet.BundleRef) {
	for i, ref := range refs {
		path := fmt.Sprintf("dependsOn[%d]", i)
		if ref.Name == "" && ref.Selector == nil {
			p.fail(p.at(path), "%s: needs a name or a selector", path)
		}
		p.checkSelector(path+".selector", ref.Selector)
		for j, state := range ref.AcceptedStates {
			if state.Rank() == 0 {
				at := fmt.Sprintf("%s.acceptedStates[%d]", path, j)
				p.fail(p.at(at), "%s: %q is no state of a bundle; there are Ready, NotReady, Pending, OutOfSync, Modified, WaitApplied and ErrApplied", at, state)
			}
		}
	}
}

func (p *parser) checkRollout(strategy *fleet.RolloutStrategy) {
	if strategy == nil {
		return
	}
	p.checkAmount("rolloutStrategy.maxUnavailable", strategy.MaxUnavailable)
	p.checkAmount("rolloutStrategy.maxUnavailablePartitions", strategy.MaxUnavailablePartitions)
	p.checkAmount("rolloutStrategy.autoPartitionSize", strategy.AutoPartitionSize)
	for i, partition := range strategy.Partitions {
		path := fmt.Sprintf("rolloutStrategy.partitions[%d]", i)
		p.checkSelectors(path, partition.ClusterTarget)
		p.checkAmount(path+".maxUnavailable", partition.MaxUnavailable)
	}
}

func (p *parser) checkAmount(path string, value *intstr.IntOrString) {
	if value == nil {
		return
	}
	if amount, err := intstr.GetScaledValueFromIntOrPercent(value, 100, true); err != nil || amount < 0 {
		p.fail(p.at(path), "%s: want a number or a percentage such as 25%%, got %q", path, value.String())
	}
}

func (p *parser) checkScans(file *File) {
	for i, scan := range file.ImageScans {
		path := fmt.Sprintf("imageScans[%d]", i)
		if scan.TagName == "" {
			p.fail(p.at(path), "%s: needs a tagName", path)
		}
		if scan.Image == "" {
			p.warn(p.at(path), "%s has no image and is left out", path)
		}
	}
	file.ImageScans = slices.DeleteFunc(file.ImageScans, func(scan ImageScan) bool { return scan.Image == "" })
}
