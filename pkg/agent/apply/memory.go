package apply

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

type seen struct{ desired, live string }

// NewMemory returns an empty memory.
func NewMemory() *Memory { return &Memory{sets: map[string]map[manifest.Key]seen{}} }

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

// Knows says whether the pair was found in sync before.
func (m *Memory) Knows(setHash string, desired, live *unstructured.Unstructured) bool {
	pair, err := digests(desired, live)
	if err != nil {
		return false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.sets[setHash][manifest.KeyOf(desired)] == pair
}

// Remember notes that the pair is in sync.
func (m *Memory) Remember(setHash string, desired, live *unstructured.Unstructured) {
	pair, err := digests(desired, live)
	if err != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sets[setHash] == nil {
		m.sets[setHash] = map[manifest.Key]seen{}
	}
	m.sets[setHash][manifest.KeyOf(desired)] = pair
}

func digests(desired, live *unstructured.Unstructured) (seen, error) {
	wanted, err := diff.Digest(desired)
	if err != nil {
		return seen{}, err
	}
	found, err := diff.Digest(live)
	return seen{desired: wanted, live: found}, err
}
