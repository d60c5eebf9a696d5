package cached_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cached"
)

// one is a cache with one informer.
type one struct {
	cache.Informers
	informer cache.Informer
}

func (o one) GetInformer(context.Context, client.Object, ...cache.InformerGetOption) (cache.Informer, error) {
	return o.informer, nil
}

func cluster(namespace, name string, groups ...string) *fleet.Cluster {
	made := &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: map[string]string{}}}
	for _, group := range groups {
		made.Labels[group] = "yes"
	}
	return made
}

// byLabel finds clusters by the keys of their labels.
func byLabel(cluster *fleet.Cluster) []string {
	var keys []string
	for key := range cluster.Labels {
		keys = append(keys, key)
	}
	return keys
}

func informerOf(source *fcache.FakeControllerSource) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(source, &fleet.Cluster{}, 0, toolscache.Indexers{toolscache.NamespaceIndex: toolscache.MetaNamespaceIndexFunc})
}

func namesOf(t *testing.T, list []*fleet.Cluster, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, cluster := range list {
		names = append(names, cluster.Namespace+"/"+cluster.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func TestObjects(t *testing.T) {
	source := fcache.NewFakeControllerSource()
	for _, made := range []*fleet.Cluster{cluster("a", "1", "eu"), cluster("a", "2", "eu", "prod"), cluster("b", "1", "prod"), cluster("b", "2")} {
		source.Add(made)
	}
	informer := informerOf(source)
	clusters, err := cached.New(t.Context(), one{informer: informer}, &fleet.Cluster{}, map[string]cached.Index[*fleet.Cluster]{"label": byLabel})
	if err != nil {
		t.Fatal(err)
	}
	// Nobody is told that there is nothing while nothing is there yet.
	given, stop := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	stop(enough)
	for name, read := range map[string]func() ([]*fleet.Cluster, error){
		"all": func() ([]*fleet.Cluster, error) { return clusters.All(given) },
		"in":  func() ([]*fleet.Cluster, error) { return clusters.In(given, "a") },
		"by":  func() ([]*fleet.Cluster, error) { return clusters.By(given, "label", "eu") },
	} {
		if list, err := read(); !errors.Is(err, enough) || list != nil {
			t.Errorf("%s, before the cache is filled: %v, %v", name, list, err)
		}
	}
	go informer.Run(t.Context().Done())

	all, err := clusters.All(t.Context())
	if got := namesOf(t, all, err); got != "a/1 a/2 b/1 b/2" {
		t.Errorf("all are %s", got)
	}
	in, err := clusters.In(t.Context(), "b")
	if got := namesOf(t, in, err); got != "b/1 b/2" {
		t.Errorf("in b are %s", got)
	}
	for label, want := range map[string]string{"eu": "a/1 a/2", "prod": "a/2 b/1", "us": ""} {
		by, err := clusters.By(t.Context(), "label", label)
		if got := namesOf(t, by, err); got != want {
			t.Errorf("of %s are %q, want %q", label, got, want)
		}
		for _, found := range by {
			if !slices.Contains(all, found) {
				t.Errorf("%s/%s is another object by its label", found.Namespace, found.Name)
			}
		}
	}
	if _, err := clusters.By(t.Context(), "colour", "red"); err == nil {
		t.Error("there is no such index, and no error")
	}
}

func TestNewRefuses(t *testing.T) {
	source := fcache.NewFakeControllerSource()
	indexes := map[string]cached.Index[*fleet.Cluster]{"label": byLabel}
	informer := informerOf(source)
	if _, err := cached.New(t.Context(), one{informer: informer}, &fleet.Cluster{}, indexes); err != nil {
		t.Fatal(err)
	}
	if _, err := cached.New(t.Context(), one{informer: informer}, &fleet.Cluster{}, indexes); err == nil {
		t.Error("two indexes have one name")
	}
	// As that of a cache of single namespaces.
	if _, err := cached.New(t.Context(), one{informer: struct{ cache.Informer }{informer}}, &fleet.Cluster{}, indexes); err == nil {
		t.Error("an informer without indexer is taken")
	}
}
