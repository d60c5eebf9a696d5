package tally

import (
	"strings"
	"unique"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Bounds of what is kept of a deployment that is not ready.
const (
	// MaxRecordText bounds a message, in bytes of JSON.
	MaxRecordText  = 512
	maxDetails     = 5
	maxDetailText  = 160
	maxDetailsText = 1024
)

// Ref names an object.
type Ref struct {
	Namespace string
	Name      string
}

// String returns "namespace/name".
func (r Ref) String() string { return r.Namespace + "/" + r.Name }

// Record is what the roll-up keeps of a deployment: for a ready one about 300 bytes, for any other less
// than 2 KiB. Texts that many deployments share are held once.
type Record struct {
	Bundle  Ref
	Cluster Ref
	// Repo and HelmOp name the owner in the bundle's namespace; at most one is set.
	Repo   string
	HelmOp string

	State  fleet.BundleState
	Counts fleet.ResourceCounts
	// Message explains the state; empty for a ready deployment.
	Message string
	// Resources is the list of applied objects, encoded.
	resources unique.Handle[string]
	// details are objects that are modified or not ready; more of them may exist when incomplete.
	details    *details
	incomplete bool
}

// details are objects of a deployment that are not as they should be.
type details struct {
	modified []fleet.ModifiedStatus
	nonReady []fleet.NonReadyStatus
}

// Trim returns the record of a deployment. It shares nothing with the object.
func Trim(bd *fleet.BundleDeployment) Record {
	labels := bd.Labels
	record := Record{
		Bundle:  Ref{intern(labels[fleet.BundleNamespaceLabel]), intern(labels[fleet.BundleLabel])},
		Cluster: Ref{intern(labels[fleet.ClusterNamespaceLabel]), intern(labels[fleet.ClusterLabel])},
		Repo:    intern(labels[fleet.RepoLabel]),
		HelmOp:  intern(labels[fleet.HelmOpLabel]),
		State:   status.Of(bd),
		Counts:  boundCounts(bd.Status.ResourceCounts),
	}
	listed := bd.Status.Resources[:fitting(bd.Status.Resources)]
	record.resources = unique.Make(encode(listed))
	record.incomplete = bd.Status.IncompleteState || len(listed) < len(bd.Status.Resources)
	if record.State != fleet.Ready {
		record.Message = intern(status.Cut(status.MessageOf(bd), MaxRecordText))
		record.trimDetails(&bd.Status)
	}
	return record
}

func (r *Record) trimDetails(reported *fleet.BundleDeploymentStatus) {
	if len(reported.ModifiedStatus)+len(reported.NonReadyStatus) == 0 {
		return
	}
	r.details = &details{}
	budget := maxDetailsText
	for _, object := range reported.ModifiedStatus {
		if len(r.details.modified) == maxDetails || budget <= 0 {
			r.incomplete = true
			break
		}
		boundObject(&object.Kind, &object.APIVersion, &object.Namespace, &object.Name)
		kept := fleet.ModifiedStatus{
			Kind: intern(object.Kind), APIVersion: intern(object.APIVersion),
			Namespace: intern(object.Namespace), Name: intern(object.Name),
			Create: object.Create, Exist: object.Exist, Delete: object.Delete,
			Patch: intern(status.Cut(object.Patch, maxDetailText)),
		}
		budget -= len(kept.Patch) + len(kept.Name)
		r.details.modified = append(r.details.modified, kept)
	}
	for _, object := range reported.NonReadyStatus {
		if len(r.details.nonReady) == maxDetails || budget <= 0 {
			r.incomplete = true
			break
		}
		boundObject(&object.Kind, &object.APIVersion, &object.Namespace, &object.Name)
		kept := fleet.NonReadyStatus{
			UID: strings.Clone(status.Cut(object.UID, maxName)), Kind: intern(object.Kind), APIVersion: intern(object.APIVersion),
			Namespace: intern(object.Namespace), Name: intern(object.Name),
			Summary: fleet.ObjectSummary{
				State: intern(status.Cut(object.Summary.State, maxDetailText)), Error: object.Summary.Error, Transitioning: object.Summary.Transitioning,
			},
		}
		messages := object.Summary.Message[:min(len(object.Summary.Message), maxListed)]
		if text := status.Cut(strings.Join(messages, ", "), maxDetailText); text != "" {
			kept.Summary.Message = []string{intern(text)}
			budget -= len(text)
		}
		budget -= len(kept.Name)
		r.details.nonReady = append(r.details.nonReady, kept)
	}
}

// Modified are the objects that differ from what was applied, capped.
func (r *Record) Modified() []fleet.ModifiedStatus {
	if r.details == nil {
		return nil
	}
	return r.details.modified
}

// NonReady are the objects that are not ready, capped.
func (r *Record) NonReady() []fleet.NonReadyStatus {
	if r.details == nil {
		return nil
	}
	return r.details.nonReady
}

// equal says that two records count and show the same.
func (r *Record) equal(other *Record) bool {
	if r.Bundle != other.Bundle || r.Cluster != other.Cluster || r.Repo != other.Repo || r.HelmOp != other.HelmOp {
		return false
	}
	return r.State == other.State && r.Counts == other.Counts && r.Message == other.Message &&
		r.resources == other.resources && r.incomplete == other.incomplete && r.details.equal(other.details)
}

func (d *details) equal(other *details) bool {
	if d == nil || other == nil {
		return d == other
	}
	if len(d.modified) != len(other.modified) || len(d.nonReady) != len(other.nonReady) {
		return false
	}
	for i := range d.modified {
		if d.modified[i] != other.modified[i] {
			return false
		}
	}
	for i := range d.nonReady {
		if !equalNonReady(&d.nonReady[i], &other.nonReady[i]) {
			return false
		}
	}
	return true
}

// detailOverhead is what the JSON of an object takes beside its texts.
const detailOverhead = 160

// size is what the objects take in a status.
func (d *details) size() int {
	if d == nil {
		return 0
	}
	size := 0
	for i := range d.modified {
		m := &d.modified[i]
		size += detailOverhead + status.Cost(m.Kind) + status.Cost(m.APIVersion) + status.Cost(m.Namespace) + status.Cost(m.Name) + status.Cost(m.Patch)
	}
	for i := range d.nonReady {
		n := &d.nonReady[i]
		size += detailOverhead + status.Cost(n.UID) + status.Cost(n.Kind) + status.Cost(n.APIVersion) + status.Cost(n.Namespace) + status.Cost(n.Name) + status.Cost(n.Summary.State)
		for _, text := range n.Summary.Message {
			size += status.Cost(text)
		}
	}
	return size
}

func equalNonReady(a, b *fleet.NonReadyStatus) bool {
	if a.UID != b.UID || a.Kind != b.Kind || a.APIVersion != b.APIVersion || a.Namespace != b.Namespace || a.Name != b.Name {
		return false
	}
	if a.Summary.State != b.Summary.State || a.Summary.Error != b.Summary.Error || a.Summary.Transitioning != b.Summary.Transitioning {
		return false
	}
	return strings.Join(a.Summary.Message, "\n") == strings.Join(b.Summary.Message, "\n")
}

// intern returns a copy of a text that is shared by all equal texts.
func intern(text string) string {
	if text == "" {
		return ""
	}
	return unique.Make(strings.Clone(text)).Value()
}

// objectKey names an object on a member.
type objectKey struct{ apiVersion, kind, namespace, name string }

const (
	fieldEnd  = "\x1f"
	objectEnd = "\x1e"
)

// encode writes a list of objects as one text, which all deployments with the same objects share.
func encode(resources []fleet.BundleDeploymentResource) string {
	var text strings.Builder
	for i := range resources {
		resource := &resources[i]
		kind, apiVersion, namespace, name := resource.Kind, resource.APIVersion, resource.Namespace, resource.Name
		boundObject(&kind, &apiVersion, &namespace, &name)
		for _, field := range []string{apiVersion, kind, namespace, name} {
			text.WriteString(field)
			text.WriteString(fieldEnd)
		}
		text.WriteString(objectEnd)
	}
	return text.String()
}

func decode(text string) []objectKey {
	var keys []objectKey
	for object := range strings.SplitSeq(text, objectEnd) {
		fields := strings.Split(object, fieldEnd)
		if len(fields) < 4 || fields[1] == "" {
			continue
		}
		keys = append(keys, objectKey{fields[0], fields[1], fields[2], fields[3]})
	}
	return keys
}
