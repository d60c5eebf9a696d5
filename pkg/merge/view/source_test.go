package view

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// server is an API server with the events of its past.
type server struct {
	version int
	objects map[string]*fleet.BundleDeployment
	past    []watch.Event
}

func (s *server) put(object *fleet.BundleDeployment) {
	s.version++
	object.Namespace, object.ResourceVersion = "ns", strconv.Itoa(s.version)
	kind := watch.Modified
	if s.objects[object.Name] == nil {
		kind = watch.Added
	}
	s.objects[object.Name] = object
	s.past = append(s.past, watch.Event{Type: kind, Object: object.DeepCopy()})
}

func (s *server) remove(name string) {
	gone := s.objects[name].DeepCopy()
	s.version++
	gone.ResourceVersion = strconv.Itoa(s.version)
	delete(s.objects, name)
	s.past = append(s.past, watch.Event{Type: watch.Deleted, Object: gone})
}

func (s *server) all() []fleet.BundleDeployment {
	var all []fleet.BundleDeployment
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		all = append(all, *s.objects[name].DeepCopy())
	}
	return all
}

func (s *server) ListWithContext(context.Context, metav1.ListOptions) (runtime.Object, error) {
	list := &fleet.BundleDeploymentList{Items: s.all()}
	list.ResourceVersion = strconv.Itoa(s.version)
	return list, nil
}

// WatchWithContext begins with all there is, or behind a version, and ends with what there is.
func (s *server) WatchWithContext(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	events := watch.NewFakeWithChanSize(1000, false)
	if options.SendInitialEvents != nil && *options.SendInitialEvents {
		all := s.all()
		for i := range all {
			events.Add(&all[i])
		}
		mark := &fleet.BundleDeployment{}
		mark.ResourceVersion = strconv.Itoa(s.version)
		mark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
		events.Action(watch.Bookmark, mark)
		events.Stop()
		return events, nil
	}
	since, _ := strconv.Atoi(options.ResourceVersion)
	for _, event := range s.past {
		if version, _ := strconv.Atoi(event.Object.(*fleet.BundleDeployment).ResourceVersion); version > since {
			events.Action(event.Type, event.Object.DeepCopyObject())
		}
	}
	events.Stop()
	return events, nil
}

func (s *server) List(options metav1.ListOptions) (runtime.Object, error) {
	return s.ListWithContext(context.Background(), options)
}

func (s *server) Watch(options metav1.ListOptions) (watch.Interface, error) {
	return s.WatchWithContext(context.Background(), options)
}

// informer keeps what a source tells, as a reflector does.
type informer struct {
	t       *testing.T
	source  *Source
	store   map[string]*fleet.BundleDeployment
	version string
	deleted []string
}

func (i *informer) list() {
	found, err := i.source.List(metav1.ListOptions{})
	if err != nil {
		i.t.Fatal(err)
	}
	list := found.(*fleet.BundleDeploymentList)
	i.store, i.version = map[string]*fleet.BundleDeployment{}, list.ResourceVersion
	for n := range list.Items {
		if i.store[list.Items[n].Name] != nil {
			i.t.Errorf("%s is listed twice", list.Items[n].Name)
		}
		i.store[list.Items[n].Name] = &list.Items[n]
	}
}

// watch takes at most so many events; behind them, somebody may take more and drop them.
func (i *informer) watch(most int, initial bool) { i.watchAndDrop(most, 0, initial) }

func (i *informer) watchAndDrop(most, drop int, initial bool) {
	options := metav1.ListOptions{ResourceVersion: i.version}
	if initial {
		options = metav1.ListOptions{SendInitialEvents: &initial}
		i.store = map[string]*fleet.BundleDeployment{}
	}
	events, err := i.source.Watch(options)
	if err != nil {
		i.t.Fatal(err)
	}
	defer events.Stop()
	for event := range events.ResultChan() {
		object := event.Object.(*fleet.BundleDeployment)
		i.version = object.ResourceVersion
		switch event.Type {
		case watch.Added:
			i.store[object.Name] = object
		case watch.Modified:
			if i.store[object.Name] == nil {
				i.t.Errorf("%s changes and is not there", object.Name)
			}
			i.store[object.Name] = object
		case watch.Deleted:
			if i.store[object.Name] != nil {
				i.deleted = append(i.deleted, object.Name)
			}
			delete(i.store, object.Name)
		}
		if most--; most == 0 && !initial {
			for range drop {
				<-events.ResultChan()
			}
			return
		}
	}
}

func alone(name, id string) *fleet.BundleDeployment {
	made := &fleet.BundleDeployment{}
	made.Name, made.Labels, made.Spec.DeploymentID = name, map[string]string{fleet.BundleLabel: name}, id
	return made
}

func merged(name string, ids map[string]string) *fleet.BundleDeployment {
	made := &fleet.BundleDeployment{}
	made.Name, made.Labels = name, map[string]string{fleet.MergedLabel: "repo"}
	made.Spec.Parts, made.Status.Parts = map[string]fleet.DeploymentPart{}, map[string]fleet.DeploymentPartStatus{}
	for part, id := range ids {
		made.Spec.Parts[part] = merge.PartOf(alone(part, id))
		made.Status.Parts[part] = fleet.DeploymentPartStatus{AppliedDeploymentID: id}
	}
	return made
}

// step changes something at random.
func (s *server) step(r *rand.Rand) {
	name := fmt.Sprintf("app-%d", r.IntN(4))
	carrier := fmt.Sprintf("merged-%d", r.IntN(2))
	switch r.IntN(5) {
	case 0:
		if s.objects[name] != nil {
			s.remove(name)
		}
	case 1:
		if s.objects[carrier] != nil {
			s.remove(carrier)
		}
	case 2:
		s.put(alone(name, strconv.Itoa(r.IntN(100))))
	default:
		ids := map[string]string{}
		for part := range 4 {
			if r.IntN(2) == 0 {
				ids[fmt.Sprintf("app-%d", part)] = strconv.Itoa(r.IntN(100))
			}
		}
		s.put(merged(carrier, ids))
	}
}

// Whatever happens and wherever watches end, an informer has in the end what the objects carry.
func TestInformersHaveWhatObjectsCarry(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 0))
		hub := &server{objects: map[string]*fleet.BundleDeployment{}}
		told := &informer{t: t, source: New(hub, func(*fleet.BundleDeployment) {})}
		for range r.IntN(6) {
			hub.step(r)
		}
		told.list()
		for range 30 {
			switch r.IntN(8) {
			case 0:
				told.list()
			case 1:
				told.watch(0, true)
			case 2, 3, 4:
				told.watchAndDrop(1+r.IntN(4), r.IntN(3), false)
			default:
				hub.step(r)
			}
		}
		told.watch(0, false)
		want := map[string]*fleet.BundleDeployment{}
		all := merge.ExplodeAll(hub.all())
		for i := range all {
			want[all[i].Name] = &all[i]
			if told := told.store[all[i].Name]; told != nil {
				if older(told.ResourceVersion, all[i].ResourceVersion) {
					t.Errorf("seed %d: %s is told at version %s, and was changed at %s", seed, told.Name, told.ResourceVersion, all[i].ResourceVersion)
				}
				all[i].ResourceVersion = told.ResourceVersion
			}
		}
		if diff := cmp.Diff(want, told.store); diff != "" {
			t.Fatalf("seed %d (-carried +told):\n%s", seed, diff)
		}
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

// A deployment that moves from one object to another, by what order the hub may choose, is never told to be deleted.
func TestMovingIsNoDeletion(t *testing.T) {
	hub := &server{objects: map[string]*fleet.BundleDeployment{}}
	told := &informer{t: t, source: New(hub, func(*fleet.BundleDeployment) {})}
	hub.put(alone("app", "1"))
	told.list()
	for _, step := range []func(){
		func() { hub.put(merged("one", map[string]string{"app": "1", "other": "1"})) },
		func() { hub.remove("app") },
		func() { hub.put(merged("two", map[string]string{"app": "1"})) },
		func() { hub.put(merged("one", map[string]string{"other": "1"})) },
		func() { hub.put(alone("app", "1")) },
		func() { hub.remove("two") },
	} {
		step()
		told.watch(0, false)
		if told.store["app"] == nil || len(told.deleted) > 0 {
			t.Fatalf("deleted: %v", told.deleted)
		}
	}
	hub.put(merged("one", nil))
	hub.remove("app")
	told.watch(0, false)
	if !slices.Equal(told.deleted, []string{"other", "app"}) {
		t.Errorf("deleted: %v", told.deleted)
	}
}

func TestIn(t *testing.T) {
	objects := []fleet.BundleDeployment{*alone("app", "1"), *merged("one", map[string]string{"app": "1", "other": "2"})}
	for i := range objects {
		objects[i].Namespace = "ns"
	}
	for name, want := range map[string]int{"app": 2, "other": 1, "one": 0} {
		carriers := 0
		if found := In(objects, types.NamespacedName{Namespace: "ns", Name: name}); found != nil {
			carriers = len(merge.Carriers(found))
		}
		if carriers != want {
			t.Errorf("%s is carried by %d objects, want %d", name, carriers, want)
		}
	}
}
