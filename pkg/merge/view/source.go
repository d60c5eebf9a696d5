package view

import (
	"context"
	"fmt"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/watchlist"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// Source lists and watches the deployments that BundleDeployments carry, for one informer.
type Source struct {
	from  cache.ListerWatcherWithContext
	plain cache.ListerWatcher
	trim  func(*fleet.BundleDeployment)

	mutex sync.Mutex
	// shown is what the informer was told.
	shown *shown
	// version is that of the newest object in it, empty while a watch begins with all there are.
	version string
	// current is the watch that delivers; one that was ended may still be at it.
	current *stream
	// left are events that are not delivered yet, and sent the newest of those that are.
	left, sent []watch.Event
}

// keptSent is how many events are kept that were delivered: whoever is between here and the informer (pkg/confirm)
// may have dropped the last of them when the watch ended.
const keptSent = 8

// New returns a source that gives every deployment to trim before it shows it; nobody may change one
// afterwards, so that the informer must have no transform of its own.
func New(from cache.ListerWatcher, trim func(*fleet.BundleDeployment)) *Source {
	return &Source{from: cache.ToListerWatcherWithContext(from), plain: from, trim: trim, shown: newShown()}
}

// Carried returns the deployments that a merged object carries, as they were last seen in it.
func (s *Source) Carried(namespace, name string) []*fleet.BundleDeployment {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.shown.parts[key{namespace, name}])
}

// List and Watch satisfy cache.ListerWatcher.
func (s *Source) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

// Watch is WatchWithContext.
func (s *Source) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// IsWatchListSemanticsUnSupported is asked by reflectors (client-go/util/watchlist).
func (s *Source) IsWatchListSemanticsUnSupported() bool {
	return watchlist.DoesClientNotSupportWatchListSemantics(s.plain)
}

// ListWithContext lists the deployments. Of one whose carriers are on two pages the second entry counts.
func (s *Source) ListWithContext(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	found, err := s.from.ListWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	list, ok := found.(*fleet.BundleDeploymentList)
	if !ok {
		return nil, fmt.Errorf("list deployments: unexpected %T", found)
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if options.Continue == "" {
		s.shown, s.left, s.sent, s.current = newShown(), nil, nil, nil
	}
	deployments := make([]fleet.BundleDeployment, 0, len(list.Items))
	place := map[key]int{}
	for i := range list.Items {
		for _, changed := range s.shown.set(s.exploded(&list.Items[i])) {
			deployment := s.shown.get(changed)
			if deployment == nil {
				continue
			}
			if at, twice := place[changed]; twice {
				deployments[at] = *deployment
				continue
			}
			place[changed] = len(deployments)
			deployments = append(deployments, *deployment)
		}
	}
	list.Items, s.version = deployments, list.ResourceVersion
	return list, nil
}

// exploded returns what an object carries, trimmed.
func (s *Source) exploded(object *fleet.BundleDeployment) (key, []*fleet.BundleDeployment) {
	object.ManagedFields = nil
	carried := merge.Explode(object)
	for _, deployment := range carried {
		s.trim(deployment)
	}
	return keyOf(object), carried
}

// WatchWithContext watches the deployments.
func (s *Source) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	from, err := s.from.WatchWithContext(ctx, options)
	if err != nil {
		return nil, err
	}
	w := &stream{from: from, events: make(chan watch.Event), stopped: make(chan struct{})}
	s.mutex.Lock()
	s.current = w
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		s.shown, s.left, s.sent, s.version = newShown(), nil, nil, ""
	}
	s.left, s.sent = append(since(s.sent, options.ResourceVersion), s.left...), nil
	s.mutex.Unlock()
	go w.run(s)
	return w, nil
}

// since returns the events that whoever has seen a version may not have seen. Several events have one version: a watch
// that begins at it does not bring the others of them again.
func since(sent []watch.Event, version string) []watch.Event {
	var events []watch.Event
	for _, event := range sent {
		if object, ok := event.Object.(*fleet.BundleDeployment); ok && !older(object.ResourceVersion, version) {
			events = append(events, event)
		}
	}
	return events
}

func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}

// at returns a deployment as it is known at a version: what is told of it must not be older than the event, which
// may be one of another object that carried it.
func at(deployment *fleet.BundleDeployment, version string) *fleet.BundleDeployment {
	if !older(deployment.ResourceVersion, version) {
		return deployment
	}
	known := *deployment
	known.ResourceVersion = version
	return &known
}

// events turns an event of an object into those of what it carries. One that is in what is shown already is told or
// left: a watch may begin at what the informer has seen.
func (s *Source) events(event watch.Event) []watch.Event {
	object, ok := event.Object.(*fleet.BundleDeployment)
	switch {
	case !ok || event.Type == watch.Error:
		return []watch.Event{event}
	case s.version == object.ResourceVersion || older(object.ResourceVersion, s.version):
		return nil
	case event.Type == watch.Bookmark:
		if s.version != "" || object.Annotations[metav1.InitialEventsAnnotationKey] == "true" {
			s.version = object.ResourceVersion
		}
		return []watch.Event{event}
	case s.version != "":
		s.version = object.ResourceVersion
	}
	events := s.change(object, event.Type == watch.Deleted)
	if len(events) == 0 {
		// The informer must hear of the version all the same.
		empty := &fleet.BundleDeployment{}
		empty.ResourceVersion = object.ResourceVersion
		events = append(events, watch.Event{Type: watch.Bookmark, Object: empty})
	}
	return events
}

// change notes what an object carries now, or that it is gone, and returns what that is for the deployments.
func (s *Source) change(object *fleet.BundleDeployment, gone bool) []watch.Event {
	carrier, carried := s.exploded(object)
	if gone {
		carried = nil
	}
	keys := s.shown.keysOf(carrier, carried)
	was := make([]*fleet.BundleDeployment, len(keys))
	for i, k := range keys {
		was[i] = s.shown.get(k)
	}
	s.shown.set(carrier, carried)
	var events []watch.Event
	for i, k := range keys {
		now := s.shown.get(k)
		switch {
		case now == nil && was[i] == nil:
		case now == nil:
			events = append(events, watch.Event{Type: watch.Deleted, Object: at(was[i], object.ResourceVersion)})
		case was[i] == nil:
			events = append(events, watch.Event{Type: watch.Added, Object: at(now, object.ResourceVersion)})
		default:
			events = append(events, watch.Event{Type: watch.Modified, Object: at(now, object.ResourceVersion)})
		}
	}
	return events
}
