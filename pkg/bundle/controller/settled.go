package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// forgetWrites is how long a cache that does not show a write is believed to be behind. After that the API server
// is asked.
const forgetWrites = 10 * time.Second

// mistrustAfter is how long a cache may lack what the API server has, before it is listed anew. A watch of a busy
// API server is late by less.
const mistrustAfter = 3 * forgetWrites

// settled remembers what the last pass over a bundle wrote, so that the next one does not plan on a cache
// that is behind: it would create again what exists, or miss that a status must be set back.
type settled struct {
	mutex   sync.Mutex
	bundles map[types.NamespacedName]*written
}

// written holds, by namespace of the deployment, the resource version written, and which are deleted.
type written struct {
	at       time.Time
	versions map[string]string
	deleted  map[string]bool
	// newest is the namespace of the deployment that was written last, by its resource version.
	newest string
	// own is the newest resource version of the bundle itself that we wrote.
	own string
}

func (s *settled) entry(key types.NamespacedName) *written {
	if s.bundles == nil {
		s.bundles = map[types.NamespacedName]*written{}
	}
	entry := s.bundles[key]
	if entry == nil {
		entry = &written{versions: map[string]string{}, deleted: map[string]bool{}}
		s.bundles[key] = entry
	}
	return entry
}

// wrote notes the resource version of a deployment of the bundle key.
func (s *settled) wrote(key types.NamespacedName, namespace, version string, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	entry := s.entry(key)
	entry.at = now
	entry.versions[namespace] = version
	if entry.newest == "" || notOlder(version, entry.versions[entry.newest]) {
		entry.newest = namespace
	}
	delete(entry.deleted, namespace)
}

// isOwn says that version is the one that was written last.
func (s *settled) isOwn(key types.NamespacedName, namespace, version string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	entry := s.bundles[key]
	return entry != nil && version != "" && entry.versions[namespace] == version
}

// removed notes that a deployment of the bundle key was deleted.
func (s *settled) removed(key types.NamespacedName, namespace string, now time.Time) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	entry := s.entry(key)
	entry.at = now
	entry.deleted[namespace] = true
	delete(entry.versions, namespace)
	if entry.newest == namespace {
		entry.newest = ""
	}
}

// last returns the deployment that was written last, its resource version and when that was; ok is false when
// nothing is waited for. A cache that shows it shows all that was written before.
func (s *settled) last(key types.NamespacedName) (namespace, version string, at time.Time, ok bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	entry := s.bundles[key]
	if entry == nil || entry.newest == "" {
		return "", "", time.Time{}, false
	}
	return entry.newest, entry.versions[entry.newest], entry.at, true
}

// wroteOwn notes the resource version of the bundle itself.
func (s *settled) wroteOwn(key types.NamespacedName, version string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.entry(key).own = version
}

// showsOwn says that version, of the bundle itself, is not older than what we wrote of it.
func (s *settled) showsOwn(key types.NamespacedName, version string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	entry := s.bundles[key]
	return entry == nil || notOlder(version, entry.own)
}

// visible says that the deployments show everything that was written; then it is forgotten.
func (s *settled) visible(key types.NamespacedName, deployments []*fleet.BundleDeployment, now time.Time) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	entry := s.bundles[key]
	if entry == nil {
		return true
	}
	if now.Sub(entry.at) < forgetWrites && !entry.shownBy(deployments) {
		return false
	}
	clear(entry.versions)
	clear(entry.deleted)
	entry.newest = ""
	return true
}

// forget drops what is known of a bundle that is gone.
func (s *settled) forget(key types.NamespacedName) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.bundles, key)
}

func (w *written) shownBy(deployments []*fleet.BundleDeployment) bool {
	if len(w.versions)+len(w.deleted) == 0 {
		return true
	}
	shown := 0
	for _, deployment := range deployments {
		version, ours := w.versions[deployment.Namespace]
		switch {
		case w.deleted[deployment.Namespace] && deployment.DeletionTimestamp.IsZero():
			return false
		case ours && !notOlder(deployment.ResourceVersion, version):
			return false
		case ours:
			shown++
		}
	}
	return shown == len(w.versions)
}

// notOlder compares resource versions of one object. What cannot be compared is taken to be new.
func notOlder(version, than string) bool {
	if than == "" {
		return true
	}
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err != nil || order >= 0
}
