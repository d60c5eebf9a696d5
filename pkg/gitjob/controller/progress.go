package controller

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/pkg/bundle"
)

// progress is what earlier passes over one GitRepo learned. It lives in memory only: after a restart
// everything is looked at once more.
type progress struct {
	nextLook   time.Time
	generation int64
	seen       string
	lookErr    error

	// announced is a commit a webhook named and no look has found yet; lastAnnounced stays.
	announced     string
	lastAnnounced string
	announcedAt   time.Time

	// told is what the last event said, so that events come on change only.
	told string

	applied *appliedSource
	readErr error
	// failed is the input of the last read that failed for a reason only a person can mend.
	failed   sourceKey
	warnings []bundle.Warning
}

// sourceKey is everything a read of the source depends on, but for Secrets.
type sourceKey struct {
	commit     string
	generation int64
	labels     string
}

// appliedSource is a source whose Bundles are all stored: their digests by name.
type appliedSource struct {
	key     sourceKey
	bundles map[string]string
	at      time.Time
}

// announcementLife is how long an announced commit that cannot be seen yet is looked for.
const (
	announcementLife  = 30 * time.Second
	announcementRetry = 2 * time.Second
)

// settleTime is how long after our own writes the cache is not asked whether they are still there.
const settleTime = 5 * time.Second

// waitingForAnnounced says that a webhook named a commit that no look has found yet.
func (p *progress) waitingForAnnounced(now time.Time) bool {
	return p.announced != "" && now.Sub(p.announcedAt) < announcementLife
}

// book keeps the progress of every GitRepo.
type book struct {
	mutex   sync.Mutex
	entries map[types.NamespacedName]*progress
}

// open returns the entry of a GitRepo. Only one worker handles a GitRepo at a time, so that the entry
// needs no lock of its own, except for announcements, which arrive through announce.
func (b *book) open(key types.NamespacedName) *progress {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.entries == nil {
		b.entries = map[types.NamespacedName]*progress{}
	}
	entry, ok := b.entries[key]
	if !ok {
		entry = &progress{}
		b.entries[key] = entry
	}
	return entry
}

func (b *book) forget(key types.NamespacedName) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.entries, key)
}

// inbox holds announcements until the next pass takes them.
type inbox struct {
	mutex   sync.Mutex
	commits map[types.NamespacedName]string
}

func (i *inbox) put(key types.NamespacedName, commit string) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	if i.commits == nil {
		i.commits = map[types.NamespacedName]string{}
	}
	i.commits[key] = commit
}

func (i *inbox) take(key types.NamespacedName) (commit string, ok bool) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	commit, ok = i.commits[key]
	delete(i.commits, key)
	return commit, ok
}
