package controller

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// progress is what earlier passes over one GitRepo learned. It lives in memory only: after a restart
// everything is looked at once more. Its methods decide; they are pure.
type progress struct {
	uid types.UID
	// version is the GitRepo's newest resource version that we wrote.
	version string

	nextLook time.Time
	// generation is the one of the last look, and seen the commit of the last one that worked, at address.
	generation   int64
	seen         string
	address      string
	lookErr      error
	lookFailures int

	// announcement is the newest one that was taken note of, at heard; awaited says that no look has found
	// its commit yet.
	announcement announcement
	heard        time.Time
	awaited      bool

	// denied is why the namespace's rules forbid the source; then it is neither looked at nor read.
	denied error

	// told is what the last event said, so that events come on change only.
	told string

	applied *appliedSource
	// readErr is the error of the last read; failed is what was read, and nextRead when it is tried again.
	readErr      error
	failed       sourceKey
	readFailures int
	nextRead     time.Time
	// warnings of the last read.
	warnings []bundle.Warning
}

// announcement is what a webhook left in a GitRepo's status.
type announcement struct {
	commit string
	at     time.Time
}

// sourceKey is everything a read of the source depends on, but for Secrets.
type sourceKey struct {
	commit         string
	generation     int64
	labels         string
	serviceAccount string
}

// appliedSource is a source whose Bundles are all stored: their digests by name.
type appliedSource struct {
	key      sourceKey
	bundles  map[string]string
	warnings []bundle.Warning
	at       time.Time
}

const (
	// announcementLife is how long an announced commit that cannot be seen yet is looked for.
	announcementLife  = 30 * time.Second
	announcementRetry = time.Second
	// announcementAge is how old a listing may be that is looked at for an announced commit, so that many
	// GitRepos of one repository share it. One that is a moment too old is followed by a retry.
	announcementAge = 100 * time.Millisecond
	// settleTime is how long after our own writes the cache is not asked whether they are still there.
	settleTime = 5 * time.Second
	// firstRetry and lastRetry bound the pause after a failure, which doubles each time. What a person must
	// mend is tried again too: the mending may be done where we do not watch, such as in a Secret.
	firstRetry = time.Second
	lastRetry  = 2 * time.Minute
	// notAgain is the pause where polling is off: a change of the spec or a webhook ends it.
	notAgain = 100 * 365 * 24 * time.Hour
	// shortestPass keeps a pass from following the last one at once.
	shortestPass = 100 * time.Millisecond
)

// interval is the time between two looks: what the spec says, 15 seconds, or an hour once webhooks come.
func interval(repo *fleet.GitRepo) time.Duration {
	if repo.Spec.PollingInterval != nil && repo.Spec.PollingInterval.Duration > 0 {
		return repo.Spec.PollingInterval.Duration
	}
	if repo.Status.WebhookCommit != "" {
		return time.Hour
	}
	return 15 * time.Second
}

// retryAfter is the pause after a number of failures in a row.
func retryAfter(failures int) time.Duration {
	pause := firstRetry
	for range min(failures, 32) - 1 {
		pause = min(2*pause, lastRetry)
	}
	return pause
}

// addressOf is the part of a spec that says which commit is meant.
func addressOf(repo *fleet.GitRepo) string {
	return strings.Join([]string{repo.Spec.Repo, repo.Spec.Branch, repo.Spec.Revision}, "\n")
}

// hear takes note of an announcement that is new, and says whether it was.
func (p *progress) hear(said announcement, now time.Time) bool {
	if said.at.IsZero() || said.commit == p.announcement.commit && said.at.Equal(p.announcement.at) {
		return false
	}
	p.announcement, p.heard = said, now
	p.awaited = now.Sub(said.at) < announcementLife
	return true
}

// lookDue says that it is time for a look: its pause is over, the spec changed, or a push was announced.
func (p *progress) lookDue(repo *fleet.GitRepo, announced bool, now time.Time) bool {
	return announced || !now.Before(p.nextLook) || p.generation != repo.Generation
}

// maxAge is how old the listing may be that a look uses: younger than the announcement it follows, than
// the edit, or than the GitRepo, and never older than the interval.
func (p *progress) maxAge(repo *fleet.GitRepo, now time.Time) time.Duration {
	switch {
	case p.awaited:
		return announcementAge
	case p.generation == repo.Generation:
		return interval(repo)
	case p.generation == 0:
		// The first look: a creation time has no fractions of a second.
		age := now.Sub(repo.CreationTimestamp.Time) - time.Second
		return min(max(age, 0), interval(repo))
	}
	return 0
}

// looked takes what a look found. jitter is in [0, 1).
func (p *progress) looked(repo *fleet.GitRepo, commit string, err error, now time.Time, jitter float64) {
	p.lookErr, p.generation = err, repo.Generation
	if err == nil {
		p.seen, p.address, p.lookFailures = commit, addressOf(repo), 0
	} else {
		p.lookFailures++
	}
	p.sawAnnounced(now)
	p.nextLook = now.Add(p.pause(repo, jitter))
}

// sawAnnounced ends the wait for an announced commit once it was seen, or never will be.
func (p *progress) sawAnnounced(now time.Time) {
	if p.announcement.commit == "" || p.announcement.commit == p.seen || now.Sub(p.heard) >= announcementLife {
		p.awaited = false
	}
}

// pause is how long to wait before the next look.
func (p *progress) pause(repo *fleet.GitRepo, jitter float64) time.Duration {
	period := interval(repo)
	switch {
	case p.awaited:
		return announcementRetry
	case p.lookErr != nil:
		period = min(period, retryAfter(p.lookFailures))
	case repo.Spec.DisablePolling:
		return notAgain
	}
	return period + time.Duration(jitter*float64(period)/10)
}

// hasSeen says that a commit of what the spec names now was seen. One that was seen at another address or
// branch must not be read with the paths of this spec.
func (p *progress) hasSeen(repo *fleet.GitRepo) bool {
	return p.seen != "" && p.address == addressOf(repo)
}

// readDue says that a source may be read now: it did not fail a moment ago.
func (p *progress) readDue(key sourceKey, now time.Time) bool {
	return p.readErr == nil || p.failed != key || !now.Before(p.nextRead)
}

func (p *progress) hasApplied(key sourceKey) bool { return p.applied != nil && p.applied.key == key }

// settling says that the cache may not show our own writes yet.
func (p *progress) settling(now time.Time) bool {
	return p.applied != nil && now.Before(p.applied.at.Add(settleTime))
}

// back notes that the source is again one that was applied: an error of a read in between is history.
func (p *progress) back() {
	p.readErr, p.readFailures, p.warnings = nil, 0, p.applied.warnings
}

// failedToRead takes the error of a read.
func (p *progress) failedToRead(key sourceKey, warnings []bundle.Warning, err error, now time.Time) {
	if p.failed != key || p.readErr == nil {
		p.readFailures = 0
	}
	if fault.ClassOf(err) != fault.Waiting {
		p.readFailures++
	}
	p.readErr, p.failed, p.warnings = err, key, warnings
	p.nextRead = now.Add(retryAfter(p.readFailures))
}

// stored takes what a read gave once all of it is stored.
func (p *progress) stored(source appliedSource) {
	p.applied = &source
	p.back()
}

// nextPass is the time until there is something to do without an event.
func (p *progress) nextPass(now time.Time) time.Duration {
	if p.denied != nil {
		return notAgain // a change of the rules or of the spec ends it
	}
	next := p.nextLook
	if p.readErr != nil && p.nextRead.Before(next) {
		next = p.nextRead
	}
	if p.settling(now) {
		// Events that came in the meantime were not looked into.
		if settled := p.applied.at.Add(settleTime); settled.Before(next) {
			next = settled
		}
	}
	return max(next.Sub(now), shortestPass)
}

// behind says that a cache shows an object older than our last write of it. A decision on it could undo
// that write, or miss that it must be undone.
func (p *progress) behind(version string) bool {
	if p.version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, p.version)
	return err == nil && order < 0
}

// book keeps the progress of every GitRepo.
type book struct {
	mutex   sync.Mutex
	entries map[types.NamespacedName]*progress
}

// open returns the entry of a GitRepo, a new one for a GitRepo that was made anew. Only one worker handles
// a GitRepo at a time, so that the entry needs no lock of its own.
func (b *book) open(key types.NamespacedName, uid types.UID) *progress {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.entries == nil {
		b.entries = map[types.NamespacedName]*progress{}
	}
	entry := b.entries[key]
	if entry == nil || entry.uid != uid {
		entry = &progress{uid: uid}
		b.entries[key] = entry
	}
	return entry
}

func (b *book) forget(key types.NamespacedName) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.entries, key)
}
