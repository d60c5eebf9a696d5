package manifest

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	clusterRole = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
	apiService  = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	mutating    = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"}
	validating  = schema.GroupKind{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"}
)

// placeholders charts write where a certificate authority is injected later.
var placeholders = []any{nil, "", "Cg==", "Cgo="}

// Concede takes out of an object that is about to be applied what somebody else is meant to write:
// status, the rules of an aggregated ClusterRole, and a placeholder for a webhook's injected authority.
// Owning these fields would mean to fight for them.
func Concede(object *unstructured.Unstructured) {
	content := object.Object
	delete(content, "status")
	for _, field := range []string{"creationTimestamp", "managedFields", "resourceVersion", "uid", "generation", "selfLink"} {
		unstructured.RemoveNestedField(content, "metadata", field)
	}
	if object.GroupVersionKind().GroupKind() == clusterRole {
		if _, aggregated := content["aggregationRule"].(map[string]any); aggregated {
			delete(content, "rules")
		}
	}
	for _, config := range AuthorityHolders(object) {
		if slices.Contains(placeholders, config["caBundle"]) {
			delete(config, "caBundle")
		}
	}
}

// AuthorityHolders returns the parts of an object (not copies) that hold a caBundle which is commonly
// injected: client configurations of webhooks and of conversions, and the spec of an APIService.
func AuthorityHolders(object *unstructured.Unstructured) []map[string]any {
	switch object.GroupVersionKind().GroupKind() {
	case apiService:
		return present(at(object.Object, "spec"))
	case CustomResourceDefinition:
		return present(at(object.Object, "spec", "conversion", "webhook", "clientConfig"))
	case mutating, validating:
		var holders []map[string]any
		webhooks, _ := object.Object["webhooks"].([]any)
		for _, webhook := range webhooks {
			fields, _ := webhook.(map[string]any)
			holders = append(holders, present(at(fields, "clientConfig"))...)
		}
		return holders
	}
	return nil
}

func at(content map[string]any, path ...string) map[string]any {
	for _, field := range path {
		content, _ = content[field].(map[string]any)
	}
	return content
}

func present(content map[string]any) []map[string]any {
	if content == nil {
		return nil
	}
	return []map[string]any{content}
}
