package carrier

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// hub is an API server whose writes of deployments are counted.
type hub struct {
	client.Client
	mutex  sync.Mutex
	writes map[string]int
}

func (h *hub) count(verb string) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.writes[verb]++
}

func (h *hub) counted() map[string]int {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	counted := maps.Clone(h.writes)
	clear(h.writes)
	return counted
}

func newHub(t *testing.T) *hub {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	h := &hub{writes: map[string]int{}}
	h.Client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&fleet.BundleDeployment{}).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.CreateOption) error {
			h.count("create")
			return c.Create(ctx, object, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			h.count("patch")
			return c.Patch(ctx, object, patch, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, object client.Object, options ...client.DeleteOption) error {
			h.count("delete")
			return c.Delete(ctx, object, options...)
		},
	}).Build()
	return h
}

// shown are the deployments that the hub's objects carry.
func (h *hub) shown(t *testing.T) map[string]*fleet.BundleDeployment {
	t.Helper()
	var list fleet.BundleDeploymentList
	if err := h.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	shown := map[string]*fleet.BundleDeployment{}
	for _, deployment := range merge.ExplodeAll(list.Items) {
		shown[deployment.Name] = &deployment
	}
	return shown
}

// objects are the names of the hub's objects.
func (h *hub) objects(t *testing.T) []string {
	t.Helper()
	var list fleet.BundleDeploymentList
	if err := h.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names
}

// cached is the client whose cache shows deployments.
type cached struct{ client.Client }

func (c cached) Get(ctx context.Context, key types.NamespacedName, object client.Object, _ ...client.GetOption) error {
	found, err := Find(ctx, c.Client, key)
	if err == nil {
		*object.(*fleet.BundleDeployment) = *found
	}
	return err
}

var place = &merge.Place{Workspace: "ws", Repo: "repo", MaxBytes: merge.DefaultMaxBytes}

func deployment(name, id string) *fleet.BundleDeployment {
	made := &fleet.BundleDeployment{}
	made.Namespace, made.Name = "cluster-1", name
	made.Labels = map[string]string{
		fleet.BundleLabel: name, fleet.BundleNamespaceLabel: "ws", fleet.ContentLabel: "s-" + name, fleet.ClusterLabel: "one",
	}
	made.Spec.DeploymentID = id
	return made
}

// together does something with many deployments at the same time.
func together(t *testing.T, names []string, do func(name string) error) {
	t.Helper()
	problems := make([]error, len(names))
	var group sync.WaitGroup
	for i, name := range names {
		group.Go(func() { problems[i] = do(name) })
	}
	group.Wait()
	if err := errors.Join(problems...); err != nil {
		t.Fatal(err)
	}
}

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("app-%02d", i))
	}
	return all
}

// What many bundles change at the same time is one write for each change of the repository.
func TestOneWriteForAllBundles(t *testing.T) { synctest.Test(t, oneWriteForAllBundles) }

func oneWriteForAllBundles(t *testing.T) {
	h := newHub(t)
	writer, ctx := New(cached{h}, h), t.Context()
	together(t, names(10), func(name string) error { return writer.Create(ctx, deployment(name, "1"), place) })
	if diff := cmp.Diff(map[string]int{"create": 1}, h.counted()); diff != "" {
		t.Errorf("creation (-want +got):\n%s", diff)
	}
	shown := h.shown(t)
	if len(shown) != 10 || len(h.objects(t)) != 1 {
		t.Fatalf("%d deployments in %v", len(shown), h.objects(t))
	}
	together(t, names(10), func(name string) error {
		after := shown[name].DeepCopy()
		after.Spec.DeploymentID, after.Labels[fleet.ContentLabel] = "2", "s-new"
		if err := writer.Update(ctx, after, shown[name]); err != nil {
			return err
		}
		if after.Generation != 2 || after.ResourceVersion == shown[name].ResourceVersion {
			return fmt.Errorf("%s: generation %d, version %s", name, after.Generation, after.ResourceVersion)
		}
		return nil
	})
	if diff := cmp.Diff(map[string]int{"patch": 1}, h.counted()); diff != "" {
		t.Errorf("change (-want +got):\n%s", diff)
	}
	shown = h.shown(t)
	for name, one := range shown {
		if one.Spec.DeploymentID != "2" || one.Labels[fleet.ContentLabel] != "s-new" || one.Generation != 2 {
			t.Errorf("%s was not changed: %+v", name, one)
		}
	}
	together(t, names(10), func(name string) error { return writer.Delete(ctx, shown[name]) })
	if diff := cmp.Diff(map[string]int{"delete": 1}, h.counted()); diff != "" {
		t.Errorf("deletion (-want +got):\n%s", diff)
	}
	if left := h.objects(t); len(left) != 0 {
		t.Errorf("%v are left", left)
	}
}

// Marks find the objects of a bundle and of contents as long as they are there.
func TestMarks(t *testing.T) { synctest.Test(t, marks) }

func marks(t *testing.T) {
	h := newHub(t)
	writer, ctx := New(cached{h}, h), t.Context()
	of := func(name string) bool {
		left, err := Left(ctx, h, types.NamespacedName{Namespace: "ws", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		return left
	}
	content := func(id string) bool {
		used, err := UserOf(ctx, h, id, true)
		if err != nil {
			t.Fatal(err)
		}
		return used
	}
	together(t, []string{"a", "b"}, func(name string) error { return writer.Create(ctx, deployment(name, "1"), place) })
	if err := writer.Create(ctx, deployment("c", "1"), nil); err != nil {
		t.Fatal(err)
	}
	if !of("a") || !of("b") || !of("c") || of("d") || !content("s-a") || !content("s-c") || content("s-d") {
		t.Errorf("found %t %t %t %t %t %t %t", of("a"), of("b"), of("c"), of("d"), content("s-a"), content("s-c"), content("s-d"))
	}
	before := h.shown(t)["a"]
	after := before.DeepCopy()
	after.Spec.DeploymentID, after.Labels[fleet.ContentLabel] = "2", "s-new"
	if err := writer.Update(ctx, after, before); err != nil {
		t.Fatal(err)
	}
	if content("s-a") || !content("s-b") || !content("s-new") {
		t.Errorf("found %t %t %t", content("s-a"), content("s-b"), content("s-new"))
	}
	if err := writer.Delete(ctx, h.shown(t)["b"]); err != nil {
		t.Fatal(err)
	}
	if !of("a") || of("b") || content("s-b") || !content("s-new") {
		t.Errorf("found %t %t %t %t", of("a"), of("b"), content("s-b"), content("s-new"))
	}
	// A part that somebody took out by hand leaves its mark, which holds nothing up.
	var object fleet.BundleDeployment
	if err := h.Get(ctx, types.NamespacedName{Namespace: "cluster-1", Name: place.Name(0)}, &object); err != nil {
		t.Fatal(err)
	}
	delete(object.Spec.Parts, "a")
	if err := h.Update(ctx, &object); err != nil {
		t.Fatal(err)
	}
	if of("a") || !of("c") {
		t.Errorf("found %t %t", of("a"), of("c"))
	}
}

// Deployments move into and out of merged objects without ever being in none, and stay in the first until the
// agent has reported in the second.
func TestMove(t *testing.T) { synctest.Test(t, move) }

func move(t *testing.T) {
	h := newHub(t)
	writer, ctx := New(cached{h}, h), t.Context()
	report := func() {
		var list fleet.BundleDeploymentList
		if err := h.List(ctx, &list); err != nil {
			t.Fatal(err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			before := object.DeepCopy()
			object.Status.AppliedDeploymentID = object.Spec.DeploymentID
			for name, part := range object.Spec.Parts {
				if object.Status.Parts == nil {
					object.Status.Parts = map[string]fleet.DeploymentPartStatus{}
				}
				object.Status.Parts[name] = fleet.DeploymentPartStatus{AppliedDeploymentID: part.Spec.DeploymentID}
			}
			if err := h.Status().Patch(ctx, object, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := writer.Create(ctx, deployment("app", "1"), nil); err != nil {
		t.Fatal(err)
	}
	report()
	other := &merge.Place{Workspace: "ws", Repo: "other", MaxBytes: merge.DefaultMaxBytes}
	for step, to := range []*merge.Place{place, nil, place, other, nil} {
		for round, want := range []int{2, 2, 1, 1} {
			if round == 2 {
				report()
			}
			if err := writer.Move(ctx, h.shown(t)["app"], to); err != nil {
				t.Fatal(err)
			}
			shown := h.shown(t)["app"]
			if shown == nil || len(merge.Carriers(shown)) != want || shown.Spec.DeploymentID != "1" || shown.Status.AppliedDeploymentID != "1" {
				t.Fatalf("step %d, round %d: %+v", step, round, shown)
			}
			if settled := Settled(shown, to); settled != (want == 1) {
				t.Errorf("step %d, round %d: settled %t", step, round, settled)
			}
		}
		if left := h.objects(t); len(left) != 1 {
			t.Errorf("step %d: %v are left", step, left)
		}
	}
}

// While a deployment is on its way, a change of it reaches both objects, and a deletion too.
func TestChangesOnTheWay(t *testing.T) {
	for name, first := range map[string]*merge.Place{"into a merged object": nil, "out of it": place} {
		t.Run(name, func(t *testing.T) {
			h := newHub(t)
			writer, ctx := New(cached{h}, h), t.Context()
			if err := writer.Create(ctx, deployment("app", "1"), first); err != nil {
				t.Fatal(err)
			}
			to := place
			if first != nil {
				to = nil
			}
			if err := writer.Move(ctx, h.shown(t)["app"], to); err != nil {
				t.Fatal(err)
			}
			before := h.shown(t)["app"]
			after := before.DeepCopy()
			after.Spec.DeploymentID = "2"
			if err := writer.Update(ctx, after, before); err != nil {
				t.Fatal(err)
			}
			var list fleet.BundleDeploymentList
			if err := h.List(ctx, &list); err != nil {
				t.Fatal(err)
			}
			for i := range list.Items {
				for _, one := range merge.Explode(&list.Items[i]) {
					if one.Spec.DeploymentID != "2" {
						t.Errorf("%s has %s", list.Items[i].Name, one.Spec.DeploymentID)
					}
				}
			}
			if err := writer.Delete(ctx, h.shown(t)["app"]); err != nil {
				t.Fatal(err)
			}
			if left := h.objects(t); len(left) != 0 {
				t.Errorf("%v are left", left)
			}
		})
	}
}

// Nothing of what is there moves when something is added, and no object is fuller than allowed.
func TestSplitting(t *testing.T) { synctest.Test(t, splitting) }

func splitting(t *testing.T) {
	h := newHub(t)
	writer, ctx := New(cached{h}, h), t.Context()
	small := &merge.Place{Workspace: "ws", Repo: "repo", MaxBytes: 1500}
	at := map[string]string{}
	for _, name := range names(12) {
		if err := writer.Create(ctx, deployment(name, strings.Repeat("x", 200)), small); err != nil {
			t.Fatal(err)
		}
		for other, one := range h.shown(t) {
			now := merge.Carriers(one)[0].Name
			if before, known := at[other]; known && before != now {
				t.Errorf("%s came, and %s moved from %s to %s", name, other, before, now)
			}
			at[other] = now
		}
	}
	var list fleet.BundleDeploymentList
	if err := h.List(ctx, &list); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		load, err := merge.LoadOf(&list.Items[i])
		if err != nil || load.Bytes > small.MaxBytes {
			t.Errorf("%s: %+v, %v", list.Items[i].Name, load, err)
		}
	}
	if len(list.Items) < 3 || len(at) != 12 {
		t.Errorf("%d objects carry %d", len(list.Items), len(at))
	}
}

// A name that something else carries is not taken.
func TestNamesAreTakenOnce(t *testing.T) {
	for name, first := range map[string]*merge.Place{"alone": nil, "merged": place} {
		for second, other := range map[string]*merge.Place{"alone": nil, "merged": {Workspace: "other", Repo: "repo", MaxBytes: 1 << 20}} {
			t.Run(name+" and "+second, func(t *testing.T) {
				h := newHub(t)
				writer, ctx := New(cached{h}, h), t.Context()
				if err := writer.Create(ctx, deployment("app", "1"), first); err != nil {
					t.Fatal(err)
				}
				if err := writer.Create(ctx, deployment("app", "2"), other); !apierrors.IsAlreadyExists(err) {
					t.Errorf("got %v", err)
				}
			})
		}
	}
}

// Two replicas and many bundles change parts of the same objects at random, and no part is lost.
func TestNoPartIsLost(t *testing.T) { synctest.Test(t, noPartIsLost) }

func noPartIsLost(t *testing.T) {
	h := newHub(t)
	writers := []*Writer{New(cached{h}, h), New(cached{h}, h)}
	all := names(12)
	want := make([]*fleet.BundleDeployment, len(all))
	var group sync.WaitGroup
	for i, name := range all {
		group.Go(func() {
			r, writer := rand.New(rand.NewPCG(uint64(i), 0)), writers[i%2]
			for step := range 4 {
				var err error
				switch {
				case want[i] == nil:
					want[i] = deployment(name, fmt.Sprint(step))
					err = writer.Create(t.Context(), want[i], place)
				case r.IntN(4) == 0:
					err = writer.Delete(t.Context(), h.find(t, name))
					want[i] = nil
				default:
					before := h.find(t, name)
					after := before.DeepCopy()
					after.Spec.DeploymentID = fmt.Sprint(step)
					err = writer.Update(t.Context(), after, before)
					want[i] = after
				}
				if err != nil {
					t.Errorf("%s, step %d: %v", name, step, err)
				}
			}
		})
	}
	group.Wait()
	shown := h.shown(t)
	for i, name := range all {
		switch {
		case (want[i] == nil) != (shown[name] == nil):
			t.Errorf("%s: want %v, is %v", name, want[i] != nil, shown[name] != nil)
		case want[i] != nil && want[i].Spec.DeploymentID != shown[name].Spec.DeploymentID:
			t.Errorf("%s: want %s, is %s", name, want[i].Spec.DeploymentID, shown[name].Spec.DeploymentID)
		}
	}
}

func (h *hub) find(t *testing.T, name string) *fleet.BundleDeployment {
	found, err := Find(t.Context(), h, types.NamespacedName{Namespace: "cluster-1", Name: name})
	if err != nil {
		t.Error(err)
	}
	return found
}
