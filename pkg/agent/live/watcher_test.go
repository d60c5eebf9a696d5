package live_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/pkg/agent/live"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

var clusters = kubetest.Share(kubetest.Options{APIOnly: true})

func TestMain(m *testing.M) { os.Exit(clusters.Run(m)) }

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

// ears count what a handler is told.
type ears struct {
	mu    sync.Mutex
	heard map[string]int
}

func (e *ears) hear(hash string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.heard[hash]++
}

func (e *ears) count(hash string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.heard[hash]
}

func newWatcher(t *testing.T) (*live.Watcher, *ears) {
	t.Helper()
	client, err := dynamic.NewForConfig(clusters.Get(t).Hub.Admin().Config)
	if err != nil {
		t.Fatal(err)
	}
	listener := &ears{heard: map[string]int{}}
	return live.NewWatcher(t.Context(), client, listener.hear, logr.Discard()), listener
}

func TestWatcher(t *testing.T) {
	watcher, listener := newWatcher(t)
	hub := clusters.Get(t).Hub
	if _, known, reason := watcher.Get(configMaps, "default", "x"); known || reason == "" {
		t.Errorf("a kind that nobody follows: known %v, %q", known, reason)
	}
	watcher.Track("set", []schema.GroupVersionResource{configMaps})
	kubetest.Eventually(t, "the kind is listed", func(context.Context) error {
		if _, known, reason := watcher.Get(configMaps, "default", "x"); !known {
			return errors.New(reason)
		}
		return nil
	})
	kubetest.Eventually(t, "the user is told", func(context.Context) error {
		if listener.count("set") == 0 {
			return errors.New("not yet")
		}
		return nil
	})
	maps := hub.Clients().CoreV1().ConfigMaps("default")
	for name, labels := range map[string]map[string]string{"ours": {fleet.SetHashLabel: "aaaa"}, "unrelated": nil} {
		if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	kubetest.Eventually(t, "the object is seen", func(context.Context) error {
		object, _, _ := watcher.Get(configMaps, "default", "ours")
		if object == nil || listener.count("aaaa") == 0 {
			return errors.New("not yet")
		}
		if len(object.GetManagedFields()) > 0 {
			return errors.New("managed fields are kept")
		}
		return nil
	})
	if object, known, _ := watcher.Get(configMaps, "default", "unrelated"); object != nil || !known {
		t.Error("an object without the mark is kept")
	}
	// An object that changes hands concerns both owners.
	if _, err := hub.Kubectl(t.Context(), nil, "label", "--overwrite", "configmap", "ours", fleet.SetHashLabel+"=bbbb"); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "both owners are told", func(context.Context) error {
		if listener.count("aaaa") < 2 || listener.count("bbbb") < 1 {
			return fmt.Errorf("heard %v", listener.heard)
		}
		return nil
	})
	watcher.Track("other", []schema.GroupVersionResource{configMaps})
	watcher.Track("set", nil)
	if watcher.Kinds() != 1 {
		t.Errorf("%d kinds are watched, want 1", watcher.Kinds())
	}
}

// A kind that does not exist is unknown, with a reason, until it does.
func TestKindWithoutDefinition(t *testing.T) {
	watcher, _ := newWatcher(t)
	jars := schema.GroupVersionResource{Group: "live.example.com", Version: "v1", Resource: "jars"}
	watcher.Track("set", []schema.GroupVersionResource{jars})
	kubetest.Eventually(t, "the reason is known", func(context.Context) error {
		_, known, reason := watcher.Get(jars, "default", "x")
		if known || !strings.Contains(reason, "jars") {
			return fmt.Errorf("known %v, %q", known, reason)
		}
		return nil
	})
	_, err := clusters.Get(t).Hub.Kubectl(t.Context(), strings.NewReader(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jars.live.example.com}
spec:
  group: live.example.com
  scope: Namespaced
  names: {kind: Jar, plural: jars}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`), "apply", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the kind is listed", func(context.Context) error {
		if _, known, reason := watcher.Get(jars, "default", "x"); !known {
			return errors.New(reason)
		}
		return nil
	})
}
