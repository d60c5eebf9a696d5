package handover

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const grace = 10 * time.Second

// cluster is deployments by name; their object sets are named like them.
type cluster map[string]*fleet.BundleDeployment

func (c cluster) Get(name string) (*fleet.BundleDeployment, error) {
	if name == "unreadable" {
		return nil, errors.New("unreadable")
	}
	return c[name], nil
}

func (c cluster) Active() []*fleet.BundleDeployment {
	var active []*fleet.BundleDeployment
	for _, deployment := range c {
		if deployment.DeletionTimestamp == nil {
			active = append(active, deployment)
		}
	}
	return active
}

func (c cluster) Owner(setHash string) (string, bool) { return setHash, setHash != "stranger" }

func (c cluster) put(name, id string) {
	c[name] = &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c[name].Spec.DeploymentID = id
}

func object(kind, name string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{}
	made.SetAPIVersion("v1")
	made.SetKind(kind)
	made.SetNamespace("n")
	made.SetName(name)
	return made
}

var (
	volume = object("PersistentVolumeClaim", "data")
	config = object("ConfigMap", "config")
	key    = manifest.KeyOf(config)
)

// An object is another's only when its owner is known to have let go of it: gone, going, or without it in what it has
// deployed of its present version.
func TestYields(t *testing.T) {
	world := cluster{}
	for _, name := range []string{"keeps", "lacks", "behind", "new", "going"} {
		world.put(name, "1")
	}
	world["going"].DeletionTimestamp = &metav1.Time{}
	ledger := New(world, grace)
	ledger.Took("keeps", "1", []*unstructured.Unstructured{config})
	ledger.Took("lacks", "1", nil)
	ledger.Took("behind", "0", nil)
	for owner, want := range map[string]bool{
		"keeps": false, "lacks": true, "behind": false, "new": false, "going": true, "gone": true, "stranger": false, "unreadable": false,
	} {
		if got := ledger.Yields("claimant")(owner, key); got != want {
			t.Errorf("%s yields: %t", owner, got)
		}
	}
	for owner, want := range map[string]bool{"keeps": false, "lacks": false, "going": true, "gone": true, "unreadable": false} {
		if got := ledger.Leaves("claimant")(owner); got != want {
			t.Errorf("%s leaves: %t", owner, got)
		}
	}
}

// Whoever was refused an object is woken when its owner lets go of it, once, and need not wait for its backoff.
func TestClaimantIsWoken(t *testing.T) {
	world := cluster{}
	world.put("from", "1")
	world.put("to", "1")
	ledger := New(world, grace)
	ledger.Took("from", "1", []*unstructured.Unstructured{config})
	ledger.Yields("to")("from", key)
	if wake := ledger.Took("from", "1", []*unstructured.Unstructured{config}); len(wake) > 0 || ledger.MayRetry("to") {
		t.Errorf("woken %v while the owner has it", wake)
	}
	if wake := ledger.Took("from", "2", nil); !slices.Equal(wake, []string{"to"}) {
		t.Errorf("woken %v", wake)
	}
	if !ledger.MayRetry("to") || ledger.MayRetry("to") {
		t.Error("the claimant may not retry once")
	}
	ledger.Took("to", "1", []*unstructured.Unstructured{config})
	if wake := ledger.Took("from", "3", nil); len(wake) > 0 {
		t.Errorf("woken %v after it was taken", wake)
	}
}

// An uninstall waits for who has something new to try, and for who was refused something, but not for ever; with a
// volume it waits for a while in any case, and for as long as somebody cannot ask yet.
func TestWait(t *testing.T) {
	refused := func(l *Ledger) { l.Yields("other")("leaves", key) }
	for name, test := range map[string]struct {
		settled bool // the other deployment was tried
		err     error
		before  func(*Ledger)
		volume  bool
		after   time.Duration
		want    time.Duration
		wake    []string
	}{
		"nobody wants anything":        {settled: true},
		"something new":                {want: retry},
		"something new for long":       {after: patience},
		"refused an object":            {settled: true, before: refused, want: retry, wake: []string{"other"}},
		"refused the release":          {settled: true, before: func(l *Ledger) { l.Leaves("other")("leaves") }, want: retry, wake: []string{"other"}},
		"refused for long":             {settled: true, before: refused, after: patience, wake: []string{"other"}},
		"a volume":                     {settled: true, volume: true, want: claimRetry},
		"a volume after its grace":     {settled: true, volume: true, after: grace},
		"a volume, another waits":      {settled: true, volume: true, after: time.Hour, err: fault.New(fault.Waiting, "X", "later"), want: claimRetry},
		"no volume, another waits":     {settled: true, err: fault.New(fault.Waiting, "X", "later")},
		"a volume, another has failed": {settled: true, volume: true, after: grace, err: errors.New("failed")},
	} {
		world := cluster{}
		world.put("other", "1")
		world.put("leaves", "1")
		ledger := New(world, grace)
		ledger.Tried("leaves", "1", nil)
		if test.settled {
			ledger.Tried("other", "1", test.err)
		}
		if test.before != nil {
			test.before(ledger)
		}
		start := time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)
		wait, wake := ledger.Wait("leaves", test.volume, start)
		if !slices.Equal(wake, test.wake) {
			t.Errorf("%s: woken %v, want %v", name, wake, test.wake)
		}
		if test.after > 0 {
			if wait == 0 {
				t.Errorf("%s: did not wait at first", name)
			}
			if wait, wake = ledger.Wait("leaves", test.volume, start.Add(test.after)); len(wake) > 0 {
				t.Errorf("%s: woken again: %v", name, wake)
			}
		}
		if wait != test.want {
			t.Errorf("%s: wait %s, want %s", name, wait, test.want)
		}
	}
}

// What a release dropped is deleted when nobody can ask for it; people are told of what is kept for somebody.
func TestDivide(t *testing.T) {
	for name, test := range map[string]struct {
		before  func(cluster, *Ledger)
		ago     time.Duration
		gone    int
		reasons int
		again   time.Duration
	}{
		"nobody asks":      {ago: grace, gone: 2},
		"a volume at once": {gone: 1, reasons: 1, again: grace},
		"a claimant":       {before: func(_ cluster, l *Ledger) { l.Yields("other")("owner", key) }, ago: time.Hour, gone: 1, reasons: 1, again: claimRetry},
		"somebody pending": {before: func(c cluster, _ *Ledger) { c.put("other", "2") }, ago: time.Hour, again: retry},
		"somebody waiting": {before: func(_ cluster, l *Ledger) { l.Tried("other", "1", fault.New(fault.Waiting, "X", "later")) }, ago: time.Hour, gone: 1, reasons: 1, again: claimRetry},
		"a claimant gone": {before: func(_ cluster, l *Ledger) {
			l.Yields("other")("owner", key)
			l.Forget("other")
			l.Tried("other", "1", nil)
		}, ago: grace, gone: 2},
	} {
		world := cluster{}
		world.put("owner", "1")
		world.put("other", "1")
		ledger := New(world, grace)
		ledger.Tried("other", "1", nil)
		if test.before != nil {
			test.before(world, ledger)
		}
		division := ledger.Divide("owner", []*unstructured.Unstructured{volume, config}, test.ago)
		if len(division.Gone) != test.gone || len(division.Gone)+len(division.Kept) != 2 || len(division.Reasons) != test.reasons || division.Again != test.again {
			t.Errorf("%s: gone %d, kept %d, %q, again %s", name, len(division.Gone), len(division.Kept), division.Reasons, division.Again)
		}
		for _, object := range division.Kept {
			if !ledger.Spares("owner")(manifest.KeyOf(object)) {
				t.Errorf("%s: keeps %s, which a deployment would not spare", name, object.GetName())
			}
		}
	}
}

// Only a volume that is there and the bundle's own goes with its release.
func TestHasVolume(t *testing.T) {
	live := object("PersistentVolumeClaim", "data")
	live.SetLabels(map[string]string{fleet.SetHashLabel: "mine"})
	known := func(*unstructured.Unstructured) *unstructured.Unstructured { return live }
	nothing := func(*unstructured.Unstructured) *unstructured.Unstructured { return nil }
	other := object("PersistentVolumeClaim", "data")
	other.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "PersistentVolumeClaim"})
	for name, test := range map[string]struct {
		object  *unstructured.Unstructured
		setHash string
		live    func(*unstructured.Unstructured) *unstructured.Unstructured
		want    bool
	}{
		"its own":      {volume, "mine", known, true},
		"another's":    {volume, "theirs", known, false},
		"not there":    {volume, "mine", nothing, false},
		"no volume":    {config, "mine", known, false},
		"of that name": {other, "mine", known, false},
	} {
		if got := HasVolume([]*unstructured.Unstructured{test.object}, test.setHash, test.live); got != test.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
