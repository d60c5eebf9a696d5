package synced

import (
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/diff"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
)

// Memory holds, for every object that was found in sync, what it looked like then: two digests an
// object. An object that still looks so needs no request to be known in sync, and none to be applied.
// It is lost with the process; then one dry run an object fills it again.
type Memory struct {
	mu   sync.Mutex
	sets map[string]map[manifest.Key]seen
}

type seen struct {
	desired, live string
	// applied says that this process has applied the object, so that its fields are our manager's.
	applied bool
	// excepted is by which rules alone the object is in sync (diff.Rules.ID), "" when it is without any.
	excepted string
}

// New returns an empty memory.
func New() *Memory { return &Memory{sets: map[string]map[manifest.Key]seen{}} }

// Forget drops all that is known of a set.
func (m *Memory) Forget(setHash string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets, setHash)
}

// Retain drops what is known of objects of a set that are not wanted any more.
func (m *Memory) Retain(setHash string, wanted map[manifest.Key]bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for key := range m.sets[setHash] {
		if !wanted[key] {
			delete(m.sets[setHash], key)
		}
	}
}

// Drop drops what is known of one object of a set.
func (m *Memory) Drop(setHash string, key manifest.Key) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.sets[setHash], key)
}

// HasRun tells a Job that goes by itself and was applied by this process just as it is: to create it again would
// be to run it twice, also when something else of its release has failed since.
func (m *Memory) HasRun(setHash string, desired *unstructured.Unstructured) bool {
	if !manifest.Expires(desired) || manifest.IsHook(desired) {
		return false
	}
	wanted, err := diff.Digest(desired)
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.sets[setHash][manifest.KeyOf(desired)]
	return err == nil && known.applied && known.desired == wanted
}

// Applied says whether this process has applied an object of that key.
func (m *Memory) Applied(setHash string, desired *unstructured.Unstructured) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sets[setHash][manifest.KeyOf(desired)].applied
}

// Knows says whether the pair was found in sync before.
func (m *Memory) Knows(setHash string, desired, live *unstructured.Unstructured) bool {
	pair, err := digests(desired, live)
	if err != nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.sets[setHash][manifest.KeyOf(desired)]
	return known.desired == pair.desired && known.live == pair.live
}

// Excepted says whether the pair was found in sync without rules, or by rules with this id.
func (m *Memory) Excepted(setHash string, desired, live *unstructured.Unstructured, rules string) bool {
	if !m.Knows(setHash, desired, live) {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	by := m.sets[setHash][manifest.KeyOf(desired)].excepted
	return by == "" || by == rules
}

// Except notes by which rules alone an object that was remembered is in sync.
func (m *Memory) Except(setHash string, desired *unstructured.Unstructured, rules string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := manifest.KeyOf(desired)
	if entry, found := m.sets[setHash][key]; found {
		entry.excepted = rules
		m.sets[setHash][key] = entry
	}
}

// Remember notes that the pair is in sync, and whether that is because it was applied just now.
func (m *Memory) Remember(setHash string, desired, live *unstructured.Unstructured, applied bool) {
	pair, err := digests(desired, live)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sets[setHash] == nil {
		m.sets[setHash] = map[manifest.Key]seen{}
	}
	key := manifest.KeyOf(desired)
	pair.applied = applied || m.sets[setHash][key].applied
	m.sets[setHash][key] = pair
}

func digests(desired, live *unstructured.Unstructured) (seen, error) {
	wanted, err := diff.Digest(desired)
	if err != nil {
		return seen{}, err
	}
	found, err := diff.Digest(live)
	return seen{desired: wanted, live: found}, err
}
