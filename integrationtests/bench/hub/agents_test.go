package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/merge/view"
)

// workers is how many requests this process has under way at a time.
const workers = 32

// agents answer all BundleDeployments of the hub, by one watch.
type agents struct {
	stack  *stack.Stack
	client client.Client
	// failing says that what a bundle deploys on a cluster cannot be applied.
	failing func(deployment *fleet.BundleDeployment) bool

	mutex sync.Mutex
	// known are all deployments there are, as they were last seen.
	known map[types.NamespacedName]*fleet.BundleDeployment
	// byNamespace are their names.
	byNamespace map[string]map[string]bool
	// held agents do not answer; what there is to answer waits. It is told by the objects that carry it.
	held    bool
	waiting map[types.NamespacedName]bool
	// gathering are merged objects whose answer waits a moment for others.
	gathering map[types.NamespacedName]bool
	counts    counts
	// heard counts what was heard of deployments.
	heard int
	// last is when the counts last changed.
	last    time.Time
	failure error
	work    chan types.NamespacedName
	// sent is how many statuses were written, those among them that an API server did not answer in time.
	sent int
}

func newAgents(t testing.TB, s *stack.Stack, c client.Client, config *rest.Config, failing func(*fleet.BundleDeployment) bool) *agents {
	t.Helper()
	a := &agents{
		stack: s, client: c, failing: failing, known: map[types.NamespacedName]*fleet.BundleDeployment{},
		byNamespace: map[string]map[string]bool{},
		waiting:     map[types.NamespacedName]bool{}, gathering: map[types.NamespacedName]bool{}, work: make(chan types.NamespacedName, 1<<20),
	}
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	t.Cleanup(func() { cancel(); group.Wait() })
	watched, err := cache.New(config, cache.Options{Scheme: c.Scheme(), NewInformer: carriedInformer})
	if err != nil {
		t.Fatal(err)
	}
	group.Go(func() { _ = watched.Start(ctx) })
	informer, err := watched.GetInformer(ctx, &fleet.BundleDeployment{})
	if err == nil {
		_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { a.note(object, false) },
			UpdateFunc: func(_, object any) { a.note(object, false) },
			DeleteFunc: func(object any) { a.note(object, true) },
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	for range workers {
		group.Go(func() { a.serve(ctx) })
	}
	return a
}

// carriedInformer makes an informer of deployments, whatever carries them.
func carriedInformer(from toolscache.ListerWatcher, example runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
	return toolscache.NewSharedIndexInformer(view.New(from, func(*fleet.BundleDeployment) {}), example, resync, indexers)
}

// gatherFor is how long agents wait for the answers of other parts of an object.
const gatherFor = 100 * time.Millisecond

// ask has an object answered, a merged one after a moment. The mutex is held.
func (a *agents) ask(deployment *fleet.BundleDeployment) {
	carrier := merge.Carriers(deployment)[0]
	object := types.NamespacedName{Namespace: deployment.Namespace, Name: carrier.Name}
	switch {
	case a.held:
		a.waiting[object] = true
	case !carrier.IsMerged():
		a.work <- object
	case !a.gathering[object]:
		a.gathering[object] = true
		time.AfterFunc(gatherFor, func() { a.work <- object })
	}
}

// note takes notice of a change.
func (a *agents) note(object any, gone bool) {
	if last, unseen := object.(toolscache.DeletedFinalStateUnknown); unseen {
		object = last.Obj
	}
	deployment, ok := object.(*fleet.BundleDeployment)
	if !ok {
		a.fail(fmt.Errorf("watch deployments: %T", object))
		return
	}
	key := client.ObjectKeyFromObject(deployment)
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.heard++
	before := a.counts
	a.count(a.known[key], -1)
	switch {
	case gone:
		delete(a.known, key)
		delete(a.byNamespace[key.Namespace], key.Name)
	default:
		a.count(deployment, 1)
		a.known[key] = deployment
		if a.byNamespace[key.Namespace] == nil {
			a.byNamespace[key.Namespace] = map[string]bool{}
		}
		a.byNamespace[key.Namespace][key.Name] = true
		if !a.answered(deployment) {
			a.ask(deployment)
		}
	}
	if a.counts != before {
		a.last = time.Now()
	}
}

// counts are over the deployments of the bundles that go everywhere.
type counts struct {
	all, answered int
	// changed were written a second time by the hub.
	changed, changedAnswered int
}

func (a *agents) count(deployment *fleet.BundleDeployment, sign int) {
	if deployment == nil || !strings.HasPrefix(deployment.Name, everywhere) {
		return
	}
	answered := a.answered(deployment)
	add := func(to *int, counts bool) {
		if counts {
			*to += sign
		}
	}
	add(&a.counts.all, true)
	add(&a.counts.answered, answered)
	add(&a.counts.changed, deployment.Generation > 1)
	add(&a.counts.changedAnswered, deployment.Generation > 1 && answered)
}

func (a *agents) fail(err error) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.failure == nil {
		a.failure = err
	}
}

// answered says that there is nothing to report.
func (a *agents) answered(deployment *fleet.BundleDeployment) bool {
	if a.failing(deployment) {
		return len(deployment.Status.Conditions) > 0
	}
	return deployment.Status.AppliedDeploymentID == deployment.Spec.DeploymentID && deployment.Status.Ready
}

// hold keeps the agents from answering; release lets them answer what came meanwhile.
func (a *agents) hold() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.held = true
}

func (a *agents) release() {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	a.held = false
	for key := range a.waiting {
		a.work <- key
	}
	clear(a.waiting)
}

func (a *agents) serve(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case key := <-a.work:
			err := a.answer(ctx, key)
			switch {
			case err == nil || ctx.Err() != nil:
			case apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err):
				a.fail(err)
			default:
				a.work <- key // an API server that is busy is asked again, as agents do
			}
		}
	}
}

// answer writes the statuses that an agent would write into an object.
func (a *agents) answer(ctx context.Context, key types.NamespacedName) error {
	var carried []*fleet.BundleDeployment
	a.mutex.Lock()
	delete(a.gathering, key)
	merged := a.known[key] == nil
	for _, deployment := range a.carriedBy(key) {
		if !a.answered(deployment) {
			carried = append(carried, deployment)
		}
	}
	a.mutex.Unlock()
	parts, whole := map[string]json.RawMessage{}, map[string]any{}
	for _, deployment := range carried {
		facts := report.Facts{Known: true, Release: "apps/" + deployment.Name + ":1", Applied: true, Objects: sights(deployment.Name)}
		if a.failing(deployment) {
			facts = report.Facts{Known: true, Failure: errors.New("apply ConfigMap apps/" + deployment.Name + "-0: the server refuses it")}
		}
		patch, err := report.Patch(&deployment.Status, report.Status(deployment, facts, time.Now()))
		if err != nil || patch == nil {
			return err
		}
		var fields struct {
			Status json.RawMessage `json:"status"`
		}
		if err := json.Unmarshal(patch, &fields); err != nil {
			return err
		}
		parts[deployment.Name], whole["status"] = fields.Status, fields.Status
	}
	if len(parts) == 0 {
		return nil
	}
	if merged {
		whole["status"] = map[string]any{"parts": parts}
	}
	patch, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	object.SetGroupVersionKind(fleet.GroupVersion.WithKind("BundleDeployment"))
	a.mutex.Lock()
	a.sent++
	a.mutex.Unlock()
	err = a.client.Status().Patch(ctx, object, client.RawPatch(types.MergePatchType, patch))
	return client.IgnoreNotFound(err)
}

// carriedBy returns the deployments that an object carries. The mutex is held.
func (a *agents) carriedBy(key types.NamespacedName) []*fleet.BundleDeployment {
	if alone := a.known[key]; alone != nil {
		return []*fleet.BundleDeployment{alone}
	}
	var carried []*fleet.BundleDeployment
	for other := range a.byNamespace[key.Namespace] {
		deployment := a.known[types.NamespacedName{Namespace: key.Namespace, Name: other}]
		if merge.Carriers(deployment)[0].Name == key.Name {
			carried = append(carried, deployment)
		}
	}
	return carried
}

// sights are three objects that are there and ready.
func sights(name string) []report.Sight {
	var all []report.Sight
	for i := range objectsPerBundle {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap",
			"metadata": map[string]any{
				"namespace": "apps", "name": fmt.Sprintf("%s-%d", name, i), "creationTimestamp": "2026-01-01T00:00:00Z",
			},
		}}
		all = append(all, report.Sight{Desired: object, Live: object, Verdict: diff.Verdict{State: diff.InSync}, Ready: true})
	}
	return all
}

// all returns the deployments there are.
func (a *agents) all() map[types.NamespacedName]*fleet.BundleDeployment {
	all, _ := a.since(-1)
	return all
}

// since returns all deployments, nil when nothing was heard of any since the given version, and the present version.
func (a *agents) since(version int) (map[types.NamespacedName]*fleet.BundleDeployment, int) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.heard == version {
		return nil, version
	}
	return maps.Clone(a.known), a.heard
}

// reports returns how many statuses the agents have written.
func (a *agents) reports() int {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.sent
}

// await waits until the counts are as wanted and returns when that was.
func (a *agents) await(t testing.TB, what string, wanted func(counts) bool) time.Time {
	t.Helper()
	var at time.Time
	await(t, what, func(context.Context) error {
		if err := a.stack.Err(); err != nil {
			return stack.Hopeless(err)
		}
		a.mutex.Lock()
		defer a.mutex.Unlock()
		switch {
		case a.failure != nil:
			return stack.Hopeless(a.failure)
		case !wanted(a.counts):
			return fmt.Errorf("%+v", a.counts)
		}
		at = a.last
		return nil
	})
	return at
}
