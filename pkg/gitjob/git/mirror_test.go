package git_test

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver/gitservertest"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git"
)

func mirrors(t *testing.T, dir string) []string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "git-mirrors", "*"))
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestPacksAreWhole lets git itself judge what is stored of a history fetched commit by commit.
func TestPacksAreWhole(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	random := rand.New(rand.NewPCG(1, 2))
	dir := t.TempDir()
	service := newService(t, func(o *git.Options) { o.Dir = dir })
	source := git.Source{URL: repo.HTTPURL()}
	lines := make([]string, 2000)
	for i := range lines {
		lines[i] = fmt.Sprintf("line %d %d\n", i, random.Uint64())
	}
	for round := range 12 {
		lines[random.IntN(len(lines))] = fmt.Sprintf("changed in round %d\n", round)
		big := ""
		for _, line := range lines {
			big += line
		}
		commit := repo.Commit(map[string]string{"big.txt": big, fmt.Sprintf("d/%d.txt", round%5): big[round*10:]})
		wantFile(t, checkout(t, service, source, commit), "big.txt", big)
	}
	found := mirrors(t, dir)
	if len(found) != 1 {
		t.Fatalf("mirrors %v", found)
	}
	packs, err := filepath.Glob(filepath.Join(found[0], "objects", "pack", "*.idx"))
	if err != nil || len(packs) != 12 {
		t.Errorf("packs %v, %v", packs, err)
	}
	for _, pack := range packs {
		if out, err := exec.CommandContext(t.Context(), "git", "verify-pack", pack).CombinedOutput(); err != nil {
			t.Errorf("git does not verify %s: %v: %s", filepath.Base(pack), err, out)
		}
	}
}

func TestGrownMirrorIsReplacedAndOldTreesStay(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	dir := t.TempDir()
	service := newService(t, func(o *git.Options) { o.Dir = dir })
	source := git.Source{URL: repo.HTTPURL()}
	old, err := service.Checkout(t.Context(), source, repo.Commit(map[string]string{"a.txt": "0", "old.txt": "old"}))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 51 {
		checkout(t, service, source, repo.Commit(map[string]string{"a.txt": fmt.Sprint(i)}))
	}
	if found := mirrors(t, dir); len(found) != 2 {
		t.Errorf("%d mirrors while an old tree is open, want 2", len(found))
	}
	wantFile(t, old, "old.txt", "old")
	_ = old.Close()
}

func TestDiskIsBounded(t *testing.T) {
	server := gitservertest.Start(t)
	dir := t.TempDir()
	clock := newClock()
	service := newService(t, func(o *git.Options) { o.Dir, o.Now, o.MaxDiskBytes = dir, clock.Now, 1 })
	for i := range 4 {
		repo := gitservertest.NewRepo(t, server, fmt.Sprintf("app%d", i))
		commit := repo.Commit(map[string]string{"a.txt": "1"})
		tree, err := service.Checkout(t.Context(), git.Source{URL: repo.HTTPURL()}, commit)
		if err != nil {
			t.Fatal(err)
		}
		wantFile(t, tree, "a.txt", "1")
		_ = tree.Close()
		clock.advance(time.Second)
	}
	if found := mirrors(t, dir); len(found) != 1 {
		t.Errorf("mirrors %v, want the last one only", found)
	}
}

func TestIdleRepositoriesAreForgotten(t *testing.T) {
	server := gitservertest.Start(t)
	repo, other := gitservertest.NewRepo(t, server, "app"), gitservertest.NewRepo(t, server, "other")
	commit := repo.Commit(map[string]string{"a.txt": "1"})
	other.Commit(map[string]string{"a.txt": "1"})
	dir := t.TempDir()
	clock := newClock()
	service := newService(t, func(o *git.Options) { o.Dir, o.Now = dir, clock.Now })
	tree, err := service.Checkout(t.Context(), git.Source{URL: repo.HTTPURL()}, commit)
	if err != nil {
		t.Fatal(err)
	}
	_ = tree.Close()
	clock.advance(2 * time.Hour)
	if _, err := service.Resolve(t.Context(), git.Source{URL: other.HTTPURL()}, 0); err != nil {
		t.Fatal(err)
	}
	if found := mirrors(t, dir); len(found) != 0 {
		t.Errorf("mirrors %v", found)
	}
}

func TestLimitsNameWhatIsTooLarge(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	commit := repo.Commit(map[string]string{"big.bin": string(make([]byte, 3<<20)), "small.txt": "s"})
	source := git.Source{URL: repo.HTTPURL()}
	for name, change := range map[string]func(*git.Options){
		"object": func(o *git.Options) { o.MaxObjectBytes = 2 << 20 },
		"pack":   func(o *git.Options) { o.MaxPackBytes = 100 },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := newService(t, change).Checkout(t.Context(), source, commit)
			wantFault(t, err, fault.Stalled, "RepositoryTooLarge", repo.HTTPURL())
		})
	}
	t.Run("file", func(t *testing.T) {
		service := newService(t, func(o *git.Options) { o.MaxFileBytes = 1 << 20 })
		tree := checkout(t, service, source, commit)
		wantFile(t, tree, "small.txt", "s")
		_, err := tree.ReadFile("big.bin")
		wantFault(t, err, fault.Stalled, "RepositoryTooLarge", "big.bin", "3 MiB")
		if info, err := tree.Stat("big.bin"); err != nil || info.Size() != 3<<20 {
			t.Errorf("stat: %v, %v", info, err)
		}
	})
}

func TestCloseEndsWhatRunsAndLeavesNothing(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	repo.Commit(map[string]string{"a.txt": "1"})
	dir := t.TempDir()
	service, err := git.New(git.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			source := git.Source{URL: repo.HTTPURL()}
			commit, err := service.Resolve(t.Context(), source, 0)
			if err != nil {
				return
			}
			if tree, err := service.Checkout(t.Context(), source, commit); err == nil {
				_ = tree.Close()
			}
		})
	}
	if err := service.Close(); err != nil {
		t.Error(err)
	}
	callers.Wait()
	if _, err := service.Resolve(t.Context(), git.Source{URL: repo.HTTPURL()}, 0); err == nil {
		t.Error("a closed service answers")
	}
	if found := mirrors(t, dir); len(found) != 0 {
		t.Errorf("mirrors %v", found)
	}
}

// TestReadersAndWritersMeet reads trees while new commits arrive and mirrors are replaced.
func TestReadersAndWritersMeet(t *testing.T) {
	server := gitservertest.Start(t)
	repo := gitservertest.NewRepo(t, server, "app")
	service := newService(t, func(o *git.Options) { o.MaxDiskBytes = 1 })
	source := git.Source{URL: repo.HTTPURL()}
	var readers sync.WaitGroup
	for round := range 8 {
		content := fmt.Sprint(round)
		commit := repo.Commit(map[string]string{"a.txt": content, "d/" + content: content})
		for range 4 {
			readers.Go(func() {
				tree, err := service.Checkout(t.Context(), source, commit)
				if err != nil {
					t.Errorf("checkout: %v", err)
					return
				}
				defer tree.Close()
				wantFile(t, tree, "a.txt", content)
				wantFile(t, tree, "d/"+content, content)
			})
		}
	}
	readers.Wait()
}
