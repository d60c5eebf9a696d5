package options

import (
	"cmp"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Resolve returns the bundle's options with the layers merged over them. The layers are first merged with
// each other, first to last. Nothing is shared with the arguments.
func Resolve(root fleet.BundleDeploymentOptions, layers ...fleet.BundleDeploymentOptions) fleet.BundleDeploymentOptions {
	if len(layers) == 0 {
		return *root.DeepCopy()
	}
	combined := *layers[0].DeepCopy()
	for i := range layers[1:] {
		combined = Merge(combined, layers[i+1])
	}
	resolved := Merge(root, combined)
	// A negative timeout in a layer means: do not wait, whatever the bundle says.
	if combined.Helm != nil && combined.Helm.TimeoutSeconds < 0 {
		resolved.Helm.TimeoutSeconds = 0
	}
	return resolved
}

// Merge returns base with custom over it. Nothing is shared with the arguments. A negative
// helm.timeoutSeconds is kept, so that it still counts in the next merge.
func Merge(base, custom fleet.BundleDeploymentOptions) fleet.BundleDeploymentOptions {
	result := *base.DeepCopy()
	custom = *custom.DeepCopy()
	override(&result.DefaultNamespace, custom.DefaultNamespace)
	override(&result.TargetNamespace, custom.TargetNamespace)
	override(&result.ServiceAccount, custom.ServiceAccount)
	if custom.ForceSyncGeneration > 0 {
		result.ForceSyncGeneration = custom.ForceSyncGeneration
	}
	result.KeepResources = result.KeepResources || custom.KeepResources
	result.DeleteNamespace = result.DeleteNamespace || custom.DeleteNamespace
	result.DeleteCRDResources = result.DeleteCRDResources || custom.DeleteCRDResources
	if custom.CorrectDrift != nil {
		result.CorrectDrift = custom.CorrectDrift
	}
	if custom.CreateNamespace != nil {
		result.CreateNamespace = custom.CreateNamespace
	}
	result.NamespaceLabels = mergeStrings(result.NamespaceLabels, custom.NamespaceLabels)
	result.NamespaceAnnotations = mergeStrings(result.NamespaceAnnotations, custom.NamespaceAnnotations)
	mergeSources(&result, &custom)
	mergeExceptions(&result, &custom)
	mergeApply(&result, &custom)
	mergeHelm(&result, custom.Helm)
	return result
}

// mergeSources merges what says which files and objects are deployed, apart from Helm's part.
func mergeSources(result, custom *fleet.BundleDeploymentOptions) {
	if custom.Kustomize != nil {
		if result.Kustomize == nil {
			result.Kustomize = &fleet.KustomizeOptions{}
		}
		override(&result.Kustomize.Dir, custom.Kustomize.Dir)
	}
	if custom.YAML != nil {
		if result.YAML == nil {
			result.YAML = &fleet.YAMLOptions{}
		}
		result.YAML.Overlays = append(result.YAML.Overlays, custom.YAML.Overlays...)
	}
	result.DownstreamResources = mergeBy(result.DownstreamResources, custom.DownstreamResources,
		func(r fleet.DownstreamResource) fleet.DownstreamResource { return r })
	result.Overwrites = mergeBy(result.Overwrites, custom.Overwrites,
		func(r fleet.OverwrittenResource) fleet.OverwrittenResource { return r })
}

// mergeExceptions merges what is left out of comparisons and readiness.
func mergeExceptions(result, custom *fleet.BundleDeploymentOptions) {
	if custom.Diff != nil {
		if result.Diff == nil {
			result.Diff = &fleet.DiffOptions{}
		}
		type object struct{ apiVersion, kind, namespace, name string }
		result.Diff.ComparePatches = mergeBy(result.Diff.ComparePatches, custom.Diff.ComparePatches,
			func(p fleet.ComparePatch) object { return object{p.APIVersion, p.Kind, p.Namespace, p.Name} })
	}
	if custom.IgnoreOptions != nil {
		if result.IgnoreOptions == nil {
			result.IgnoreOptions = &fleet.IgnoreOptions{}
		}
		result.IgnoreOptions.Conditions = append(result.IgnoreOptions.Conditions, custom.IgnoreOptions.Conditions...)
	}
}

// mergeApply merges how objects are written, field by field. Configurations of a customization follow those
// of the bundle, so they decide.
func mergeApply(result, custom *fleet.BundleDeploymentOptions) {
	result.Apply = Apply(result.Apply, custom.Apply)
	result.ManifestConfigs = append(result.ManifestConfigs, custom.ManifestConfigs...)
}

// ApplyFor returns how an object is written: what the options say for all, with what the configurations that
// select the object say over it; nil when nobody says anything.
func ApplyFor(options fleet.BundleDeploymentOptions, apiVersion, kind, namespace, name string) *fleet.ApplyOptions {
	result := options.Apply.DeepCopy()
	for _, config := range options.ManifestConfigs {
		if config.Resource.Selects(apiVersion, kind, namespace, name) {
			result = Apply(result, config.Apply)
		}
	}
	return result
}

// Apply returns base with custom over it, nil when both are. Fields to ignore add up.
func Apply(base, custom *fleet.ApplyOptions) *fleet.ApplyOptions {
	if base == nil || custom == nil {
		return cmp.Or(custom, base).DeepCopy()
	}
	result, custom := base.DeepCopy(), custom.DeepCopy()
	result.Strategy = cmp.Or(custom.Strategy, result.Strategy)
	result.Force = cmp.Or(custom.Force, result.Force)
	result.IgnoreFields = append(result.IgnoreFields, custom.IgnoreFields...)
	return result
}

func mergeHelm(options *fleet.BundleDeploymentOptions, custom *fleet.HelmOptions) {
	if custom == nil {
		return
	}
	if options.Helm == nil {
		options.Helm = &fleet.HelmOptions{}
	}
	result := options.Helm
	override(&result.Chart, custom.Chart)
	override(&result.Repo, custom.Repo)
	override(&result.Version, custom.Version)
	override(&result.ReleaseName, custom.ReleaseName)
	if custom.TimeoutSeconds != 0 {
		result.TimeoutSeconds = custom.TimeoutSeconds
	}
	if custom.MaxHistory > 0 {
		result.MaxHistory = custom.MaxHistory
	}
	for _, flag := range []struct {
		to   *bool
		from bool
	}{
		{&result.Force, custom.Force},
		{&result.Atomic, custom.Atomic},
		{&result.TakeOwnership, custom.TakeOwnership},
		{&result.DisablePreProcess, custom.DisablePreProcess},
		{&result.WaitForJobs, custom.WaitForJobs},
		{&result.DisableDNS, custom.DisableDNS},
		{&result.SkipSchemaValidation, custom.SkipSchemaValidation},
	} {
		*flag.to = *flag.to || flag.from
	}
	result.TemplateValues = mergeStrings(result.TemplateValues, custom.TemplateValues)
	result.ValuesFrom = mergeBy(result.ValuesFrom, custom.ValuesFrom, sourceOf)
	if custom.Values == nil {
		return
	}
	if result.Values == nil {
		result.Values = &fleet.GenericMap{}
	}
	result.Values.Data = MergeValues(result.Values.Data, custom.Values.Data)
}

// source is what makes two entries of valuesFrom the same.
type source struct {
	configMap, secret                               bool
	configMapNamespace, configMapName, configMapKey string
	secretNamespace, secretName, secretKey          string
}

func sourceOf(entry fleet.ValuesFrom) source {
	var s source
	if ref := entry.ConfigMapKeyRef; ref != nil {
		s.configMap, s.configMapNamespace, s.configMapName, s.configMapKey = true, ref.Namespace, ref.Name, ref.Key
	}
	if ref := entry.SecretKeyRef; ref != nil {
		s.secret, s.secretNamespace, s.secretName, s.secretKey = true, ref.Namespace, ref.Name, ref.Key
	}
	return s
}

// MergeValues puts the values of over into base and returns it: maps are merged key by key, everything
// else, lists and null too, is replaced. base is changed; over is not, but its parts are shared.
func MergeValues(base, over map[string]any) map[string]any {
	if base == nil {
		base = make(map[string]any, len(over))
	}
	for key, value := range over {
		below, isMap := value.(map[string]any)
		present, wasMap := base[key].(map[string]any)
		if isMap && wasMap {
			base[key] = MergeValues(present, below)
			continue
		}
		base[key] = value
	}
	return base
}

func override(to *string, from string) {
	if from != "" {
		*to = from
	}
}

func mergeStrings(base, over map[string]string) map[string]string {
	if base == nil && len(over) > 0 {
		base = make(map[string]string, len(over))
	}
	for key, value := range over {
		base[key] = value
	}
	return base
}

// mergeBy replaces entries of base by entries of over with the same key, and appends the others.
func mergeBy[T any, K comparable](base, over []T, key func(T) K) []T {
	at := make(map[K]int, len(base))
	for i, entry := range base {
		at[key(entry)] = i
	}
	for _, entry := range over {
		if i, present := at[key(entry)]; present {
			base[i] = entry
			continue
		}
		at[key(entry)] = len(base)
		base = append(base, entry)
	}
	return base
}
