package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/bench/report"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
)

// trigger is how the hub comes to see a commit.
type trigger string

const (
	webhook trigger = "webhook"
	poll    trigger = "poll every 2 s"

	pollInterval = 2 * time.Second
	// changeLimit is what a change of one value may take from the moment the commit is seen, in seconds.
	changeLimit = 2.0
)

// change is a commit that can be made again and again.
type change struct {
	name     string
	follower *follower
	// limit is what it may take from seen to changed objects, in seconds; nil when nothing is said of it.
	limit *float64
	// pushes counts those made, so that each makes a change.
	pushes int
	// Of a push by its number: its files, the objects it makes, and the same for applyFloor.
	files  func(push int) map[string]string
	sought func(push int) sought
	floor  func(push int) []*unstructured.Unstructured
}

// measure pushes the change several times and adds what that took.
func (w *world) measure(b *testing.B, c *change, by trigger, runs int) {
	b.Helper()
	c.follower.every(b, map[trigger]time.Duration{webhook: never, poll: pollInterval}[by])
	w.applyFloor(b, c.floor(c.pushes)) // the first one creates the objects
	var seen, pushed, floors []time.Duration
	for range runs {
		w.settle(b)
		c.pushes++
		floors = append(floors, w.applyFloor(b, c.floor(c.pushes)))
		fromSeen, fromPush := w.push(b, c, by)
		seen, pushed = append(seen, fromSeen), append(pushed, fromPush)
	}
	median, longest := report.Spread(seen)
	_, longestPush := report.Spread(pushed)
	floor, _ := report.Spread(floors)
	chapter := "push to changed objects on all members"
	name := fmt.Sprintf("%s, %s, ", by, c.name)
	sheet.Add(
		report.Figure{Chapter: chapter, Name: name + "from seen, median", Value: median, Unit: report.Seconds, Floor: &floor, Limit: c.limit},
		report.Figure{Chapter: chapter, Name: name + fmt.Sprintf("from seen, longest of %d", runs), Value: longest, Unit: report.Seconds, Floor: &floor, Limit: c.limit},
		report.Figure{Chapter: chapter, Name: name + "from push, longest", Value: longestPush, Unit: report.Seconds, Floor: &floor},
	)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median, "s-median")
	b.ReportMetric(longest, "s-longest")
	b.ReportMetric(median/floor, "×floor")
}

// push makes the change once and returns how long it took until it was on all members: from the moment the
// commit was seen, which is when the webhook was sent or git's answer to a poll named the commit, and from
// the moment it was pushed.
func (w *world) push(b *testing.B, c *change, by trigger) (fromSeen, fromPush time.Duration) {
	b.Helper()
	arrived := w.sight(b, c.sought(c.pushes))
	commit := c.follower.commit(b, c.files(c.pushes))
	pushed := time.Now()
	seen := pushed
	if by == webhook {
		seen = time.Now()
		c.follower.announce(b, commit)
	}
	changed := arrived()
	if by == poll {
		seen = w.git.seen(b, commit)
	}
	c.follower.awaitReady(b, commit)
	return changed.Sub(seen), changed.Sub(pushed)
}

// Of the examples, the value of the chart that the demo changes too.
const (
	exampleFile  = "helm-chart/fleet.yaml"
	exampleValue = "replicas: 2"
)

// exampleChange deploys the examples; its change is a value of a chart, seen in one Deployment.
func (w *world) exampleChange(t testing.TB) *change {
	t.Helper()
	root, err := stack.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(filepath.Join(root, "examples", filepath.FromSlash(exampleFile)))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(content), exampleValue) {
		t.Fatalf("examples/%s holds no %q", exampleFile, exampleValue)
	}
	replicas := func(push int) int32 { return int32(3 + push%2) }
	c := &change{name: "a value of a chart", limit: new(changeLimit), follower: w.follow(t, "examples", w.sources.Examples, pollInterval, w.sources.Paths...)}
	c.files = func(push int) map[string]string {
		return map[string]string{exampleFile: strings.Replace(string(content), exampleValue, fmt.Sprintf("replicas: %d", replicas(push)), 1)}
	}
	c.sought = func(push int) sought {
		return sought{
			list: &appsv1.DeploymentList{}, options: []client.ListOption{client.InNamespace("helm-chart")}, count: 1,
			wanted: func(object client.Object) bool {
				deployment, ok := object.(*appsv1.Deployment)
				return ok && deployment.Name == "guestbook" && *deployment.Spec.Replicas == replicas(push)
			},
		}
	}
	c.follower.awaitReady(t, c.follower.commit(t, c.files(c.pushes)))
	bare := w.bareDeployment(t, client.ObjectKey{Namespace: "helm-chart", Name: "guestbook"})
	c.floor = func(push int) []*unstructured.Unstructured {
		object := bare.DeepCopy()
		if err := unstructured.SetNestedField(object.Object, int64(replicas(push)), "spec", "replicas"); err != nil {
			t.Fatal(err)
		}
		return []*unstructured.Unstructured{object}
	}
	return c
}

// bareDeployment returns a Deployment of a member without anything that ties it to its owner, for the
// namespace of the floor.
func (w *world) bareDeployment(t testing.TB, key client.ObjectKey) *unstructured.Unstructured {
	t.Helper()
	var deployment appsv1.Deployment
	if err := w.members[0].Get(t.Context(), key, &deployment); err != nil {
		t.Fatal(err)
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&deployment.Spec)
	if err != nil {
		t.Fatal(err)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment",
		"metadata": map[string]any{"namespace": floorNamespace, "name": key.Name},
		"spec":     spec,
	}}
}

// generatedChange deploys ten bundles of ten ConfigMaps; its change is one of all hundred.
func (w *world) generatedChange(t testing.TB) *change {
	t.Helper()
	repository := generated{name: "generated", bundles: 10, objects: 10}
	git, err := w.sources.Git.Repo(fmt.Sprintf("generated-%d", time.Now().UnixNano()))
	if err != nil {
		t.Fatal(err)
	}
	value := func(push int) string { return fmt.Sprintf("push %d", push) }
	commit, err := git.Commit(repository.all(value(0)), "All bundles")
	if err != nil {
		t.Fatal(err)
	}
	c := &change{
		name:     "100 objects of 10 bundles",
		follower: w.follow(t, repository.name, git, pollInterval),
		files:    func(push int) map[string]string { return repository.all(value(push)) },
		sought:   func(push int) sought { return repository.sought(repository.bundles, value(push)) },
		floor:    func(push int) []*unstructured.Unstructured { return repository.floor(value(push)) },
	}
	c.follower.awaitReady(t, commit)
	return c
}
