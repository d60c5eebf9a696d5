package helm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

const defaultValuesKey = "values.yaml"

// protectedNamespaces are never deleted by a bundle.
var protectedNamespaces = []string{"default", "kube-system", "kube-public", "kube-node-lease"}

func isProtected(namespace string) bool {
	return slices.Contains(protectedNamespaces, namespace) || strings.HasPrefix(namespace, "cattle-")
}

// withMemberValues returns the options with the values that are read on the member merged in, later
// ones over earlier ones. What is missing is waited for.
func withMemberValues(ctx context.Context, identity *Identity, options fleet.BundleDeploymentOptions) (fleet.BundleDeploymentOptions, error) {
	if options.Helm == nil || len(options.Helm.ValuesFrom) == 0 {
		return options, nil
	}
	options = *options.DeepCopy()
	values := map[string]any{}
	if options.Helm.Values != nil {
		values = options.Helm.Values.Data
	}
	for _, from := range options.Helm.ValuesFrom {
		documents, err := readValues(ctx, identity, from, render.ReleaseNamespace(options))
		if err != nil {
			return options, err
		}
		for _, document := range documents {
			// CoalesceTables lets its first argument win.
			values = chartutil.CoalesceTables(document, values)
		}
	}
	options.Helm.Values = &fleet.GenericMap{Data: values}
	return options, nil
}

func readValues(ctx context.Context, identity *Identity, from fleet.ValuesFrom, namespace string) ([]map[string]any, error) {
	var documents []map[string]any
	if ref := from.ConfigMapKeyRef; ref != nil {
		in := or(ref.Namespace, namespace)
		object, err := identity.Clients.CoreV1().ConfigMaps(in).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return nil, missingValues(fmt.Sprintf("config map %s/%s", in, ref.Name), err)
		}
		text, found := object.Data[or(ref.Key, defaultValuesKey)]
		document, err := parseValues("config map "+in+"/"+ref.Name, or(ref.Key, defaultValuesKey), []byte(text), found)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	if ref := from.SecretKeyRef; ref != nil {
		in := or(ref.Namespace, namespace)
		object, err := identity.Clients.CoreV1().Secrets(in).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return nil, missingValues(fmt.Sprintf("secret %s/%s", in, ref.Name), err)
		}
		data, found := object.Data[or(ref.Key, defaultValuesKey)]
		document, err := parseValues("secret "+in+"/"+ref.Name, or(ref.Key, defaultValuesKey), data, found)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	return documents, nil
}

func missingValues(what string, err error) error {
	if apierrors.IsNotFound(err) {
		return fault.New(fault.Waiting, "ValuesMissing", "helm.valuesFrom: %s does not exist", what)
	}
	return fmt.Errorf("helm.valuesFrom: get %s: %w", what, err)
}

// parseValues reads one document; the parser's message may quote a secret and is left out.
func parseValues(what, key string, data []byte, found bool) (map[string]any, error) {
	if !found {
		return nil, fault.New(fault.Waiting, "ValuesMissing", "helm.valuesFrom: %s has no key %s", what, key)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, fault.New(fault.Stalled, "InvalidValues", "helm.valuesFrom: key %s of %s is no YAML object", key, what)
	}
	return values, nil
}

// ensureNamespace makes the release namespace if it may, and puts the bundle's labels and annotations on
// it under a field manager of the bundle's own: what others set stays, and what the bundle drops goes.
func ensureNamespace(ctx context.Context, identity *Identity, options fleet.BundleDeploymentOptions, claim apply.Claim) error {
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
func checkAllowed(ctx context.Context, identity *Identity, name string, wanted *metav1.LabelSelector) error {
	if wanted == nil {
		return nil
	}
	self, err := identity.member.Self()
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

func markNamespace(ctx context.Context, identity *Identity, existing *corev1.Namespace, name string, options fleet.BundleDeploymentOptions, claim apply.Claim) error {
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

// applyDefinitions creates and updates what a chart ships in its crds folder, which Helm only ever
// creates. A definition that somebody else has installed is left alone.
func (c *client) applyDefinitions(root *chart.Chart) error {
	var definitions []*unstructured.Unstructured
	for _, file := range root.CRDObjects() {
		objects, err := manifest.Parse(file.File.Data)
		if err != nil {
			return fault.Wrap(fault.Stalled, "InvalidManifest", fmt.Errorf("read %s: %w", file.Filename, err))
		}
		definitions = append(definitions, objects...)
	}
	var applied manifest.Phase
	for _, definition := range definitions {
		manifest.Concede(definition)
		mark(definition, c.claim)
		written, err := c.identity.Writer.Apply(c.ctx, definition, apply.Options{Claim: c.claim})
		c.defines = c.defines || err == nil && written.Action != apply.Unchanged
		switch reason := fault.ReasonOf(err); {
		case err == nil:
			applied = append(applied, definition)
		case reason == apply.ReasonOwnedByOther, reason == apply.ReasonNotOwned:
		default:
			return err
		}
	}
	return c.waitEstablished(applied)
}

func mark(object *unstructured.Unstructured, claim apply.Claim) {
	marks, annotations := object.GetLabels(), object.GetAnnotations()
	if marks == nil {
		marks = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	marks[fleet.SetHashLabel] = claim.SetHash
	annotations[fleet.SetIDAnnotation] = claim.SetID
	object.SetLabels(marks)
	object.SetAnnotations(annotations)
}

// isFromServer says whether an API server, or the way to it, caused the error.
func isFromServer(err error) bool {
	var status apierrors.APIStatus
	var network net.Error
	return errors.As(err, &status) || errors.As(err, &network) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// asksForCapabilities says whether what a chart renders may depend on the member's kinds.
func asksForCapabilities(root *chart.Chart) bool {
	return slices.ContainsFunc(root.Templates, func(file *chart.File) bool {
		return bytes.Contains(file.Data, []byte("Capabilities"))
	}) || slices.ContainsFunc(root.Dependencies(), asksForCapabilities)
}
