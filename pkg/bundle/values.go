package bundle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/tree"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// rootValues is the key of the bundle's own values in their Secret.
const rootValues = "values.yaml"

// mergeValues reads the values files of the bundle and of each customization over its values.
func (b *builder) mergeValues() error {
	b.valuesFiles = map[string]bool{}
	if err := b.mergeInto(b.spec.Helm); err != nil {
		return err
	}
	seen := map[string]bool{}
	for i, target := range b.customizations() {
		if err := b.mergeInto(target.Helm); err != nil {
			return err
		}
		name := target.Name
		if name == "" || !hasValues(target.Helm) {
			continue
		}
		// The name is a key of the values' Secret.
		if problems := validation.IsConfigMapKey(name); len(problems) > 0 || name == rootValues {
			return fault.New(fault.Stalled, ReasonValuesFile, "%s: the customization %q (number %d) has Helm values, so its name may have letters, digits, dots, dashes and underscores only, and not be %s", b.specFile, name, i+1, rootValues)
		}
		if seen[name] {
			return fault.New(fault.Stalled, ReasonDuplicateName, "%s: two customizations with Helm values are named %q", b.specFile, name)
		}
		seen[name] = true
	}
	return nil
}

func (b *builder) mergeInto(helm *fleet.HelmOptions) error {
	if helm == nil || len(helm.ValuesFiles) == 0 {
		return nil
	}
	merged := map[string]any{}
	if helm.Values != nil && helm.Values.Data != nil {
		merged = helm.Values.Data
	}
	for _, name := range helm.ValuesFiles {
		values, err := b.readValues(name)
		if err != nil {
			return err
		}
		mergeMaps(merged, values)
	}
	helm.Values = &fleet.GenericMap{Data: merged}
	helm.ValuesFiles = nil
	return nil
}

func (b *builder) readValues(name string) (map[string]any, error) {
	full, err := tree.Clean(path.Join(b.Dir, name))
	if err != nil || path.IsAbs(name) {
		return nil, fault.New(fault.Stalled, ReasonValuesFile, "%s: the values file %s lies outside the repository", b.specFile, name)
	}
	data, err := b.tree.ReadFile(full)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.Stalled, ReasonValuesFile, "%s: the values file %s does not exist", b.specFile, full)
	}
	if err != nil {
		return nil, fmt.Errorf("read values file: %w", err)
	}
	values, err := parseValues(data)
	if err != nil {
		return nil, fault.New(fault.Stalled, ReasonValuesFile, "%s: %w", full, err)
	}
	b.valuesFiles[path.Clean(name)] = true
	return values, nil
}

// mergeMaps merges over into base: maps deeply, everything else replaces.
func mergeMaps(base, over map[string]any) {
	for key, value := range over {
		inner, isMap := value.(map[string]any)
		if below, both := base[key].(map[string]any); isMap && both {
			mergeMaps(below, inner)
			continue
		}
		base[key] = value
	}
}

func hasValues(helm *fleet.HelmOptions) bool {
	return helm != nil && helm.Values != nil && len(helm.Values.Data) > 0
}

// takeValues moves the Helm values out of the Bundle into the data of its Secret, by target name.
func takeValues(object *fleet.Bundle) (map[string][]byte, error) {
	data := map[string][]byte{}
	take := func(key string, helm *fleet.HelmOptions) error {
		if !hasValues(helm) {
			return nil
		}
		encoded, err := json.Marshal(helm.Values)
		if err != nil {
			return fmt.Errorf("encode the values of %s: %w", key, err)
		}
		data[key] = encoded
		helm.Values = nil
		return nil
	}
	if err := take(rootValues, object.Spec.Helm); err != nil {
		return nil, err
	}
	for i := range object.Spec.Targets {
		if err := take(object.Spec.Targets[i].Name, object.Spec.Targets[i].Helm); err != nil {
			return nil, err
		}
	}
	if len(data) == 0 {
		return nil, nil
	}
	hash, err := content.BundleValuesHash(data)
	object.Spec.ValuesHash = hash
	return data, err
}
