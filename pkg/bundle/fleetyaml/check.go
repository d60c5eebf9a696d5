package fleetyaml

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// reserved start label and annotation keys that only the engine and Rancher may set.
var reserved = []string{fleet.ReservedPrefix, "management.cattle.io/", "objectset.rio.cattle.io/"}

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
	p.checkLabels("labels", p.allowed("labels", file.Labels))
	p.checkAnnotations("annotations", p.allowed("annotations", file.Annotations))
}

func (p *parser) checkLabels(path string, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		at := join(path, key)
		if problems := validation.IsQualifiedName(key); len(problems) > 0 {
			p.fail(p.at(at), "%s: the key %q is not valid: %s", path, key, problems[0])
		}
		if problems := validation.IsValidLabelValue(labels[key]); len(problems) > 0 {
			p.fail(p.at(at), "%s: the value is not valid: %s", at, problems[0])
		}
	}
}

func (p *parser) checkAnnotations(path string, annotations map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(annotations)) {
		if problems := validation.IsQualifiedName(strings.ToLower(key)); len(problems) > 0 {
			p.fail(p.at(join(path, key)), "%s: the key %q is not valid: %s", path, key, problems[0])
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

func selectsNothing(target fleet.ClusterTarget) bool {
	return target.ClusterName == "" && target.ClusterGroup == "" && target.ClusterSelector == nil && target.ClusterGroupSelector == nil
}

func (p *parser) checkSelector(path string, selector *metav1.LabelSelector) {
	if _, err := metav1.LabelSelectorAsSelector(selector); err != nil {
		p.fail(p.at(path), "%s: %v", path, err)
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
