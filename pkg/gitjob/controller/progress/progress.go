package progress

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Entry is what earlier passes over one GitRepo learned. It lives in memory only: after a restart
// everything is looked at once more. Its methods decide; they are pure.
type Entry struct {
	uid types.UID
	// Version is the GitRepo's newest resource version that we wrote.
	Version string

	nextLook time.Time
	// generation is the one of the last look, and Seen the commit of the last one that worked, at address.
	generation int64
	Seen       string
	address    string
	// LookErr is the error of the last look.
	LookErr      error
	lookFailures int

	// announcement is the newest one that was taken note of, at heard; awaited says that no look has found
	// its commit yet.
	announcement Announcement
	heard        time.Time
	awaited      bool

	// Denied is why the namespace's rules forbid the source; then it is neither looked at nor read.
	Denied error

	// Told is what the last event said, so that events come on change only.
	Told string

	// Applied is the last source whose Bundles were all stored, nil for none.
	Applied *Applied
	// ReadErr is the error of the last read; failed is what was read, and nextRead when it is tried again.
	ReadErr      error
	failed       Key
	readFailures int
	nextRead     time.Time
	// Warnings of the last read.
	Warnings []bundle.Warning
}

// Announcement is what a webhook left in a GitRepo's status.
type Announcement struct {
	Commit string
	At     time.Time
}

// Key is everything a read of the source depends on, but for Secrets.
type Key struct {
	Commit         string
	Generation     int64
	labels         string
	serviceAccount string
}

// KeyOf returns what a read of a GitRepo at a commit depends on.
func KeyOf(repo *fleet.GitRepo, commit string) Key {
	return Key{
		Commit: commit, Generation: repo.Generation, labels: fmt.Sprint(repo.Labels), serviceAccount: repo.Spec.ServiceAccount,
	}
}

// Applied is a source whose Bundles are all stored: their digests by name.
type Applied struct {
	Key      Key
	Bundles  map[string]string
	Warnings []bundle.Warning
	At       time.Time
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
	// ShortestPass keeps a pass from following the last one at once.
	ShortestPass = 100 * time.Millisecond
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

// Hear takes note of an announcement that is new, and says whether it was.
func (e *Entry) Hear(said Announcement, now time.Time) bool {
	if said.At.IsZero() || said.Commit == e.announcement.Commit && said.At.Equal(e.announcement.At) {
		return false
	}
	e.announcement, e.heard = said, now
	e.awaited = now.Sub(said.At) < announcementLife
	return true
}

// LookDue says that it is time for a look: its pause is over, the spec changed, or a push was announced.
func (e *Entry) LookDue(repo *fleet.GitRepo, announced bool, now time.Time) bool {
	return announced || !now.Before(e.nextLook) || e.generation != repo.Generation
}

// MaxAge is how old the listing may be that a look uses: younger than the announcement it follows, than
// the edit, or than the GitRepo, and never older than the interval.
func (e *Entry) MaxAge(repo *fleet.GitRepo, now time.Time) time.Duration {
	switch {
	case e.awaited:
		return announcementAge
	case e.generation == repo.Generation:
		return interval(repo)
	case e.generation == 0:
		// The first look: a creation time has no fractions of a second.
		age := now.Sub(repo.CreationTimestamp.Time) - time.Second
		return min(max(age, 0), interval(repo))
	}
	return 0
}

// Looked takes what a look found. jitter is in [0, 1).
func (e *Entry) Looked(repo *fleet.GitRepo, commit string, err error, now time.Time, jitter float64) {
	e.LookErr, e.generation = err, repo.Generation
	if err == nil {
		e.Seen, e.address, e.lookFailures = commit, addressOf(repo), 0
	} else {
		e.lookFailures++
	}
	e.sawAnnounced(now)
	e.nextLook = now.Add(e.pause(repo, jitter))
}

// sawAnnounced ends the wait for an announced commit once it was seen, or never will be.
func (e *Entry) sawAnnounced(now time.Time) {
	if e.announcement.Commit == "" || e.announcement.Commit == e.Seen || now.Sub(e.heard) >= announcementLife {
		e.awaited = false
	}
}

// pause is how long to wait before the next look.
func (e *Entry) pause(repo *fleet.GitRepo, jitter float64) time.Duration {
	period := interval(repo)
	switch {
	case e.awaited:
		return announcementRetry
	case e.LookErr != nil:
		period = min(period, retryAfter(e.lookFailures))
	case repo.Spec.DisablePolling:
		return notAgain
	}
	return period + time.Duration(jitter*float64(period)/10)
}

// HasSeen says that a commit of what the spec names now was seen. One that was seen at another address or
// branch must not be read with the paths of this spec.
func (e *Entry) HasSeen(repo *fleet.GitRepo) bool {
	return e.Seen != "" && e.address == addressOf(repo)
}

// ReadDue says that a source may be read now: it did not fail a moment ago.
func (e *Entry) ReadDue(key Key, now time.Time) bool {
	return e.ReadErr == nil || e.failed != key || !now.Before(e.nextRead)
}

// HasApplied says that a source is the one that was applied last.
func (e *Entry) HasApplied(key Key) bool { return e.Applied != nil && e.Applied.Key == key }

// Settling says that the cache may not show our own writes yet.
func (e *Entry) Settling(now time.Time) bool {
	return e.Applied != nil && now.Before(e.Applied.At.Add(settleTime))
}

// Back notes that the source is again one that was applied: an error of a read in between is history.
func (e *Entry) Back() {
	e.ReadErr, e.readFailures, e.Warnings = nil, 0, e.Applied.Warnings
}

// FailedToRead takes the error of a read.
func (e *Entry) FailedToRead(key Key, warnings []bundle.Warning, err error, now time.Time) {
	if e.failed != key || e.ReadErr == nil {
		e.readFailures = 0
	}
	if fault.ClassOf(err) != fault.Waiting {
		e.readFailures++
	}
	e.ReadErr, e.failed, e.Warnings = err, key, warnings
	e.nextRead = now.Add(retryAfter(e.readFailures))
}

// Problem is what keeps the newest source from being applied. A look that fails does not hide a read that
// failed for something only a person can mend.
func (e *Entry) Problem() error {
	switch {
	case e.Denied != nil:
		return e.Denied
	case e.LookErr == nil:
		return e.ReadErr
	case fault.NeedsPerson(e.ReadErr):
		return fmt.Errorf("%w; and %w", e.ReadErr, e.LookErr)
	}
	return e.LookErr
}

// Stored takes what a read gave once all of it is stored.
func (e *Entry) Stored(source Applied) {
	e.Applied = &source
	e.Back()
}

// NextPass is the time until there is something to do without an event.
func (e *Entry) NextPass(now time.Time) time.Duration {
	if e.Denied != nil {
		return notAgain // a change of the rules or of the spec ends it
	}
	next := e.nextLook
	if e.ReadErr != nil && e.nextRead.Before(next) {
		next = e.nextRead
	}
	if e.Settling(now) {
		// Events that came in the meantime were not looked into.
		if settled := e.Applied.At.Add(settleTime); settled.Before(next) {
			next = settled
		}
	}
	return max(next.Sub(now), ShortestPass)
}

// Behind says that a cache shows an object older than our last write of it. A decision on it could undo
// that write, or miss that it must be undone.
func (e *Entry) Behind(version string) bool {
	if e.Version == "" {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(version, e.Version)
	return err == nil && order < 0
}

// Book keeps the progress of every GitRepo. The zero value is empty.
type Book struct {
	mutex   sync.Mutex
	entries map[types.NamespacedName]*Entry
}

// Open returns the entry of a GitRepo, a new one for a GitRepo that was made anew. Only one worker handles
// a GitRepo at a time, so that the entry needs no lock of its own.
func (b *Book) Open(key types.NamespacedName, uid types.UID) *Entry {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.entries == nil {
		b.entries = map[types.NamespacedName]*Entry{}
	}
	entry := b.entries[key]
	if entry == nil || entry.uid != uid {
		entry = &Entry{uid: uid}
		b.entries[key] = entry
	}
	return entry
}

// Forget drops the entry of a GitRepo.
func (b *Book) Forget(key types.NamespacedName) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.entries, key)
}
