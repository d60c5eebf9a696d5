package builtin

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestType(t *testing.T) {
	value, ok := Type(schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "Deployment"})
	if _, isDeployment := value.(*appsv1.Deployment); !ok || !isDeployment {
		t.Errorf("a Deployment has type %T, %v", value, ok)
	}
	for name, test := range map[string]struct {
		kind schema.GroupVersionKind
		want bool
	}{
		"core list":     {schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"}, true},
		"custom kind":   {schema.GroupVersionKind{Group: "example.test", Version: "v1", Kind: "ConfigMapList"}, false},
		"other version": {schema.GroupVersionKind{Group: "apps", Version: "v9", Kind: "Deployment"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if _, ok := Type(test.kind); ok != test.want || Has(test.kind) != test.want {
				t.Errorf("Type finds it: %v, Has: %v, want %v", ok, Has(test.kind), test.want)
			}
		})
	}
}
