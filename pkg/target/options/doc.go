// Package options merges deployment options: a bundle's own with those of the targets that apply to a
// cluster. The result decides the deployment id, so the rules are upstream's wherever upstream's have an
// effect. Fields that upstream drops from customizations (ignore, deleteNamespace, deleteCRDResources,
// createNamespace, helm.maxHistory, helm.skipSchemaValidation) are merged here; namespace labels and
// annotations come only from the targets that apply.
//
// What has done its work when the bundle was made (helm.valuesFiles, helm.disableDependencyUpdate) is
// not merged. The word "-" has no special meaning.
//
// Start reading with Resolve.
package options
