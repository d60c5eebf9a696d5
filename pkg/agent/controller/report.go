package controller

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

const (
	// maxListed bounds the lists of objects that are not ready or differ.
	maxListed = 10
	// writeEvery is how often the status of one deployment is written at most.
	writeEvery = time.Second
)

// newest returns the deployment with the status of our own last write while the cache lags behind it.
func (e *entry) newest(cached *fleet.BundleDeployment) *fleet.BundleDeployment {
	if e.latest == nil || e.latest.UID != cached.UID {
		e.latest = nil
		return cached
	}
	cachedVersion, err := strconv.ParseUint(cached.ResourceVersion, 10, 64)
	latestVersion, otherErr := strconv.ParseUint(e.latest.ResourceVersion, 10, 64)
	if err != nil || otherErr != nil || cachedVersion >= latestVersion {
		e.latest = nil
		return cached
	}
	current := *cached
	current.Status = e.latest.Status
	return &current
}

// report writes the status if it changed: the first change at once, what follows within a second
// together. It returns when to come back for what it held back.
func (c *Controller) report(ctx context.Context, e *entry, deployment *fleet.BundleDeployment, seen observation) (time.Duration, error) {
	now := c.options.Clock.Now()
	wanted := c.statusOf(e, deployment, seen, now)
	patch, err := statusPatch(&deployment.Status, wanted)
	if err != nil || patch == nil {
		return 0, err
	}
	if early := e.lastWrite.Add(writeEvery).Sub(now); early > 0 {
		return early, nil
	}
	written, err := c.hub.patchStatus(ctx, deployment.Name, patch)
	if apierrors.IsNotFound(err) {
		return 0, nil // gone; its delete event follows
	}
	if err != nil {
		return 0, fmt.Errorf("write status of %s: %w", deployment.Name, err)
	}
	e.lastWrite = now
	if _, err := trim(written); err != nil {
		return 0, err
	}
	e.latest = written
	return 0, nil
}

// statusPatch returns the merge patch from one status to another, nil when they are equal.
func statusPatch(from, to *fleet.BundleDeploymentStatus) ([]byte, error) {
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

// statusOf returns the status the deployment should have.
func (c *Controller) statusOf(e *entry, deployment *fleet.BundleDeployment, seen observation, now time.Time) *fleet.BundleDeploymentStatus {
	wanted := deployment.Status.DeepCopy()
	c.setApplied(e, deployment, wanted)
	if seen.err == nil {
		setObjects(wanted, seen.objects)
	}
	current := &fleet.BundleDeployment{ObjectMeta: deployment.ObjectMeta, Spec: deployment.Spec, Status: *wanted}
	setDeployed(current, e, seen, now)
	setMonitored(current, e, seen, now)
	setReady(current, e, seen, now)
	current.Status.Display = status.Display(current)
	return &current.Status
}

// setApplied says which id the objects belong to; it moves only when all of it was done.
func (c *Controller) setApplied(e *entry, deployment *fleet.BundleDeployment, wanted *fleet.BundleDeploymentStatus) {
	if !e.loaded {
		return
	}
	wanted.Release = ""
	if e.found {
		wanted.Release = e.record.String()
	}
	switch {
	case deployment.Spec.DeploymentID == "" || !e.found:
		if !e.found {
			wanted.AppliedDeploymentID = ""
		}
	case !wants(deployment, e) || e.failure == nil && e.record.DeploymentID == deployment.Spec.DeploymentID && e.record.Deployed:
		wanted.AppliedDeploymentID = deployment.Spec.DeploymentID
		generation := deployment.Spec.Options.ForceSyncGeneration
		wanted.SyncGeneration = &generation
		wanted.DownstreamResourcesGeneration = deployment.Spec.DownstreamResourcesGeneration
	}
}

func setObjects(wanted *fleet.BundleDeploymentStatus, objects []sight) {
	wanted.Resources = nil
	wanted.ResourceCounts = fleet.ResourceCounts{DesiredReady: len(objects)}
	wanted.NonReadyStatus, wanted.ModifiedStatus, wanted.IncompleteState = nil, nil, false
	for _, object := range objects {
		wanted.Resources = append(wanted.Resources, object.resourceStatus())
		count(&wanted.ResourceCounts, object)
		if modified, differs := object.verdict.Status(object.desired); differs {
			wanted.ModifiedStatus = append(wanted.ModifiedStatus, modified)
		}
		if object.live != nil && !object.ready {
			wanted.NonReadyStatus = append(wanted.NonReadyStatus, fleet.NonReadyStatus{
				UID: string(object.live.GetUID()), Kind: object.desired.GetKind(), APIVersion: object.desired.GetAPIVersion(),
				Namespace: object.desired.GetNamespace(), Name: object.desired.GetName(), Summary: object.summary,
			})
		}
	}
	slices.SortFunc(wanted.Resources, func(a, b fleet.BundleDeploymentResource) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(wanted.ModifiedStatus, func(a, b fleet.ModifiedStatus) int {
		return cmp.Or(cmp.Compare(a.APIVersion, b.APIVersion), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	slices.SortFunc(wanted.NonReadyStatus, func(a, b fleet.NonReadyStatus) int { return cmp.Compare(a.UID, b.UID) })
	if len(wanted.ModifiedStatus) > maxListed || len(wanted.NonReadyStatus) > maxListed {
		wanted.IncompleteState = true
		wanted.ModifiedStatus = wanted.ModifiedStatus[:min(len(wanted.ModifiedStatus), maxListed)]
		wanted.NonReadyStatus = wanted.NonReadyStatus[:min(len(wanted.NonReadyStatus), maxListed)]
	}
	counts := wanted.ResourceCounts
	wanted.Ready = counts.Missing == 0 && counts.NotReady == 0 && counts.Unknown == 0
	wanted.NonModified = len(wanted.ModifiedStatus) == 0 && counts.Unknown == 0
}

// count puts an object under the worst that is known of it.
func count(counts *fleet.ResourceCounts, object sight) {
	switch {
	case object.verdict.State == diff.Missing:
		counts.Missing++
	case object.verdict.State == diff.Unknown:
		counts.Unknown++
	case !object.ready:
		counts.NotReady++
	case object.verdict.State == diff.Modified || object.verdict.State == diff.Foreign:
		counts.Modified++
	default:
		counts.Ready++
	}
}

// setDeployed says whether what is wanted is installed. Waiting is neither yes nor no.
func setDeployed(deployment *fleet.BundleDeployment, e *entry, seen observation, now time.Time) {
	conditions := &deployment.Status.Conditions
	failed := seen.err
	if e.failure != nil && e.failure.deploymentID == deployment.Spec.DeploymentID && wants(deployment, e) {
		failed = e.failure.err
	}
	deployed := fleet.Condition{Type: fleet.ConditionDeployed, Status: corev1.ConditionTrue}
	installed := fleet.Condition{Type: fleet.ConditionInstalled, Status: corev1.ConditionTrue}
	switch {
	case failed != nil && fault.ClassOf(failed) == fault.Waiting:
		deployed.Status, deployed.Reason, deployed.Message = corev1.ConditionUnknown, fault.ReasonOf(failed), failed.Error()
	case failed != nil:
		deployed.Status, deployed.Reason, deployed.Message = corev1.ConditionFalse, fleet.ReasonError, failed.Error()
	case deployment.Status.AppliedDeploymentID != deployment.Spec.DeploymentID:
		deployed.Status, deployed.Message = corev1.ConditionUnknown, "not deployed yet"
	}
	if !e.found && e.loaded {
		installed.Status, installed.Reason, installed.Message = deployed.Status, deployed.Reason, deployed.Message
		if installed.Status == corev1.ConditionTrue {
			installed.Status, installed.Message = corev1.ConditionUnknown, "not installed yet"
		}
	}
	status.Set(conditions, deployed, now)
	status.Set(conditions, installed, now)
}

// setMonitored says whether everything could be looked at.
func setMonitored(deployment *fleet.BundleDeployment, e *entry, seen observation, now time.Time) {
	monitored := fleet.Condition{Type: fleet.ConditionMonitored, Status: corev1.ConditionTrue}
	if seen.err != nil {
		monitored.Status, monitored.Reason, monitored.Message = corev1.ConditionFalse, fleet.ReasonError, seen.err.Error()
	}
	for _, object := range seen.objects {
		if object.verdict.State == diff.Unknown {
			monitored.Status, monitored.Message = corev1.ConditionUnknown, object.verdict.Reason
			break
		}
	}
	if e.correction.err != nil {
		monitored.Status, monitored.Reason, monitored.Message = corev1.ConditionFalse, fleet.ReasonError, e.correction.err.Error()
	}
	status.Set(&deployment.Status.Conditions, monitored, now)
}

// setReady tells the first thing that keeps the deployment from being ready, for people.
func setReady(deployment *fleet.BundleDeployment, e *entry, seen observation, now time.Time) {
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
	case !current.Ready && (e.found || len(seen.objects) > 0):
		message = "not ready"
	case !current.Ready:
		message = "not deployed yet"
	}
	status.SetReady(&current.Conditions, reason, message, now)
}
