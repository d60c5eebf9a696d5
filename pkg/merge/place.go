package merge

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// Protocol is the first version of the protocol between agent and hub whose agents understand parts.
const Protocol = 2

// Bounds of a merged object.
const (
	// DefaultMaxBytes of the parts in one object.
	DefaultMaxBytes = 128 << 10
	// MaxParts in one object: what an agent reports of each is bounded by its share.
	MaxParts = 24
	// statuses is what all reports in one object may take, and leastStatus what one may always.
	statuses    = 60 << 10
	leastStatus = 2 << 10
)

// Place is where deployments are merged: the group of those that one object may carry.
type Place struct {
	// Workspace and Repo name the repository.
	Workspace, Repo string
	// Shard is the reference of the shard that writes them, or empty.
	Shard string
	// MaxBytes of the parts in one object.
	MaxBytes int
}

// PlaceOf returns where the deployments of a bundle are merged; ok is false when they are not, and the reason
// says why if they should be.
func PlaceOf(bundle *fleet.Bundle) (place Place, ok bool, reason string) {
	wanted := bundle.Spec.Merge
	if wanted == nil || wanted.Mode != fleet.MergePerRepo {
		return Place{}, false, ""
	}
	switch {
	case bundle.Spec.HelmOpOptions != nil:
		return Place{}, false, "a HelmOp's chart is delivered alone"
	case content.InRegistry(&bundle.Spec):
		return Place{}, false, "its files are in a registry"
	case bundle.Labels[fleet.RepoLabel] == "":
		return Place{}, false, "it belongs to no GitRepo (label " + fleet.RepoLabel + ")"
	}
	place = Place{
		Workspace: bundle.Namespace, Repo: bundle.Labels[fleet.RepoLabel], Shard: bundle.Labels[fleet.ShardLabel],
		MaxBytes: DefaultMaxBytes,
	}
	if wanted.MaxBytes > 0 {
		place.MaxBytes = wanted.MaxBytes
	}
	return place, true, ""
}

// Name returns the name of the nth object of a place, from 0 on.
func (p Place) Name(n int) string {
	name := names.Limit(p.Repo, 40) + "-merged-" + names.Hex(p.Workspace+"/"+p.Repo+"/"+p.Shard, 8)
	if n > 0 {
		name += "-" + strconv.Itoa(n)
	}
	return name
}

// Has says that an object of that name is one of the place's.
func (p Place) Has(name string) bool {
	return name == p.Name(0) || strings.HasPrefix(name, p.Name(0)+"-")
}

// Labels returns the labels of a merged object, without the marks of its parts. It is for the cluster that a
// deployment is for.
func (p Place) Labels(deployment *fleet.BundleDeployment) map[string]string {
	labels := map[string]string{
		fleet.MergedLabel:           p.Repo,
		fleet.RepoLabel:             p.Repo,
		fleet.BundleNamespaceLabel:  p.Workspace,
		fleet.ClusterLabel:          deployment.Labels[fleet.ClusterLabel],
		fleet.ClusterNamespaceLabel: deployment.Labels[fleet.ClusterNamespaceLabel],
		fleet.ManagedLabel:          "true",
	}
	if p.Shard != "" {
		labels[fleet.ShardLabel] = p.Shard
	}
	return labels
}

// Prefixes of the labels by which lists find merged objects.
const (
	bundlePrefix  = "bundle.merge.fleet.cattle.io/"
	contentPrefix = "content.merge.fleet.cattle.io/"
)

// BundleMark is the label of a merged object that carries a deployment of a bundle.
func BundleMark(namespace, name string) string {
	return bundlePrefix + names.Hex(namespace+"/"+name, 16)
}

// ContentMark is the label of a merged object that carries a deployment which refers to a Content.
func ContentMark(id string) string { return contentPrefix + names.Hex(id, 16) }

// Marks returns the labels that a part adds to its object.
func Marks(part fleet.DeploymentPart) []string {
	if part.Labels[fleet.BundleLabel] == "" {
		return nil
	}
	marks := []string{BundleMark(part.Labels[fleet.BundleNamespaceLabel], part.Labels[fleet.BundleLabel])}
	if id := part.Labels[fleet.ContentLabel]; id != "" {
		marks = append(marks, ContentMark(id))
	}
	for _, id := range []string{part.Spec.DeploymentID, part.Spec.StagedDeploymentID} {
		if id, _, _ = strings.Cut(id, ":"); id != "" {
			marks = append(marks, ContentMark(id))
		}
	}
	return marks
}

// StaleMarks returns the marks of an object that none of its parts needs.
func StaleMarks(object *fleet.BundleDeployment) []string {
	needed := map[string]bool{}
	for _, part := range object.Spec.Parts {
		for _, mark := range Marks(part) {
			needed[mark] = true
		}
	}
	var stale []string
	for label := range object.Labels {
		if (strings.HasPrefix(label, bundlePrefix) || strings.HasPrefix(label, contentPrefix)) && !needed[label] {
			stale = append(stale, label)
		}
	}
	return stale
}

// Size returns how many bytes a part takes in its object.
func Size(part fleet.DeploymentPart) (int, error) {
	text, err := json.Marshal(part)
	if err != nil {
		return 0, fmt.Errorf("measure a part: %w", err)
	}
	return len(text), nil
}

// Load is how full an object is.
type Load struct{ Bytes, Parts int }

// LoadOf returns how full an object is.
func LoadOf(object *fleet.BundleDeployment) (Load, error) {
	load := Load{Parts: len(object.Spec.Parts)}
	for _, part := range object.Spec.Parts {
		size, err := Size(part)
		if err != nil {
			return load, err
		}
		load.Bytes += size
	}
	return load, nil
}

// Fits says whether a part of a size has room beside what is there.
func (l Load) Fits(size, maxBytes int) bool {
	return l.Parts < MaxParts && (l.Parts == 0 || l.Bytes+size <= maxBytes)
}

// Add returns the load with one more part.
func (l Load) Add(size int) Load { return Load{Bytes: l.Bytes + size, Parts: l.Parts + 1} }

// StatusBudget is how many bytes the report of a deployment may take; 0 when it has an object of its own.
func StatusBudget(deployment *fleet.BundleDeployment) int {
	most := 0
	for _, carrier := range Carriers(deployment) {
		most = max(most, carrier.Parts)
	}
	if most == 0 {
		return 0
	}
	return max(leastStatus, statuses/most)
}
