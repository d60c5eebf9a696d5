package values

import (
	"cmp"
	"context"
	"fmt"

	"helm.sh/helm/v3/pkg/chartutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const defaultKey = "values.yaml"

// Merge returns a bundle's options with the values that are read on the member merged in, later
// ones over earlier ones. What is missing is waited for.
func Merge(ctx context.Context, identity *access.Identity, options fleet.BundleDeploymentOptions) (fleet.BundleDeploymentOptions, error) {
	if options.Helm == nil || len(options.Helm.ValuesFrom) == 0 {
		return options, nil
	}
	options = *options.DeepCopy()
	values := map[string]any{}
	if options.Helm.Values != nil {
		values = options.Helm.Values.Data
	}
	for _, from := range options.Helm.ValuesFrom {
		documents, err := read(ctx, identity, from, render.ReleaseNamespace(options))
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

// read returns the documents that one reference names.
func read(ctx context.Context, identity *access.Identity, from fleet.ValuesFrom, namespace string) ([]map[string]any, error) {
	var documents []map[string]any
	if ref := from.ConfigMapKeyRef; ref != nil {
		in, key := cmp.Or(ref.Namespace, namespace), cmp.Or(ref.Key, defaultKey)
		what := fmt.Sprintf("config map %s/%s", in, ref.Name)
		object, err := identity.Clients.CoreV1().ConfigMaps(in).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return nil, missing(what, err)
		}
		text, found := object.Data[key]
		document, err := parse(what, key, []byte(text), found)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	if ref := from.SecretKeyRef; ref != nil {
		in, key := cmp.Or(ref.Namespace, namespace), cmp.Or(ref.Key, defaultKey)
		what := fmt.Sprintf("secret %s/%s", in, ref.Name)
		object, err := identity.Clients.CoreV1().Secrets(in).Get(ctx, ref.Name, metav1.GetOptions{})
		if err != nil {
			return nil, missing(what, err)
		}
		data, found := object.Data[key]
		document, err := parse(what, key, data, found)
		if err != nil {
			return nil, err
		}
		documents = append(documents, document)
	}
	return documents, nil
}

func missing(what string, err error) error {
	if apierrors.IsNotFound(err) {
		return fault.New(fault.Waiting, "ValuesMissing", "helm.valuesFrom: %s does not exist", what)
	}
	return fmt.Errorf("helm.valuesFrom: get %s: %w", what, err)
}

// parse reads one document; the parser's message may quote a secret and is left out.
func parse(what, key string, data []byte, found bool) (map[string]any, error) {
	if !found {
		return nil, fault.New(fault.Waiting, "ValuesMissing", "helm.valuesFrom: %s has no key %s", what, key)
	}
	values := map[string]any{}
	if err := yaml.Unmarshal(data, &values); err != nil {
		return nil, fault.New(fault.Stalled, "InvalidValues", "helm.valuesFrom: key %s of %s is no YAML object", key, what)
	}
	return values, nil
}
