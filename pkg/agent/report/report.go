package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// maxListed bounds the lists of objects that are not ready or differ.
const maxListed = 10

// Sight is one object of a release as it is seen on the member.
type Sight struct {
	Desired *unstructured.Unstructured
	// Live is nil when the object is not there.
	Live    *unstructured.Unstructured
	Verdict diff.Verdict
	Summary fleet.ObjectSummary
	Ready   bool
}

// Facts are everything a status is made of.
type Facts struct {
	// Known says whether it could be found out what is installed; if not, that part stays as it was.
	Known bool
	// Release is "namespace/name:revision"; "" means that nothing is installed.
	Release string
	// Applied says that the objects are those of the deployment's id.
	Applied bool
	// Failure of the last attempt to deploy what is wanted, nil if there was none.
	Failure error
	// Unseen says why nothing could be seen on the member.
	Unseen error
	// Correction is why drift could not be corrected.
	Correction error
	// Kept tells of objects that the release has dropped and that stay for others.
	Kept    []string
	Objects []Sight
}

// Status returns the status that a deployment should have. Times of conditions move only with their
// content.
func Status(deployment *fleet.BundleDeployment, facts Facts, now time.Time) *fleet.BundleDeploymentStatus {
	wanted := deployment.Status.DeepCopy()
	if facts.Known {
		setApplied(wanted, deployment.Spec, facts)
	}
	if facts.Unseen == nil {
		setObjects(wanted, facts.Objects)
	}
	current := &fleet.BundleDeployment{ObjectMeta: deployment.ObjectMeta, Spec: deployment.Spec, Status: *wanted}
	acknowledge(current, deployment.Status.AppliedDeploymentID, facts)
	setDeployed(current, facts, now)
	if current.Status.AppliedDeploymentID != deployment.Status.AppliedDeploymentID {
		// It may be as fine as it was: since when tells how long what is wanted now has been.
		status.Touch(current.Status.Conditions, fleet.ConditionDeployed, now)
	}
	setMonitored(current, facts, now)
	setReady(current, facts, now)
	setFacts(current, facts, now)
	current.Status.Display = status.Display(current)
	bound(&current.Status, deployment.Status.Conditions, merge.StatusBudget(deployment))
	return &current.Status
}

// acknowledge says which id the report is about, from the first change or failure on: a report without
// either is written only when there is something to tell.
func acknowledge(current *fleet.BundleDeployment, appliedBefore string, facts Facts) {
	tried := facts.Failure != nil && fault.ClassOf(facts.Failure) != fault.Waiting
	moved := current.Status.AppliedDeploymentID != appliedBefore
	if (tried || facts.Applied) && (tried || moved || current.Status.AckedDeploymentID != "") {
		current.Status.AckedDeploymentID = current.Spec.DeploymentID
	}
}

// Patch returns the merge patch from one status to another, nil when they are equal.
func Patch(from, to *fleet.BundleDeploymentStatus) ([]byte, error) {
	type withStatus struct {
		Status *fleet.BundleDeploymentStatus `json:"status"`
	}
	before, err := json.Marshal(withStatus{from})
	if err != nil {
		return nil, err
	}
	after, err := json.Marshal(withStatus{to})
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.CreateMergePatch(before, after)
	if err != nil || string(patch) == "{}" {
		return nil, err
	}
	return patch, nil
}

// setApplied says which id the objects belong to; it moves only when all of it was done.
func setApplied(wanted *fleet.BundleDeploymentStatus, spec fleet.BundleDeploymentSpec, facts Facts) {
	wanted.Release = facts.Release
	switch {
	case facts.Release == "":
		wanted.AppliedDeploymentID = ""
	case facts.Applied:
		wanted.AppliedDeploymentID = spec.DeploymentID
		generation := spec.Options.ForceSyncGeneration
		wanted.SyncGeneration = &generation
		wanted.DownstreamResourcesGeneration = spec.DownstreamResourcesGeneration
	}
}

func setObjects(wanted *fleet.BundleDeploymentStatus, objects []Sight) {
	wanted.Resources = nil
	wanted.ResourceCounts = fleet.ResourceCounts{DesiredReady: len(objects)}
	wanted.NonReadyStatus, wanted.ModifiedStatus, wanted.ComparePatches, wanted.IncompleteState = nil, nil, nil, false
	for _, object := range objects {
		wanted.Resources = append(wanted.Resources, object.resource())
		count(&wanted.ResourceCounts, object)
		if modified, differs := object.Verdict.Status(object.Desired); differs {
			wanted.ModifiedStatus = append(wanted.ModifiedStatus, modified)
		}
		if entry := object.Verdict.Offer(object.Desired); entry != nil {
			wanted.ComparePatches = append(wanted.ComparePatches, *entry)
		}
		if object.Live != nil && !object.Ready {
			wanted.NonReadyStatus = append(wanted.NonReadyStatus, fleet.NonReadyStatus{
				UID: string(object.Live.GetUID()), Kind: object.Desired.GetKind(), APIVersion: object.Desired.GetAPIVersion(),
				Namespace: object.Desired.GetNamespace(), Name: object.Desired.GetName(), Summary: object.Summary,
			})
		}
	}
	slices.SortFunc(wanted.Resources, func(a, b fleet.BundleDeploymentResource) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(wanted.ModifiedStatus, func(a, b fleet.ModifiedStatus) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(wanted.ComparePatches, func(a, b fleet.ComparePatch) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(wanted.NonReadyStatus, worstFirst)
	if len(wanted.ModifiedStatus) > maxListed || len(wanted.NonReadyStatus) > maxListed {
		wanted.IncompleteState = true
		wanted.ModifiedStatus = wanted.ModifiedStatus[:min(len(wanted.ModifiedStatus), maxListed)]
		wanted.ComparePatches = wanted.ComparePatches[:min(len(wanted.ComparePatches), maxListed)]
		wanted.NonReadyStatus = wanted.NonReadyStatus[:min(len(wanted.NonReadyStatus), maxListed)]
	}
	counts := wanted.ResourceCounts
	wanted.Ready = counts.Missing == 0 && counts.NotReady == 0 && counts.Unknown == 0
	wanted.NonModified = len(wanted.ModifiedStatus) == 0 && counts.Unknown == 0
}

// worstFirst orders objects by how badly they do, and then by name.
func worstFirst(a, b fleet.NonReadyStatus) int {
	return cmp.Or(Worse(a.Summary, b.Summary), cmp.Compare(a.APIVersion, b.APIVersion),
		cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Worse compares how two objects do that are not ready; what is worse comes first.
func Worse(a, b fleet.ObjectSummary) int { return cmp.Compare(rank(a), rank(b)) }

// rank puts what has failed before what stands still, and that before what is under way.
func rank(summary fleet.ObjectSummary) int {
	switch {
	case summary.Error:
		return 0
	case !summary.Transitioning:
		return 1
	}
	return 2
}

// count puts an object under the worst that is known of it.
func count(counts *fleet.ResourceCounts, object Sight) {
	switch {
	case object.Verdict.State == diff.Missing:
		counts.Missing++
	case object.Verdict.State == diff.Unknown:
		counts.Unknown++
	case !object.Ready:
		counts.NotReady++
	case object.Verdict.State == diff.Modified || object.Verdict.State == diff.Foreign:
		counts.Modified++
	default:
		counts.Ready++
	}
}

// setDeployed says whether what is wanted is installed. Waiting is neither yes nor no.
func setDeployed(deployment *fleet.BundleDeployment, facts Facts, now time.Time) {
	conditions := &deployment.Status.Conditions
	failed := cmp.Or(facts.Failure, facts.Unseen)
	deployed := fleet.Condition{Type: fleet.ConditionDeployed, Status: corev1.ConditionTrue}
	installed := fleet.Condition{Type: fleet.ConditionInstalled, Status: corev1.ConditionTrue}
	switch {
	case failed != nil && fault.ClassOf(failed) == fault.Waiting:
		deployed.Status, deployed.Reason, deployed.Message = corev1.ConditionUnknown, fault.ReasonOf(failed), failed.Error()
	case failed != nil:
		deployed.Status, deployed.Reason, deployed.Message = corev1.ConditionFalse, fleet.ReasonError, failed.Error()
	case deployment.Status.AppliedDeploymentID != deployment.Spec.DeploymentID:
		deployed.Status, deployed.Message = corev1.ConditionUnknown, "not deployed yet"
	default:
		deployed.Message = keeps(facts.Kept)
	}
	if facts.Known && facts.Release == "" {
		installed.Status, installed.Reason, installed.Message = deployed.Status, deployed.Reason, deployed.Message
		if installed.Status == corev1.ConditionTrue {
			installed.Status, installed.Message = corev1.ConditionUnknown, "not installed yet"
		}
	}
	status.Set(conditions, deployed, now)
	status.Set(conditions, installed, now)
}

// keeps words what stays for others; it is no fault.
func keeps(kept []string) string {
	if more := len(kept) - maxTexts; more > 0 {
		kept = append(slices.Clone(kept[:maxTexts]), fmt.Sprintf("%d more", more))
	}
	return strings.Join(kept, "; ")
}

// setMonitored says whether everything could be looked at.
func setMonitored(deployment *fleet.BundleDeployment, facts Facts, now time.Time) {
	monitored := fleet.Condition{Type: fleet.ConditionMonitored, Status: corev1.ConditionTrue}
	if facts.Unseen != nil {
		monitored.Status, monitored.Reason, monitored.Message = corev1.ConditionFalse, fleet.ReasonError, facts.Unseen.Error()
	}
	for _, object := range facts.Objects {
		if object.Verdict.State == diff.Unknown {
			monitored.Status, monitored.Message = corev1.ConditionUnknown, object.Verdict.Reason
			break
		}
	}
	if facts.Correction != nil {
		monitored.Status, monitored.Reason, monitored.Message = corev1.ConditionFalse, fleet.ReasonError, facts.Correction.Error()
	}
	status.Set(&deployment.Status.Conditions, monitored, now)
}

// setReady tells the first thing that keeps the deployment from being ready, for people.
func setReady(deployment *fleet.BundleDeployment, facts Facts, now time.Time) {
	reason, message := "", status.MessageOf(deployment)
	current := &deployment.Status
	switch {
	case message != "":
		if deployed := status.Find(current.Conditions, fleet.ConditionDeployed); deployed != nil {
			reason = deployed.Reason
		}
	case len(current.NonReadyStatus) > 0:
		message = status.NonReadyMessage(current.NonReadyStatus[0])
	case len(current.ModifiedStatus) > 0:
		message = status.ModifiedMessage(current.ModifiedStatus[0])
	case !current.Ready && (facts.Release != "" || len(facts.Objects) > 0):
		message = "not ready"
	case !current.Ready:
		message = "not deployed yet"
	}
	status.SetReady(&current.Conditions, reason, message, now)
}

// resource returns the entry of the deployment's list of resources.
func (s Sight) resource() fleet.BundleDeploymentResource {
	resource := fleet.BundleDeploymentResource{
		Kind: s.Desired.GetKind(), APIVersion: s.Desired.GetAPIVersion(),
		Namespace: s.Desired.GetNamespace(), Name: s.Desired.GetName(),
	}
	if s.Live != nil {
		resource.CreatedAt = metav1.NewTime(s.Live.GetCreationTimestamp().UTC())
	}
	return resource
}
