package controller

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func repoWith(change func(*fleet.GitRepo)) *fleet.GitRepo {
	repo := &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{
		Namespace: "fleet-default", Name: "shop", Generation: 1, CreationTimestamp: metav1.NewTime(start.Add(-time.Hour)),
	}}
	repo.Spec.Repo, repo.Spec.Branch = "https://git.example/shop", "main"
	if change != nil {
		change(repo)
	}
	return repo
}

var (
	errHost = fault.New(fault.Transient, "Unreachable", "the host does not answer")
	errYAML = fault.New(fault.Stalled, "InvalidYAML", "app/fleet.yaml, line 2")
	errGone = fault.New(fault.Waiting, reasonTerminating, "bundle is being deleted")
)

func TestInterval(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fleet.GitRepo)
		want   time.Duration
	}{
		"nothing said":  {nil, 15 * time.Second},
		"webhooks come": {func(r *fleet.GitRepo) { r.Status.WebhookCommit = "a" }, time.Hour},
		"spec says":     {func(r *fleet.GitRepo) { r.Spec.PollingInterval = &fleet.Duration{Duration: time.Minute} }, time.Minute},
		"spec says with hooks": {func(r *fleet.GitRepo) {
			r.Spec.PollingInterval = &fleet.Duration{Duration: 2}
			r.Status.WebhookCommit = "a"
		}, 2},
		"nonsense": {func(r *fleet.GitRepo) { r.Spec.PollingInterval = &fleet.Duration{Duration: -5} }, 15 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := interval(repoWith(test.change)); got != test.want {
				t.Errorf("interval %s, want %s", got, test.want)
			}
		})
	}
}

func TestRetryAfterDoublesUpToABound(t *testing.T) {
	for failures, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second, 5: 16 * time.Second, 8: lastRetry, 1 << 40: lastRetry} {
		if got := retryAfter(failures); got != want {
			t.Errorf("after %d failures %s, want %s", failures, got, want)
		}
	}
}

func TestPauseAfterALook(t *testing.T) {
	disabled := func(r *fleet.GitRepo) { r.Spec.DisablePolling = true }
	hooked := func(r *fleet.GitRepo) { r.Status.WebhookCommit = "old" }
	for name, test := range map[string]struct {
		change   func(*fleet.GitRepo)
		before   progress
		err      error
		jitter   float64
		wantNext time.Duration
	}{
		"worked":                          {nil, progress{}, nil, 0, 15 * time.Second},
		"jitter adds up to a tenth":       {nil, progress{}, nil, 0.5, 15750 * time.Millisecond},
		"failed":                          {nil, progress{}, errHost, 0, time.Second},
		"failed often":                    {nil, progress{lookFailures: 3}, errHost, 0, 8 * time.Second},
		"failed very often":               {nil, progress{lookFailures: 30}, errHost, 0, 15 * time.Second},
		"failed with an hour's interval":  {hooked, progress{lookFailures: 30}, errHost, 0, lastRetry},
		"polling is off":                  {disabled, progress{}, nil, 0.9, notAgain},
		"polling is off, and it failed":   {disabled, progress{lookFailures: 2}, errHost, 0, 4 * time.Second},
		"announced commit is not there":   {nil, progress{awaited: true, announcement: announcement{commit: "next"}, heard: start}, nil, 0, announcementRetry},
		"announced commit is there":       {hooked, progress{awaited: true, announcement: announcement{commit: "seen"}, heard: start}, nil, 0, time.Hour},
		"announced commit never comes":    {hooked, progress{awaited: true, announcement: announcement{commit: "next"}, heard: start.Add(-announcementLife)}, nil, 0, time.Hour},
		"announcement without its commit": {hooked, progress{awaited: true, announcement: announcement{at: start}, heard: start}, nil, 0, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			known := test.before
			known.looked(repoWith(test.change), "seen", test.err, start, test.jitter)
			if got := known.nextLook.Sub(start); got != test.wantNext {
				t.Errorf("next look in %s, want %s", got, test.wantNext)
			}
		})
	}
}

func TestAFailedLookKeepsWhatWasSeen(t *testing.T) {
	known := progress{}
	repo := repoWith(nil)
	known.looked(repo, "one", nil, start, 0)
	known.looked(repo, "", errHost, start, 0)
	if known.seen != "one" || !known.hasSeen(repo) || known.lookErr == nil {
		t.Errorf("seen %q, error %v", known.seen, known.lookErr)
	}
	edited := repoWith(func(r *fleet.GitRepo) { r.Generation, r.Spec.Paths = 2, []string{"apps"} })
	known.looked(edited, "", errHost, start, 0)
	if !known.hasSeen(edited) {
		t.Error("an edit of the paths needs no new look to be carried out")
	}
	// The commit of another branch must not be read with this spec's paths.
	moved := repoWith(func(r *fleet.GitRepo) { r.Generation, r.Spec.Branch = 3, "mastre" })
	known.looked(moved, "", errHost, start, 0)
	if known.hasSeen(moved) {
		t.Error("what was seen at another branch counts for this one")
	}
}

func TestLookDueAndMaxAge(t *testing.T) {
	later := start.Add(time.Hour)
	for name, test := range map[string]struct {
		known     progress
		announced bool
		change    func(*fleet.GitRepo)
		wantDue   bool
		wantAge   time.Duration
	}{
		"first look after a restart": {progress{}, false, nil, true, 15 * time.Second},
		"first look of a new one":    {progress{}, false, func(r *fleet.GitRepo) { r.CreationTimestamp = metav1.NewTime(start) }, true, 0},
		"first look, a bit late":     {progress{}, false, func(r *fleet.GitRepo) { r.CreationTimestamp = metav1.NewTime(start.Add(-5 * time.Second)) }, true, 4 * time.Second},
		"not yet":                    {progress{generation: 1, nextLook: later}, false, nil, false, 15 * time.Second},
		"interval over":              {progress{generation: 1, nextLook: start}, false, nil, true, 15 * time.Second},
		"edited":                     {progress{generation: 7, nextLook: later}, false, nil, true, 0},
		"announced":                  {progress{generation: 1, nextLook: later, awaited: true}, true, nil, true, announcementAge},
	} {
		t.Run(name, func(t *testing.T) {
			repo := repoWith(test.change)
			if got := test.known.lookDue(repo, test.announced, start); got != test.wantDue {
				t.Errorf("due: %v, want %v", got, test.wantDue)
			}
			if got := test.known.maxAge(repo, start); got != test.wantAge {
				t.Errorf("listing may be %s old, want %s", got, test.wantAge)
			}
		})
	}
}

func TestHear(t *testing.T) {
	local := time.FixedZone("somewhere", 3600)
	for name, test := range map[string]struct {
		known       progress
		said        announcement
		wantNew     bool
		wantAwaited bool
	}{
		"nothing said": {progress{}, announcement{}, false, false},
		"new":          {progress{}, announcement{"a", start}, true, true},
		"known":        {progress{announcement: announcement{"a", start}}, announcement{"a", start.In(local)}, false, false},
		"again":        {progress{announcement: announcement{"a", start.Add(-time.Minute)}}, announcement{"a", start}, true, true},
		// It causes a look all the same: the pass may be late, or the receiver's clock wrong.
		"new, but old": {progress{}, announcement{"a", start.Add(-time.Hour)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.known.hear(test.said, start); got != test.wantNew || test.known.awaited != test.wantAwaited {
				t.Errorf("new %v, awaited %v; want %v, %v", got, test.known.awaited, test.wantNew, test.wantAwaited)
			}
		})
	}
}

func TestReadsOfOneSource(t *testing.T) {
	bad, good := sourceKey{commit: "bad"}, sourceKey{commit: "good"}
	known := progress{}
	if !known.readDue(good, start) {
		t.Fatal("the first read is not due")
	}
	known.stored(appliedSource{key: good, warnings: []bundle.Warning{{Message: "old"}}, at: start})
	known.failedToRead(bad, nil, errYAML, start)
	if known.readDue(bad, start) {
		t.Error("a read that just failed is due at once")
	}
	if !known.readDue(sourceKey{commit: "bad", generation: 2}, start) {
		t.Error("an edit does not make a read due")
	}
	// Whoever mends something else, such as a Secret, is noticed without a commit.
	if !known.readDue(bad, start.Add(lastRetry)) {
		t.Error("what a person must mend is not tried again")
	}
	// The branch is set back to the commit that was applied.
	known.back()
	if known.readErr != nil || problemOf(&known) != nil || len(known.warnings) != 1 {
		t.Errorf("after the way back: error %v, warnings %v", known.readErr, known.warnings)
	}
}

func TestPausesBetweenFailedReads(t *testing.T) {
	key := sourceKey{commit: "a"}
	known := progress{}
	var got []time.Duration
	for _, err := range []error{errYAML, errYAML, errHost, errGone, errGone} {
		known.failedToRead(key, nil, err, start)
		got = append(got, known.nextRead.Sub(start))
	}
	want := []time.Duration{1, 2, 4, 4, 4}
	for i := range want {
		if got[i] != want[i]*time.Second {
			t.Errorf("pause %d is %s, want %ds", i, got[i], want[i])
		}
	}
	known.failedToRead(sourceKey{commit: "b"}, nil, errYAML, start)
	if got := known.nextRead.Sub(start); got != time.Second {
		t.Errorf("the first failure of another source waits %s", got)
	}
}

func TestNextPass(t *testing.T) {
	in := func(d time.Duration) time.Time { return start.Add(d) }
	for name, test := range map[string]struct {
		known progress
		want  time.Duration
	}{
		"look":                           {progress{nextLook: in(15 * time.Second)}, 15 * time.Second},
		"overdue":                        {progress{nextLook: in(-time.Hour)}, shortestPass},
		"failed read, polling off":       {progress{nextLook: in(notAgain), readErr: errHost, nextRead: in(2 * time.Second)}, 2 * time.Second},
		"look before the read":           {progress{nextLook: in(time.Second), readErr: errHost, nextRead: in(time.Minute)}, time.Second},
		"read that failed long ago":      {progress{nextLook: in(time.Minute), nextRead: in(time.Second)}, time.Minute},
		"applied a moment ago":           {progress{nextLook: in(notAgain), applied: &appliedSource{at: in(-time.Second)}}, settleTime - time.Second},
		"applied long ago":               {progress{nextLook: in(time.Hour), applied: &appliedSource{at: in(-time.Hour)}}, time.Hour},
		"applied a moment ago, look due": {progress{nextLook: in(time.Second), applied: &appliedSource{at: start}}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.known.nextPass(start); got != test.want {
				t.Errorf("next pass in %s, want %s", got, test.want)
			}
		})
	}
}

// Whatever happens, there is a next pass, and it is not at once: nothing waits for ever after a failure, and
// nothing spins.
func TestThereIsAlwaysANextPass(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	outcomes := []error{nil, errHost, errYAML, errGone, errors.New("plain")}
	for range 2000 {
		repo := repoWith(func(r *fleet.GitRepo) { r.Spec.DisablePolling = random.IntN(2) == 0 })
		known, now := progress{}, start
		for range random.IntN(12) {
			now = now.Add(time.Duration(random.Int64N(int64(time.Minute))))
			repo.Generation += random.Int64N(2)
			if known.lookDue(repo, known.hear(announcement{commit: "c", at: now}, now) && random.IntN(3) == 0, now) {
				known.looked(repo, "c", outcomes[random.IntN(len(outcomes))], now, random.Float64())
			}
			if err := outcomes[random.IntN(len(outcomes))]; err != nil {
				known.failedToRead(keyOf(repo, known.seen), nil, err, now)
			} else {
				known.stored(appliedSource{key: keyOf(repo, known.seen), at: now})
			}
			next := known.nextPass(now)
			if next < shortestPass {
				t.Fatalf("the next pass comes in %s", next)
			}
			if problemOf(&known) != nil && next > lastRetry+lastRetry/10 {
				t.Fatalf("with the problem %v the next pass comes in %s", problemOf(&known), next)
			}
		}
	}
}

func TestBehind(t *testing.T) {
	for name, test := range map[string]struct {
		wrote, shown string
		want         bool
	}{
		"nothing written":  {"", "7", false},
		"older":            {"10", "9", true},
		"same":             {"10", "10", false},
		"newer":            {"9", "10", false},
		"not comparable":   {"x", "9", false},
		"nothing is shown": {"9", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			known := progress{version: test.wrote}
			if got := known.behind(test.shown); got != test.want {
				t.Errorf("behind: %v, want %v", got, test.want)
			}
		})
	}
}

func TestBookForgetsTheFormerGitRepoOfAName(t *testing.T) {
	var b book
	key := types.NamespacedName{Namespace: "a", Name: "b"}
	first := b.open(key, "1")
	first.seen = "commit"
	if b.open(key, "1") != first {
		t.Error("the entry is not kept")
	}
	if b.open(key, "2").seen != "" {
		t.Error("a GitRepo made anew knows what the former one saw")
	}
	b.forget(key)
	if len(b.entries) != 0 {
		t.Error("forgetting leaves something")
	}
}
