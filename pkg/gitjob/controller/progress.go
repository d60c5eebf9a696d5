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

	// announcement is the newest one that was taken note of; awaited says that no look has found its
	// commit yet.
	announcement announcement
	awaited      bool

	// told is what the last event said, so that events come on change only.
	told string

	applied *appliedSource
	readErr error
	// failed is the input of the last read that failed for a reason only a person can mend.
	failed   sourceKey
	warnings []bundle.Warning
}

// announcement is what a webhook left in a GitRepo's status.
type announcement struct {
	commit string
	at     time.Time
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
	announcementRetry = time.Second
	// announcementAge is how old a listing may be that is looked at for an announced commit, so that many
	// GitRepos of one repository share it. One that is a moment too old is followed by a retry.
	announcementAge = 100 * time.Millisecond
)

// settleTime is how long after our own writes the cache is not asked whether they are still there.
const settleTime = 5 * time.Second

// hear takes note of an announcement that is new, and says whether it was.
func (p *progress) hear(said announcement, now time.Time) bool {
	if said == p.announcement || said.at.IsZero() {
		return false
	}
	p.announcement = said
	p.awaited = now.Sub(said.at) < announcementLife
	return p.awaited
}

// sawAnnounced ends the wait for an announced commit once it was seen, or never will be.
func (p *progress) sawAnnounced(now time.Time) {
	if p.announcement.commit == "" || p.announcement.commit == p.seen || now.Sub(p.announcement.at) >= announcementLife {
		p.awaited = false
	}
}

// book keeps the progress of every GitRepo.
type book struct {
	mutex   sync.Mutex
	entries map[types.NamespacedName]*progress
}

// open returns the entry of a GitRepo. Only one worker handles a GitRepo at a time, so that the entry
// needs no lock of its own.
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
