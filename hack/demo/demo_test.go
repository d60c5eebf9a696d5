package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestOneDemoAtATime(t *testing.T) {
	h := home{t.TempDir()}
	release, err := h.lock()
	if err != nil {
		t.Fatal(err)
	}
	if err := h.record(map[string]int{"hub/etcd": 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.lock(); !errors.Is(err, errRunning) || !strings.Contains(err.Error(), "make demo-down") {
		t.Errorf("a second lock: %v", err)
	}
	release()
	again, err := h.lock()
	if err != nil {
		t.Fatal(err)
	}
	again()
}

func TestDownWithoutDemo(t *testing.T) {
	h := home{t.TempDir()}
	var out bytes.Buffer
	if err := h.down(t.Context(), &out); err != nil || !strings.Contains(out.String(), "no demo is running") {
		t.Errorf("%v, %q", err, out.String())
	}
}

// What a killed demo left is ended; a process that got one of its ids since is let alone.
func TestCleanEndsWhatWasLeft(t *testing.T) {
	if _, err := exec.LookPath("ps"); err != nil {
		t.Skip("there is no ps")
	}
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	left, other := exec.Command(sleep, "600"), exec.Command(sleep, "600")
	for _, cmd := range []*exec.Cmd{left, other} {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	h := home{t.TempDir()}
	if err := h.record(map[string]int{"hub/sleep": left.Process.Pid, "hub/etcd": other.Process.Pid}); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(h.run(), "old")
	if err := os.MkdirAll(old, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := h.clean(); err != nil {
		t.Fatal(err)
	}
	if err := left.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("what was left ended with %v", err)
	}
	if !runs(other.Process.Pid, "hub/sleep") {
		t.Error("a process of somebody else was ended")
	}
	if err := other.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = other.Wait()
	for _, path := range []string{old, h.stateFile()} {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there: %v", path, err)
		}
	}
}

func TestSummaryAndTable(t *testing.T) {
	progress := &stack.Progress{
		Bundles: []string{"one", "two"},
		Deployments: []stack.Deployment{
			{Bundle: "one", Cluster: "dev", State: fleet.Ready, Resources: 1},
			{Bundle: "one", Cluster: "prod", State: fleet.ErrApplied, Resources: 0},
			{Bundle: "two", Cluster: "dev", State: fleet.Ready, Resources: 3},
		},
	}
	if got, want := summary(progress, 2), "2 bundles, ready on clusters: 2 of 4, ErrApplied 1"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	var out bytes.Buffer
	d := &demo{out: &out, stack: &stack.Stack{Members: []*stack.Member{
		{Name: "dev", Labels: map[string]string{"region": "north"}}, {Name: "prod", Labels: map[string]string{"region": "south"}},
	}}}
	d.table(progress)
	want := `BUNDLE   DEV (north)        PROD (south)
one      Ready, 1 object    ErrApplied, 0 objects
two      Ready, 3 objects   -
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestScreenShowsSteps(t *testing.T) {
	var out bytes.Buffer
	s := newScreen(&out)
	s.step(stack.Step{Name: "walk"})
	s.step(stack.Step{Name: "walk", Done: true, Took: 1234 * time.Millisecond})
	s.step(stack.Step{Name: "run", Done: true, Err: errors.New("tired")})
	if want := "  … walk\n  ✓ walk (1.23 s)\n  ✗ run (0.00 s)\n"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}
