package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// forgetWrites is how long a cache that does not show a write is believed to be behind. After that the
// object is taken to have been changed by somebody else.
const forgetWrites = 10 * time.Second

// settled remembers what the last pass over a bundle wrote, so that the next one does not plan on a cache
// that is behind: it would create again what exists.
type settled struct {
	mutex   sync.Mutex
	bundles map[types.NamespacedName]*written
}

// written holds, by namespace of the deployment, the generation written; 0 for a deletion.
type written struct {
	at          time.Time
	generations map[string]int64
}

func (s *settled) wrote(key types.NamespacedName, namespace string, generation int64, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.bundles == nil {
		s.bundles = map[types.NamespacedName]*written{}
	}
	entry := s.bundles[key]
	if entry == nil {
		entry = &written{generations: map[string]int64{}}
		s.bundles[key] = entry
	}
	entry.at = now
	entry.generations[namespace] = generation
}

// visible says that the deployments show everything that was written; then it is forgotten.
func (s *settled) visible(key types.NamespacedName, deployments []fleet.BundleDeployment, now time.Time) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	entry := s.bundles[key]
	if entry == nil {
		return true
	}
	if now.Sub(entry.at) < forgetWrites && !entry.shownBy(deployments) {
		return false
	}
	delete(s.bundles, key)
	return true
}

func (w *written) shownBy(deployments []fleet.BundleDeployment) bool {
	seen := 0
	for i := range deployments {
		generation, ours := w.generations[deployments[i].Namespace]
		if !ours {
			continue
		}
		if generation == 0 && deployments[i].DeletionTimestamp.IsZero() || deployments[i].Generation < generation {
			return false
		}
		if generation != 0 {
			seen++
		}
	}
	expected := 0
	for _, generation := range w.generations {
		if generation != 0 {
			expected++
		}
	}
	return seen == expected
}
