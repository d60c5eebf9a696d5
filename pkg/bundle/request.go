package bundle

import (
	"errors"
	"fmt"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/fleetyaml"
)

// Reasons of errors of this package.
const (
	ReasonNoBundles     = "NoBundles"
	ReasonDuplicateName = "DuplicateName"
	ReasonValuesFile    = "InvalidValuesFile"
	ReasonImageScans    = "ImageScansDisabled"
)

// Request says what to make of a tree. The zero value of everything but Name and Namespace is fine.
type Request struct {
	// Name and Namespace of the owner, a GitRepo.
	Name, Namespace string
	// Labels of every Bundle; they come from the owner and may be reserved ones.
	Labels map[string]string
	// Commit is put on every Bundle as a label.
	Commit string

	// Paths are folders or patterns to search; empty means the whole tree.
	Paths []string
	// Bundles are the folders that are bundles; when there are any, Paths is not searched.
	Bundles []fleet.BundlePath

	// NameByFolder leaves the file of options of Bundles out of the derived names, as one file for all is.
	NameByFolder bool

	// Targets the bundles may reach; empty means the cluster group "default".
	Targets []fleet.ClusterTarget
	// Unrestricted leaves the targets to each fleet.yaml; Targets is not used.
	Unrestricted bool

	// These replace what fleet.yaml says unless they are empty; ForceSyncGeneration always does.
	TargetNamespace     string
	ServiceAccount      string
	ForceSyncGeneration int64
	// CorrectDrift counts only when it is enabled.
	CorrectDrift *fleet.CorrectDrift
	Validate     *bool
	Merge        *fleet.MergeOptions
	// These can only be switched on.
	Paused, KeepResources, DeleteNamespace bool

	// Compress stores every file compressed, however small the bundle.
	Compress bool
	// InlineValues leaves Helm values in the Bundle instead of a Secret's data.
	InlineValues bool
	// ImageScans accepts imageScans in fleet.yaml.
	ImageScans bool
}

// RequestFor returns the request for a GitRepo at a commit.
func RequestFor(repo *fleet.GitRepo, commit string) Request {
	spec := repo.Spec
	return Request{
		Name:                repo.Name,
		Namespace:           repo.Namespace,
		Labels:              repo.Labels,
		Commit:              commit,
		Paths:               spec.Paths,
		Bundles:             spec.Bundles,
		Targets:             spec.Targets,
		TargetNamespace:     spec.TargetNamespace,
		ServiceAccount:      spec.ServiceAccount,
		ForceSyncGeneration: spec.ForceSyncGeneration,
		CorrectDrift:        spec.CorrectDrift,
		Validate:            spec.Validate,
		Merge:               spec.Merge,
		Paused:              spec.Paused,
		KeepResources:       spec.KeepResources,
		DeleteNamespace:     spec.DeleteNamespace,
	}
}

// Warning is something an author should know that stops nothing.
type Warning = fleetyaml.Warning

// Result is what a tree gave.
type Result struct {
	// Bundles sorted by name.
	Bundles []Bundle
	// Failed are the folders that should have been bundles.
	Failed []Failure
	// UnmatchedPaths are the entries of Request.Paths or Request.Bundles that gave no bundle.
	UnmatchedPaths []string
	// Warnings in the order of the folders.
	Warnings []Warning
}

// Bundle is one bundle and what belongs beside it.
type Bundle struct {
	Object *fleet.Bundle
	// Values is the data of the Secret that holds the Helm values: values.yaml and a key for each target
	// that has some. It is nil when there are none or they are inline.
	Values map[string][]byte
	// ImageScans of this bundle.
	ImageScans []*fleet.ImageScan
	// Dir is the bundle's folder, and File its fleet.yaml or "".
	Dir, File string
}

// Failure is a bundle that could not be made.
type Failure struct {
	Dir string
	// BundleName is the name by the folder, when fleet.yaml could not say otherwise.
	BundleName string
	Err        error
}

// Complete says that every path was read and every bundle made, so what is missing is really gone.
func (r *Result) Complete() bool {
	return len(r.Failed) == 0 && len(r.UnmatchedPaths) == 0
}

// Err joins the failures, each with its folder; nil when there are none.
func (r *Result) Err() error {
	var all []error
	for _, failure := range r.Failed {
		all = append(all, fmt.Errorf("bundle %s in %s: %w", failure.BundleName, failure.Dir, failure.Err))
	}
	return errors.Join(all...)
}
