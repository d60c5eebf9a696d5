package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chartutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const defaultValuesKey = "values.yaml"

// withMemberValues returns the options with the values that are read on the member merged in, later
// ones over earlier ones. What is missing is waited for.
func withMemberValues(ctx context.Context, identity *access.Identity, options fleet.BundleDeploymentOptions) (fleet.BundleDeploymentOptions, error) {
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

func readValues(ctx context.Context, identity *access.Identity, from fleet.ValuesFrom, namespace string) ([]map[string]any, error) {
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
