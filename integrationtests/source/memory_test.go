package source

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
	"github.com/fairlead-dev/fairlead/integrationtests/gitserver/gitservertest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/cli"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/gitjob/git"
)

const (
	// roleVariable makes the test program a process whose memory is measured.
	roleVariable = "FAIRLEAD_MEASURED"
	mib          = 1 << 20
	// allowance is what reading may need beyond the largest bundle.
	allowance = 64 * mib
)

func TestMain(m *testing.M) {
	if role := os.Getenv(roleVariable); role != "" {
		os.Exit(measured(role))
	}
	os.Exit(m.Run())
}

// work is what a measured process does, and what it found.
type work struct {
	Do      string `json:"do"`
	URL     string `json:"url,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Dir     string `json:"dir"`
	Bundles int    `json:"bundles,omitempty"`
	// Largest is the size of the largest bundle as it is stored, in bytes.
	Largest int64 `json:"largest,omitempty"`
	// Peak is the most memory that was resident beyond what was before the work, in bytes.
	Peak int64  `json:"peak,omitempty"`
	Err  string `json:"err,omitempty"`
}

// measured does the work of a child and answers on standard output.
func measured(role string) int {
	var w work
	if err := json.Unmarshal([]byte(role), &w); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	before := resident("VmRSS:")
	if err := works[w.Do](&w); err != nil {
		w.Err = err.Error()
	}
	w.Peak = resident("VmHWM:") - before
	_ = json.NewEncoder(os.Stdout).Encode(w)
	return 0
}

func resident(field string) int64 {
	status, _ := os.ReadFile("/proc/self/status")
	_, after, _ := strings.Cut(string(status), field)
	kib, _ := strconv.ParseInt(strings.Fields(after)[0], 10, 64)
	return kib << 10
}

func measure(t *testing.T, w work) work {
	t.Helper()
	role, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), roleVariable+"="+string(role))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, &errs)
	}
	if err := json.Unmarshal(out.Bytes(), &w); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	return w
}

// works are what a measured process can do.
var works = map[string]func(*work) error{"read": readCommit, "apply": applyFolder}

// readCommit reads a commit as the hub does: fetch into a mirror, make the Bundles.
func readCommit(w *work) error {
	service, err := git.New(git.Options{Dir: w.Dir})
	if err != nil {
		return err
	}
	defer func() { _ = service.Close() }()
	source := git.Source{URL: w.URL, Branch: "master"}
	tree, err := service.Checkout(ctx, source, w.Commit)
	if err != nil {
		return err
	}
	defer func() { _ = tree.Close() }()
	reading, err := bundle.Open(ctx, tree, bundle.Request{Name: "r", Namespace: "n", Commit: w.Commit}, nil)
	if err != nil {
		return err
	}
	_, err = reading.Each(ctx, func(made bundle.Bundle) error {
		w.Bundles++
		var size int64
		for _, resource := range made.Object.Spec.Resources {
			size += int64(len(resource.Content))
		}
		w.Largest = max(w.Largest, size)
		stored, detached, err := content.Detach(made.Object, fleet.ContentsOnHub)
		if err != nil {
			return err
		}
		if _, err := content.Summarize(made.Object.Spec); err != nil || !detached {
			return err
		}
		_, err = stored.Objects()
		return err
	})
	return err
}

// applyFolder is `fleet apply -o -` in a folder.
func applyFolder(w *work) error {
	if err := os.Chdir(w.Dir); err != nil {
		return err
	}
	var errs bytes.Buffer
	code := cli.Run(ctx, []string{"apply", "r", "-o", "-"}, genericiooptions.IOStreams{In: os.Stdin, Out: io.Discard, ErrOut: &errs}, session.Environment{})
	if code != 0 {
		return errors.New(errs.String())
	}
	return nil
}

// noise returns text that does not compress: a reader cannot keep it smaller than it is.
func noise(seed uint64, size int) string {
	var key [32]byte
	key[0] = byte(seed)
	out := make([]byte, size)
	_, _ = rand.NewChaCha8(key).Read(out)
	return string(out)
}

// checkedOut returns a folder with the files.
func checkedOut(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestReadingIsBounded(t *testing.T) {
	if _, err := os.Stat("/proc/self/clear_refs"); err != nil {
		t.Skip("memory is measured on Linux")
	}
	server, err := gitserver.Start(gitserver.Options{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	several := map[string]string{}
	for i := range 8 {
		several[fmt.Sprintf("more/%d/file.bin", i)] = noise(uint64(10+i), 8*mib)
		several[fmt.Sprintf("more/%d/fleet.yaml", i)] = ""
	}
	for name, files := range map[string]map[string]string{
		"eight of them":    several,
		"the largest file": {"large/file.bin": noise(1, 24*mib)},
		"one large bundle": {"large/a.bin": noise(1, 8*mib), "large/b.bin": noise(2, 8*mib), "large/c.bin": noise(3, 8*mib)},
		"text":             {"large/a.txt": strings.Repeat("some text\n", 2*mib), "large/b.txt": strings.Repeat("more text\n", 2*mib)},
	} {
		t.Run(name, func(t *testing.T) {
			all := map[string]string{"large/fleet.yaml": "", "large/a.yaml": "apiVersion: v1\nkind: A\n"}
			maps.Copy(all, files)
			for i := range 200 {
				all[fmt.Sprintf("small/%d/fleet.yaml", i)] = ""
				all[fmt.Sprintf("small/%d/a.yaml", i)] = fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\n", i)
			}
			repo := gitservertest.NewRepo(t, server, strings.ReplaceAll(name, " ", "-"))
			repo.Config("core.compression", "0")
			repo.Config("pack.compression", "0")
			commit := repo.Commit(all)
			done := measure(t, work{Do: "read", URL: repo.HTTPURL(), Commit: commit, Dir: t.TempDir()})
			if done.Err != "" || done.Bundles < 201 {
				t.Fatalf("%d bundles, %s", done.Bundles, done.Err)
			}
			applied := measure(t, work{Do: "apply", Dir: checkedOut(t, all)})
			if applied.Err != "" {
				t.Fatal(applied.Err)
			}
			t.Logf("largest bundle %d MiB, read with %d MiB, applied with %d MiB", done.Largest/mib, done.Peak/mib, applied.Peak/mib)
			if done.Peak > done.Largest+allowance || applied.Peak > done.Largest+allowance {
				t.Errorf("for a largest bundle of %d MiB reading took %d MiB and applying %d MiB", done.Largest/mib, done.Peak/mib, applied.Peak/mib)
			}
		})
	}
}
