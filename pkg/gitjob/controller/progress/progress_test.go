package progress

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/controller/repotest"
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
			if got := interval(repotest.Repo(test.change)); got != test.want {
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
		before   Entry
		err      error
		jitter   float64
		wantNext time.Duration
	}{
		"worked":                          {nil, Entry{}, nil, 0, 15 * time.Second},
		"jitter adds up to a tenth":       {nil, Entry{}, nil, 0.5, 15750 * time.Millisecond},
		"failed":                          {nil, Entry{}, repotest.ErrHost, 0, time.Second},
		"failed often":                    {nil, Entry{lookFailures: 3}, repotest.ErrHost, 0, 8 * time.Second},
		"failed very often":               {nil, Entry{lookFailures: 30}, repotest.ErrHost, 0, 15 * time.Second},
		"failed with an hour's interval":  {hooked, Entry{lookFailures: 30}, repotest.ErrHost, 0, lastRetry},
		"polling is off":                  {disabled, Entry{}, nil, 0.9, notAgain},
		"polling is off, and it failed":   {disabled, Entry{lookFailures: 2}, repotest.ErrHost, 0, 4 * time.Second},
		"announced commit is not there":   {nil, Entry{awaited: true, announcement: Announcement{Commit: "next"}, heard: repotest.Start}, nil, 0, announcementRetry},
		"announced commit is there":       {hooked, Entry{awaited: true, announcement: Announcement{Commit: "seen"}, heard: repotest.Start}, nil, 0, time.Hour},
		"announced commit never comes":    {hooked, Entry{awaited: true, announcement: Announcement{Commit: "next"}, heard: repotest.Start.Add(-announcementLife)}, nil, 0, time.Hour},
		"announcement without its commit": {hooked, Entry{awaited: true, announcement: Announcement{At: repotest.Start}, heard: repotest.Start}, nil, 0, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			known := test.before
			known.Looked(repotest.Repo(test.change), "seen", test.err, repotest.Start, test.jitter)
			if got := known.nextLook.Sub(repotest.Start); got != test.wantNext {
				t.Errorf("next look in %s, want %s", got, test.wantNext)
			}
		})
	}
}

func TestAFailedLookKeepsWhatWasSeen(t *testing.T) {
	known := Entry{}
	repo := repotest.Repo(nil)
	known.Looked(repo, "one", nil, repotest.Start, 0)
	known.Looked(repo, "", repotest.ErrHost, repotest.Start, 0)
	if known.Seen != "one" || !known.HasSeen(repo) || known.LookErr == nil {
		t.Errorf("seen %q, error %v", known.Seen, known.LookErr)
	}
	edited := repotest.Repo(func(r *fleet.GitRepo) { r.Generation, r.Spec.Paths = 2, []string{"apps"} })
	known.Looked(edited, "", repotest.ErrHost, repotest.Start, 0)
	if !known.HasSeen(edited) {
		t.Error("an edit of the paths needs no new look to be carried out")
	}
	// The commit of another branch must not be read with this spec's paths.
	moved := repotest.Repo(func(r *fleet.GitRepo) { r.Generation, r.Spec.Branch = 3, "mastre" })
	known.Looked(moved, "", repotest.ErrHost, repotest.Start, 0)
	if known.HasSeen(moved) {
		t.Error("what was seen at another branch counts for this one")
	}
}

func TestLookDueAndMaxAge(t *testing.T) {
	later := repotest.Start.Add(time.Hour)
	for name, test := range map[string]struct {
		known     Entry
		announced bool
		change    func(*fleet.GitRepo)
		wantDue   bool
		wantAge   time.Duration
	}{
		"first look after a restart": {Entry{}, false, nil, true, 15 * time.Second},
		"first look of a new one":    {Entry{}, false, func(r *fleet.GitRepo) { r.CreationTimestamp = metav1.NewTime(repotest.Start) }, true, 0},
		"first look, a bit late":     {Entry{}, false, func(r *fleet.GitRepo) { r.CreationTimestamp = metav1.NewTime(repotest.Start.Add(-5 * time.Second)) }, true, 4 * time.Second},
		"not yet":                    {Entry{generation: 1, nextLook: later}, false, nil, false, 15 * time.Second},
		"interval over":              {Entry{generation: 1, nextLook: repotest.Start}, false, nil, true, 15 * time.Second},
		"edited":                     {Entry{generation: 7, nextLook: later}, false, nil, true, 0},
		"announced":                  {Entry{generation: 1, nextLook: later, awaited: true}, true, nil, true, announcementAge},
	} {
		t.Run(name, func(t *testing.T) {
			repo := repotest.Repo(test.change)
			if got := test.known.LookDue(repo, test.announced, repotest.Start); got != test.wantDue {
				t.Errorf("due: %v, want %v", got, test.wantDue)
			}
			if got := test.known.MaxAge(repo, repotest.Start); got != test.wantAge {
				t.Errorf("listing may be %s old, want %s", got, test.wantAge)
			}
		})
	}
}

func TestHear(t *testing.T) {
	local := time.FixedZone("somewhere", 3600)
	for name, test := range map[string]struct {
		known       Entry
		said        Announcement
		wantNew     bool
		wantAwaited bool
	}{
		"nothing said": {Entry{}, Announcement{}, false, false},
		"new":          {Entry{}, Announcement{"a", repotest.Start}, true, true},
		"known":        {Entry{announcement: Announcement{"a", repotest.Start}}, Announcement{"a", repotest.Start.In(local)}, false, false},
		"again":        {Entry{announcement: Announcement{"a", repotest.Start.Add(-time.Minute)}}, Announcement{"a", repotest.Start}, true, true},
		// It causes a look all the same: the pass may be late, or the receiver's clock wrong.
		"new, but old": {Entry{}, Announcement{"a", repotest.Start.Add(-time.Hour)}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.known.Hear(test.said, repotest.Start); got != test.wantNew || test.known.awaited != test.wantAwaited {
				t.Errorf("new %v, awaited %v; want %v, %v", got, test.known.awaited, test.wantNew, test.wantAwaited)
			}
		})
	}
}

func TestReadsOfOneSource(t *testing.T) {
	bad, good := Key{Commit: "bad"}, Key{Commit: "good"}
	known := Entry{}
	if !known.ReadDue(good, repotest.Start) {
		t.Fatal("the first read is not due")
	}
	known.Stored(Applied{Key: good, Warnings: []bundle.Warning{{Message: "old"}}, At: repotest.Start})
	known.FailedToRead(bad, nil, repotest.ErrYAML, repotest.Start)
	if known.ReadDue(bad, repotest.Start) {
		t.Error("a read that just failed is due at once")
	}
	if !known.ReadDue(Key{Commit: "bad", Generation: 2}, repotest.Start) {
		t.Error("an edit does not make a read due")
	}
	// Whoever mends something else, such as a Secret, is noticed without a commit.
	if !known.ReadDue(bad, repotest.Start.Add(lastRetry)) {
		t.Error("what a person must mend is not tried again")
	}
	// The branch is set back to the commit that was applied.
	known.Back()
	if known.ReadErr != nil || known.Problem() != nil || len(known.Warnings) != 1 {
		t.Errorf("after the way back: error %v, warnings %v", known.ReadErr, known.Warnings)
	}
}

func TestPausesBetweenFailedReads(t *testing.T) {
	key := Key{Commit: "a"}
	known := Entry{}
	var got []time.Duration
	for _, err := range []error{repotest.ErrYAML, repotest.ErrYAML, repotest.ErrHost, repotest.ErrGone, repotest.ErrGone} {
		known.FailedToRead(key, nil, err, repotest.Start)
		got = append(got, known.nextRead.Sub(repotest.Start))
	}
	want := []time.Duration{1, 2, 4, 4, 4}
	for i := range want {
		if got[i] != want[i]*time.Second {
			t.Errorf("pause %d is %s, want %ds", i, got[i], want[i])
		}
	}
	known.FailedToRead(Key{Commit: "b"}, nil, repotest.ErrYAML, repotest.Start)
	if got := known.nextRead.Sub(repotest.Start); got != time.Second {
		t.Errorf("the first failure of another source waits %s", got)
	}
}

func TestNextPass(t *testing.T) {
	in := func(d time.Duration) time.Time { return repotest.Start.Add(d) }
	for name, test := range map[string]struct {
		known Entry
		want  time.Duration
	}{
		"look":                           {Entry{nextLook: in(15 * time.Second)}, 15 * time.Second},
		"overdue":                        {Entry{nextLook: in(-time.Hour)}, ShortestPass},
		"failed read, polling off":       {Entry{nextLook: in(notAgain), ReadErr: repotest.ErrHost, nextRead: in(2 * time.Second)}, 2 * time.Second},
		"look before the read":           {Entry{nextLook: in(time.Second), ReadErr: repotest.ErrHost, nextRead: in(time.Minute)}, time.Second},
		"read that failed long ago":      {Entry{nextLook: in(time.Minute), nextRead: in(time.Second)}, time.Minute},
		"applied a moment ago":           {Entry{nextLook: in(notAgain), Applied: &Applied{At: in(-time.Second)}}, settleTime - time.Second},
		"applied long ago":               {Entry{nextLook: in(time.Hour), Applied: &Applied{At: in(-time.Hour)}}, time.Hour},
		"applied a moment ago, look due": {Entry{nextLook: in(time.Second), Applied: &Applied{At: repotest.Start}}, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			if got := test.known.NextPass(repotest.Start); got != test.want {
				t.Errorf("next pass in %s, want %s", got, test.want)
			}
		})
	}
}

// Whatever happens, there is a next pass, and it is not at once: nothing waits for ever after a failure, and
// nothing spins.
func TestThereIsAlwaysANextPass(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	outcomes := []error{nil, repotest.ErrHost, repotest.ErrYAML, repotest.ErrGone, errors.New("plain")}
	for range 2000 {
		repo := repotest.Repo(func(r *fleet.GitRepo) { r.Spec.DisablePolling = random.IntN(2) == 0 })
		known, now := Entry{}, repotest.Start
		for range random.IntN(12) {
			now = now.Add(time.Duration(random.Int64N(int64(time.Minute))))
			repo.Generation += random.Int64N(2)
			if known.LookDue(repo, known.Hear(Announcement{Commit: "c", At: now}, now) && random.IntN(3) == 0, now) {
				known.Looked(repo, "c", outcomes[random.IntN(len(outcomes))], now, random.Float64())
			}
			if err := outcomes[random.IntN(len(outcomes))]; err != nil {
				known.FailedToRead(KeyOf(repo, known.Seen), nil, err, now)
			} else {
				known.Stored(Applied{Key: KeyOf(repo, known.Seen), At: now})
			}
			next := known.NextPass(now)
			if next < ShortestPass {
				t.Fatalf("the next pass comes in %s", next)
			}
			if known.Problem() != nil && next > lastRetry+lastRetry/10 {
				t.Fatalf("with the problem %v the next pass comes in %s", known.Problem(), next)
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
			known := Entry{Version: test.wrote}
			if got := known.Behind(test.shown); got != test.want {
				t.Errorf("behind: %v, want %v", got, test.want)
			}
		})
	}
}

func TestBookForgetsTheFormerGitRepoOfAName(t *testing.T) {
	var b Book
	key := types.NamespacedName{Namespace: "a", Name: "b"}
	first := b.Open(key, "1")
	first.Seen = "commit"
	if b.Open(key, "1") != first {
		t.Error("the entry is not kept")
	}
	if b.Open(key, "2").Seen != "" {
		t.Error("a GitRepo made anew knows what the former one saw")
	}
	b.Forget(key)
	if len(b.entries) != 0 {
		t.Error("forgetting leaves something")
	}
}
