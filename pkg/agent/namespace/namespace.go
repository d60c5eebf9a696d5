package namespace

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// protectedNamespaces are never deleted by a bundle.
var protectedNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

// IsProtected tells namespaces that no bundle may delete.
func IsProtected(namespace string) bool {
	return slices.Contains(protectedNamespaces, namespace) || strings.HasPrefix(namespace, "cattle-")
}

// Ensure makes the release namespace if it may, and puts the bundle's labels and annotations on
// it under a field manager of the bundle's own: what others set stays, and what the bundle drops goes.
func Ensure(ctx context.Context, identity *access.Identity, options fleet.BundleDeploymentOptions, claim ownership.Claim) error {
	name := render.ReleaseNamespace(options)
	if err := checkAllowed(ctx, identity, name, options.AllowedTargetNamespaceSelector); err != nil {
		return err
	}
	namespaces := identity.Clients.CoreV1().Namespaces()
	existing, err := namespaces.Get(ctx, name, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	switch {
	case err != nil && !missing && !apierrors.IsForbidden(err):
		return fmt.Errorf("get namespace %s: %w", name, err)
	case apierrors.IsForbidden(err) && len(options.NamespaceLabels)+len(options.NamespaceAnnotations) == 0:
		return nil // a tenant that may not see namespaces may still write into one
	case apierrors.IsForbidden(err):
		existing = nil // one that may not mark it either is told so
	case err == nil && existing.DeletionTimestamp != nil:
		return fault.New(fault.Waiting, "NamespaceTerminating", "namespace %s is still being deleted", name)
	}
	if missing {
		if options.CreateNamespace != nil && !*options.CreateNamespace {
			return fault.New(fault.Waiting, "NamespaceMissing", "namespace %s does not exist and may not be created", name)
		}
		created := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
			Name: name, Annotations: map[string]string{fleet.SetIDAnnotation: claim.SetID},
		}}
		_, err := namespaces.Create(ctx, created, metav1.CreateOptions{FieldManager: apply.FieldManager})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("create namespace %s: %w", name, err)
		}
	}
	return markNamespace(ctx, identity, existing, name, options, claim)
}

// checkAllowed enforces the hub's restriction on release namespaces. The agent looks for itself: the restriction must
// not end where the bundle's identity may not see namespaces.
func checkAllowed(ctx context.Context, identity *access.Identity, name string, wanted *metav1.LabelSelector) error {
	if wanted == nil {
		return nil
	}
	self, err := identity.Member().Self()
	if err != nil {
		return err
	}
	existing, err := self.Clients.CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return allowed(nil, name, wanted)
	}
	if err != nil {
		return fmt.Errorf("get namespace %s: %w", name, err)
	}
	return allowed(existing, name, wanted)
}

// allowed says whether a restriction admits a namespace: it must exist and match.
func allowed(existing *corev1.Namespace, name string, wanted *metav1.LabelSelector) error {
	selector, err := metav1.LabelSelectorAsSelector(wanted)
	if err != nil {
		return fault.New(fault.Stalled, "InvalidSelector", "allowedTargetNamespaceSelector: %w", err)
	}
	if existing == nil || !selector.Matches(labels.Set(existing.Labels)) {
		return fault.New(fault.Denied, "NamespaceNotAllowed", "namespace %s is not allowed: it has to exist and match %s", name, selector)
	}
	return nil
}

func markNamespace(ctx context.Context, identity *access.Identity, existing *corev1.Namespace, name string, options fleet.BundleDeploymentOptions, claim ownership.Claim) error {
	manager := apply.FieldManager + "-" + names.Hex(claim.SetID, 8)
	nothing := len(options.NamespaceLabels) == 0 && len(options.NamespaceAnnotations) == 0
	if nothing && !manages(existing, manager) || hasAll(existing, options, manager) {
		return nil
	}
	object := map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{
			"name": name, "labels": options.NamespaceLabels, "annotations": options.NamespaceAnnotations,
		},
	}
	data, err := json.Marshal(object)
	if err != nil {
		return err
	}
	force := true
	_, err = identity.Clients.CoreV1().Namespaces().Patch(ctx, name, types.ApplyPatchType, data,
		metav1.PatchOptions{FieldManager: manager, Force: &force})
	if err != nil {
		return fmt.Errorf("label namespace %s: %w", name, err)
	}
	return nil
}

func manages(existing *corev1.Namespace, manager string) bool {
	return existing != nil && slices.ContainsFunc(existing.ManagedFields, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager == manager
	})
}

// hasAll says whether the namespace is as the options want it and nothing was dropped since: a bundle
// whose manager owns more than is wanted now has to apply again.
func hasAll(existing *corev1.Namespace, options fleet.BundleDeploymentOptions, manager string) bool {
	if existing == nil || !manages(existing, manager) {
		return false
	}
	for key, value := range options.NamespaceLabels {
		if existing.Labels[key] != value {
			return false
		}
	}
	for key, value := range options.NamespaceAnnotations {
		if existing.Annotations[key] != value {
			return false
		}
	}
	owned := 0
	for _, entry := range existing.ManagedFields {
		if entry.Manager == manager && entry.FieldsV1 != nil {
			raw := string(entry.FieldsV1.GetRawBytes())
			owned += strings.Count(raw, `"f:`) - strings.Count(raw, `"f:metadata"`) -
				strings.Count(raw, `"f:labels"`) - strings.Count(raw, `"f:annotations"`)
		}
	}
	return owned == len(options.NamespaceLabels)+len(options.NamespaceAnnotations)
}

// Delete deletes a release namespace that the bundle made; others' and protected ones stay.
func Delete(ctx context.Context, identity *access.Identity, name string, claim ownership.Claim) error {
	if IsProtected(name) || name == identity.Member().Namespace() {
		return nil
	}
	namespaces := identity.Clients.CoreV1().Namespaces()
	live, err := namespaces.Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return nil // gone, or none of what the bundle's identity may see
	}
	if err != nil {
		return err
	}
	if live.Annotations[fleet.SetIDAnnotation] != claim.SetID {
		return nil
	}
	err = namespaces.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &live.UID}})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
