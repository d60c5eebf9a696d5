package confirm

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/cache"
)

var configMaps = schema.GroupResource{Resource: "configmaps"}

func object(name string, uid types.UID) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, Labels: map[string]string{"a": "b"}}}
}

// server is an API server that lists what it is told, whatever it has.
type server struct {
	has    map[string]*corev1.ConfigMap
	broken error
	lists  []*corev1.ConfigMapList
	asked  int
}

func (s *server) lookup(_ context.Context, _ schema.GroupVersionKind, key types.NamespacedName) (*metav1.ObjectMeta, error) {
	s.asked++
	if s.broken != nil {
		return nil, s.broken
	}
	if found := s.has[key.Name]; found != nil {
		return &found.ObjectMeta, nil
	}
	return nil, apierrors.NewNotFound(configMaps, key.Name)
}

func (s *server) next() *corev1.ConfigMapList {
	list := s.lists[0]
	if len(s.lists) > 1 {
		s.lists = s.lists[1:]
	}
	return list
}

func (s *server) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	return s.next(), nil
}

func (s *server) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events := watch.NewFakeWithChanSize(100, false)
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		list := s.next()
		for i := range list.Items {
			events.Add(&list.Items[i])
		}
		events.Action(watch.Bookmark, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}}})
	}
	return events, nil
}

func (s *server) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

func (s *server) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

func listOf(objects ...*corev1.ConfigMap) *corev1.ConfigMapList {
	list := &corev1.ConfigMapList{}
	for _, o := range objects {
		list.Items = append(list.Items, *o)
	}
	return list
}

func TestListsThatLackWhatExists(t *testing.T) {
	a, b, c := object("a", "1"), object("b", "2"), object("c", "3")
	relabelled := object("a", "1")
	relabelled.Labels = nil
	leaving := object("a", "1")
	leaving.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
	cases := map[string]struct {
		known  []*corev1.ConfigMap
		list   []*corev1.ConfigMap
		has    []*corev1.ConfigMap
		broken error

		wantRefused bool
		wantAsked   int
	}{
		"first list":                         {list: []*corev1.ConfigMap{a}, has: []*corev1.ConfigMap{a}},
		"nothing is missing":                 {known: []*corev1.ConfigMap{a, b}, list: []*corev1.ConfigMap{a, b, c}, has: []*corev1.ConfigMap{a, b, c}},
		"empty though it exists":             {known: []*corev1.ConfigMap{a}, has: []*corev1.ConfigMap{a}, wantRefused: true, wantAsked: 1},
		"lacks one that exists":              {known: []*corev1.ConfigMap{a, b}, list: []*corev1.ConfigMap{a}, has: []*corev1.ConfigMap{a, b}, wantRefused: true, wantAsked: 1},
		"all are gone":                       {known: []*corev1.ConfigMap{a, b, c}, wantAsked: 3},
		"made anew under its name":           {known: []*corev1.ConfigMap{a}, has: []*corev1.ConfigMap{object("a", "9")}, wantAsked: 1},
		"no longer selected":                 {known: []*corev1.ConfigMap{a}, has: []*corev1.ConfigMap{relabelled}, wantAsked: 1},
		"being deleted":                      {known: []*corev1.ConfigMap{a}, has: []*corev1.ConfigMap{leaving}, wantAsked: 1},
		"it cannot be told":                  {known: []*corev1.ConfigMap{a}, broken: errors.New("no answer"), wantRefused: true, wantAsked: 1},
		"404 of something in between":        {known: []*corev1.ConfigMap{a}, broken: apierrors.NewGenericServerResponse(http.StatusNotFound, "get", configMaps, "a", "page not found", 0, true), wantRefused: true, wantAsked: 1},
		"reading is forbidden":               {known: []*corev1.ConfigMap{a}, broken: apierrors.NewForbidden(configMaps, "a", nil), wantRefused: true, wantAsked: 1},
		"of many that are gone a few matter": {known: many(20), wantAsked: asked},
	}
	for name, c := range cases {
		for _, stream := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, as a stream %v", name, stream), func(t *testing.T) {
				s := &server{has: map[string]*corev1.ConfigMap{}, broken: c.broken, lists: []*corev1.ConfigMapList{listOf(c.list...)}}
				for _, o := range c.has {
					s.has[o.Name] = o
				}
				informers := NewInformers(s.lookup, KindOf(clientgoscheme.Scheme), time.Now)
				store := cache.NewStore(cache.MetaNamespaceKeyFunc)
				for _, o := range c.known {
					if err := store.Add(o); err != nil {
						t.Fatal(err)
					}
				}
				from := &source{from: s, plain: s, kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), informers: informers, store: store}
				refused := refuses(t, from, stream)
				if refused != c.wantRefused || s.asked != c.wantAsked {
					t.Errorf("refused %v after %d reads, want %v after %d", refused, s.asked, c.wantRefused, c.wantAsked)
				}
				if seen := informers.Seen(&corev1.ConfigMap{}); seen != (len(c.list) > 0) {
					t.Errorf("seen %v", seen)
				}
			})
		}
	}
}

func many(count int) []*corev1.ConfigMap {
	var all []*corev1.ConfigMap
	for i := range count {
		all = append(all, object(fmt.Sprint(i), types.UID(fmt.Sprint(i))))
	}
	return all
}

// refuses reads a list, or a watch to the end of its list.
func refuses(t *testing.T, from *source, stream bool) bool {
	t.Helper()
	if !stream {
		_, err := from.ListWithContext(t.Context(), metav1.ListOptions{})
		return err != nil
	}
	yes := true
	events, err := from.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: &yes})
	if err != nil {
		t.Fatal(err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		switch event.Type {
		case watch.Bookmark:
			return false
		case watch.Error:
			if !apierrors.IsTooManyRequests(apierrors.FromObject(event.Object)) {
				t.Errorf("ends with %v, which a reflector does not wait after", event.Object)
			}
			return true
		}
	}
	t.Fatal("the watch ended")
	return false
}

// An informer keeps what it knows while lists are wrong, and a refresh has it list anew.
func TestInformerKeepsAndRefreshes(t *testing.T) {
	a, b := object("a", "1"), object("b", "2")
	s := &server{has: map[string]*corev1.ConfigMap{"a": a, "b": b}, lists: []*corev1.ConfigMapList{listOf(a), listOf(), listOf(a, b)}}
	now := time.Unix(1000, 0)
	informers := NewInformers(s.lookup, KindOf(clientgoscheme.Scheme), func() time.Time { return now })
	informer := informers.New(s, &corev1.ConfigMap{}, 0, cache.Indexers{})
	var deleted []string
	arrived := make(chan string, 10)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { arrived <- o.(*corev1.ConfigMap).Name },
		DeleteFunc: func(any) { deleted = append(deleted, "something") },
	})
	if err != nil {
		t.Fatal(err)
	}
	go informer.RunWithContext(t.Context())
	got := []string{<-arrived}
	informers.Refresh(&corev1.ConfigMap{})
	got = append(got, <-arrived) // after the empty list was refused
	if !slices.Equal(got, []string{"a", "b"}) || len(deleted) > 0 {
		t.Errorf("got %v, deleted %v", got, deleted)
	}
}
