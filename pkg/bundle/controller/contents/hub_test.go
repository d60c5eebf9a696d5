package contents

import (
	"context"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cached"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestContentsRememberWhatIsNeeded(t *testing.T) {
	now := start
	kept := newHub(Options{Now: func() time.Time { return now }}, nil)
	if kept.touch("s-a", false) || !kept.lastNeeded("s-a").IsZero() {
		t.Error("a Content that nobody saw counts as known")
	}
	if !kept.touch("s-a", true) || !kept.lastNeeded("s-a").Equal(start) {
		t.Error("a Content that was stored is not known")
	}
	now = start.Add(time.Minute)
	if !kept.touch("s-a", false) || !kept.lastNeeded("s-a").Equal(now) {
		t.Error("a known Content is not needed anew")
	}
	kept.forget("s-a")
	if kept.touch("s-a", false) {
		t.Error("a Content that is gone counts as known")
	}
}

func TestUnusedContentsAreKeptForAWhile(t *testing.T) {
	for name, test := range map[string]struct {
		created, needed time.Time
		want            time.Duration
	}{
		"just made":            {start, time.Time{}, unusedFor},
		"made a minute ago":    {start.Add(-time.Minute), time.Time{}, unusedFor - time.Minute},
		"old":                  {start.Add(-time.Hour), time.Time{}, 0},
		"old, needed just now": {start.Add(-time.Hour), start, unusedFor},
		"old, needed long ago": {start.Add(-time.Hour), start.Add(-unusedFor), 0},
	} {
		t.Run(name, func(t *testing.T) {
			if got := keptFor(unusedFor, start, test.created, test.needed); got != test.want {
				t.Errorf("kept for %s, want %s", got, test.want)
			}
		})
	}
}

// A Content that only a Bundle refers to must not go because the first list of Bundles lacked all of them.
func TestContentsStayUntilTheirUsersWereSeen(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	deployment := &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: "cluster-a", Name: "b"}}
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "b"}}
	for name, test := range map[string]struct {
		bundles     []runtime.Object
		wantRemoved bool
	}{
		"no Bundle was seen": {nil, false},
		"one was":            {[]runtime.Object{bundle}, true},
	} {
		t.Run(name, func(t *testing.T) {
			lookup := func(context.Context, schema.GroupVersionKind, types.NamespacedName) (*metav1.ObjectMeta, error) {
				return nil, nil
			}
			caches := confirm.NewInformers(lookup, confirm.KindOf(scheme), time.Now)
			feed := func(example runtime.Object, objects ...runtime.Object) cache.SharedIndexInformer {
				source := fcache.NewFakeControllerSource()
				for _, object := range objects {
					source.Add(object)
				}
				informer := caches.New(source, example, 0, cache.Indexers{})
				go informer.Run(t.Context().Done())
				if !cache.WaitForCacheSync(t.Context().Done(), informer.HasSynced) {
					t.Fatal("the cache is not filled")
				}
				return informer
			}
			_ = feed(&fleet.Bundle{}, test.bundles...)
			known := feed(&fleet.BundleDeployment{}, deployment)
			deployments, err := cached.New(t.Context(), oneInformer{informer: known}, &fleet.BundleDeployment{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			removed := false
			hub := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					removed = true
					return nil
				},
			})
			kept := newHub(Options{Client: hub, Reader: hub, Deployments: deployments, Caches: caches, Now: func() time.Time { return start }}, hub)
			head := contentMetadata()
			head.Name = "s-a"
			if _, err := kept.remove(t.Context(), head); err != nil || removed != test.wantRemoved {
				t.Errorf("removed %v, %v", removed, err)
			}
		})
	}
}

// oneInformer is a cache of one kind.
type oneInformer struct {
	ctrlcache.Informers
	informer cache.SharedIndexInformer
}

func (o oneInformer) GetInformer(context.Context, client.Object, ...ctrlcache.InformerGetOption) (ctrlcache.Informer, error) {
	return o.informer, nil
}
