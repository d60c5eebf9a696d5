package faultproxy

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/fairlead-dev/fairlead/pkg/confirm"
)

// api serves ConfigMaps of one namespace, as an API server does as far as an informer needs it.
type api struct {
	mu      sync.Mutex
	version int
	objects map[string]*corev1.ConfigMap
	log     []event
	changed *sync.Cond
}

type event struct {
	version int
	kind    string
	object  *corev1.ConfigMap
}

func newAPI() *api {
	a := &api{objects: map[string]*corev1.ConfigMap{}}
	a.changed = sync.NewCond(&a.mu)
	return a
}

func (a *api) put(name, value string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	kind, uid := "MODIFIED", types.UID(name)
	if a.objects[name] == nil {
		kind = "ADDED"
	}
	object := &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: uid, ResourceVersion: strconv.Itoa(a.version)},
		Data:       map[string]string{"value": value},
	}
	a.objects[name] = object
	a.log = append(a.log, event{a.version, kind, object})
	a.changed.Broadcast()
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch request := parse(r); request.Verb {
	case "get":
		a.mu.Lock()
		object := a.objects[request.Name]
		a.mu.Unlock()
		answer(w, http.StatusOK, object)
	case "list":
		answer(w, http.StatusOK, a.list())
	case "create":
		a.put("made", "by a write")
		answer(w, http.StatusCreated, a.list().Items[0])
	case "watch":
		a.watch(w, r, request)
	}
}

func (a *api) list() *corev1.ConfigMapList {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := &corev1.ConfigMapList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMapList"}}
	list.ResourceVersion = strconv.Itoa(a.version)
	for _, object := range a.objects {
		list.Items = append(list.Items, *object)
	}
	return list
}

func (a *api) watch(w http.ResponseWriter, r *http.Request, request Request) {
	since, _ := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	send := func(kind string, object any) {
		_ = json.NewEncoder(w).Encode(map[string]any{"type": kind, "object": object})
		flush(w)
	}
	flush(w)
	if request.InitialEvents {
		list := a.list()
		for i := range list.Items {
			send("ADDED", &list.Items[i])
		}
		send("BOOKMARK", &corev1.ConfigMap{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{ResourceVersion: list.ResourceVersion,
				Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"}},
		})
		since, _ = strconv.Atoi(list.ResourceVersion)
	}
	stop := context.AfterFunc(r.Context(), func() {
		a.mu.Lock() // else who has looked and does not wait yet would miss it, and wait for ever
		defer a.mu.Unlock()
		a.changed.Broadcast()
	})
	defer stop()
	for r.Context().Err() == nil {
		a.mu.Lock()
		for a.version <= since && r.Context().Err() == nil {
			a.changed.Wait()
		}
		var news []event
		for _, e := range a.log {
			if e.version > since {
				news = append(news, e)
			}
		}
		since = a.version
		a.mu.Unlock()
		for _, e := range news {
			send(e.kind, e.object)
		}
	}
}

// world is an informer behind a proxy in front of an API.
type world struct {
	t        *testing.T
	api      *api
	proxy    *Proxy
	clients  kubernetes.Interface
	informer cache.SharedIndexInformer
	deleted  atomic.Int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, api: newAPI()}
	server := httptest.NewUnstartedServer(w.api)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.CloseClientConnections)
	config := &rest.Config{Host: server.URL, BearerToken: "token"}
	config.CAData = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	var err error
	if w.proxy, err = Start(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.proxy.Close() })
	if w.clients, err = kubernetes.NewForConfig(w.proxy.Through(config)); err != nil {
		t.Fatal(err)
	}
	w.api.put("a", "0")
	w.api.put("b", "0")
	lookup := func(ctx context.Context, _ schema.GroupVersionKind, key types.NamespacedName) (*metav1.ObjectMeta, error) {
		object, err := w.clients.CoreV1().ConfigMaps(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		return &object.ObjectMeta, nil
	}
	informers := confirm.NewInformers(lookup, confirm.KindOf(clientgoscheme.Scheme), time.Now)
	from := cache.NewListWatchFromClient(w.clients.CoreV1().RESTClient(), "configmaps", "ns", fields.Everything())
	w.informer = informers.New(from, &corev1.ConfigMap{}, 0, cache.Indexers{})
	if _, err := w.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{DeleteFunc: func(any) { w.deleted.Add(1) }}); err != nil {
		t.Fatal(err)
	}
	go w.informer.RunWithContext(t.Context())
	w.shows("0")
	// Where an informer lists first, it watches a moment after it shows what there is.
	w.eventually(func() error {
		w.proxy.mu.Lock()
		defer w.proxy.mu.Unlock()
		if len(w.proxy.watches) == 0 {
			return errors.New("no watch is running")
		}
		return nil
	})
	return w
}

// shows waits until the informer has a value.
func (w *world) shows(value string) {
	w.t.Helper()
	w.eventually(func() error {
		for _, name := range []string{"a", "b"} {
			item, found, err := w.informer.GetStore().GetByKey("ns/" + name)
			if err != nil || !found {
				return fmt.Errorf("%s is not there: %w", name, err)
			}
			if got := item.(*corev1.ConfigMap).Data["value"]; got != value {
				return fmt.Errorf("%s is %s, want %s", name, got, value)
			}
		}
		return nil
	})
}

func (w *world) eventually(ask func() error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	for {
		err := ask()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			w.t.Fatal(err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Whatever a proxy did to an informer's requests, once it does no more the informer shows what there is, and at
// no time was anything lost.
func TestInformerRecovers(t *testing.T) {
	reads := func(r Request) bool { return !r.Mutates() && r.Resource != "" }
	for name, rule := range map[string]Rule{
		"empty lists":          {Lists("configmaps"), Empty()},
		"reads cut":            {reads, Cut()},
		"reads 500":            {reads, Fail(http.StatusInternalServerError)},
		"reads 403":            {reads, Fail(http.StatusForbidden)},
		"reads 429":            {reads, Fail(http.StatusTooManyRequests)},
		"watches expire":       {Of("configmaps", "watch"), Expire()},
		"events late and more": {Of("configmaps", "watch"), HoldBack(50 * time.Millisecond).Twice()},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t) // an informer waits longer after each failure
			w.proxy.Set(rule)
			if w.proxy.ExpireWatches("configmaps") == 0 {
				t.Error("no watch was running")
			}
			w.api.put("a", "1")
			w.eventually(func() error {
				if hits := w.proxy.Hits(); hits[0] == 0 {
					return errors.New("the rule was not met")
				}
				return nil
			})
			w.api.put("b", "1")
			w.proxy.Set()
			w.shows("1")
			w.api.put("a", "2")
			w.api.put("b", "2")
			w.shows("2")
			if deleted := w.deleted.Load(); deleted > 0 {
				t.Errorf("%d deletions were told", deleted)
			}
		})
	}
}

// A write whose answer is lost was done.
func TestLostAnswer(t *testing.T) {
	w := newWorld(t)
	w.proxy.Set(Rule{Of("configmaps", "create"), LoseAnswer()})
	made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "made"}}
	if _, err := w.clients.CoreV1().ConfigMaps("ns").Create(t.Context(), made, metav1.CreateOptions{}); err == nil {
		t.Error("an answer came")
	}
	if list := w.api.list(); len(list.Items) != 3 {
		t.Errorf("%d objects, want 3", len(list.Items))
	}
}
