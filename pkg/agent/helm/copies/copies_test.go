package copies

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes/scheme"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	"github.com/fairlead-dev/fairlead/pkg/agent/synced"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Of a bundle's copies those that are not wanted go; what is another's, no copy, or elsewhere, stays.
func TestOnlyCopiesOfTheBundleGo(t *testing.T) {
	ours := map[string]string{fleet.DownstreamCopyLabel: "b", fleet.SetHashLabel: "set"}
	secret := func(namespace, name string, labels map[string]string) runtime.Object {
		return &corev1.Secret{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
		}
	}
	for name, test := range map[string]struct {
		wanted map[manifest.Key]bool
		want   []string
	}{
		"none wanted": {nil, []string{"another-bundle", "another-set", "elsewhere", "no-copy"}},
		"one wanted":  {map[manifest.Key]bool{{GroupKind: schema.GroupKind{Kind: "Secret"}, Namespace: "n", Name: "one"}: true}, []string{"another-bundle", "another-set", "elsewhere", "no-copy", "one"}},
	} {
		clients := fake.NewSimpleDynamicClient(scheme.Scheme,
			secret("n", "one", ours), secret("n", "two", ours), secret("elsewhere", "elsewhere", ours),
			secret("n", "another-bundle", map[string]string{fleet.DownstreamCopyLabel: "c", fleet.SetHashLabel: "set"}),
			secret("n", "another-set", map[string]string{fleet.DownstreamCopyLabel: "b", fleet.SetHashLabel: "other"}),
			secret("n", "no-copy", map[string]string{fleet.SetHashLabel: "set"}),
		)
		mapper := meta.NewDefaultRESTMapper(nil)
		mapper.Add(corev1.SchemeGroupVersion.WithKind("Secret"), meta.RESTScopeNamespace)
		identity := &access.Identity{Dynamic: clients, Writer: apply.NewWriter(clients, clients, mapper, synced.New())}
		set := Set{Identity: identity, Claim: ownership.Claim{SetID: "id", SetHash: "set"}, BundleID: "b", Namespace: "n"}
		if err := set.prune(t.Context(), test.wanted); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list, err := clients.Resource(kinds[0]).List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var left []string
		for _, object := range list.Items {
			left = append(left, object.GetName())
		}
		if slices.Sort(left); !slices.Equal(left, test.want) {
			t.Errorf("%s: left %v, want %v", name, left, test.want)
		}
	}
}
