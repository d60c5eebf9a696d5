package ledger

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cached"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// forgetWrites is how long a cache that does not show a write is believed to be behind. After that the API server
// is asked.
const forgetWrites = 10 * time.Second

// mistrustAfter is how long a cache may lack what the API server has, before it is listed anew. A watch of a busy
// API server is late by less.
const mistrustAfter = 3 * forgetWrites

// Ledger remembers what the last pass over each bundle wrote, so that the next one does not plan on a cache
// that is behind: it would create again what exists, or miss that a status must be set back.
type Ledger struct {
	options Options

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

// Options are what a Ledger compares: what Client and Deployments read from caches with what Reader says, which is the
// API server.
type Options struct {
	Client      client.Client
	Reader      client.Reader
	Caches      *confirm.Informers
	Deployments *cached.Objects[*fleet.BundleDeployment]
	Now         func() time.Time
}

// New returns an empty ledger.
func New(options Options) *Ledger {
	return &Ledger{options: options, bundles: map[types.NamespacedName]*written{}}
}

func (l *Ledger) entry(key types.NamespacedName) *written {
	entry := l.bundles[key]
	if entry == nil {
		entry = &written{versions: map[string]string{}, deleted: map[string]bool{}}
		l.bundles[key] = entry
	}
	return entry
}

// Wrote notes the resource version of a deployment of the bundle key.
func (l *Ledger) Wrote(key types.NamespacedName, namespace, version string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	entry := l.entry(key)
	entry.at = l.options.Now()
	entry.versions[namespace] = version
	if entry.newest == "" || notOlder(version, entry.versions[entry.newest]) {
		entry.newest = namespace
	}
	delete(entry.deleted, namespace)
}

// IsOwn says that a deployment is as the last pass over its bundle wrote it: that is no news.
func (l *Ledger) IsOwn(deployment client.Object) bool {
	return l.isOwn(target.BundleOf(deployment.GetLabels()), deployment.GetNamespace(), deployment.GetResourceVersion())
}

// isOwn says that version is the one that was written last.
func (l *Ledger) isOwn(key types.NamespacedName, namespace, version string) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	entry := l.bundles[key]
	return entry != nil && version != "" && entry.versions[namespace] == version
}

// Removed notes that a deployment of the bundle key was deleted.
func (l *Ledger) Removed(key types.NamespacedName, namespace string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	entry := l.entry(key)
	entry.at = l.options.Now()
	entry.deleted[namespace] = true
	delete(entry.versions, namespace)
	if entry.newest == namespace {
		entry.newest = ""
	}
}

// last returns the deployment that was written last, its resource version and when that was; ok is false when
// nothing is waited for. A cache that shows it shows all that was written before.
func (l *Ledger) last(key types.NamespacedName) (namespace, version string, at time.Time, ok bool) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	entry := l.bundles[key]
	if entry == nil || entry.newest == "" {
		return "", "", time.Time{}, false
	}
	return entry.newest, entry.versions[entry.newest], entry.at, true
}

// WroteOwn notes the resource version of the bundle itself.
func (l *Ledger) WroteOwn(key types.NamespacedName, version string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.entry(key).own = version
}

// ShowsOwn says that version, of the bundle itself, is not older than what we wrote of it.
func (l *Ledger) ShowsOwn(key types.NamespacedName, version string) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	entry := l.bundles[key]
	return entry == nil || notOlder(version, entry.own)
}

// Visible says that the deployments show everything that was written; then it is forgotten.
func (l *Ledger) Visible(key types.NamespacedName, deployments []*fleet.BundleDeployment) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	entry := l.bundles[key]
	if entry == nil {
		return true
	}
	if l.options.Now().Sub(entry.at) < forgetWrites && !entry.shownBy(deployments) {
		return false
	}
	clear(entry.versions)
	clear(entry.deleted)
	entry.newest = ""
	return true
}

// Forget drops what is known of a bundle that is gone.
func (l *Ledger) Forget(key types.NamespacedName) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.bundles, key)
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
