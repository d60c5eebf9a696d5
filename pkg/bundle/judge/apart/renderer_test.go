package apart

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/testr"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/judge"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

// roleVariable makes the test program a process that renders, or one that cannot.
const roleVariable = "FAIRLEAD_APART"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "":
		os.Exit(m.Run())
	case "serve":
		if err := Serve(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "old":
		fmt.Println(`{"version":0}`)
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
}

// started counts the processes of a Renderer.
type started struct {
	*Renderer
	mutex    sync.Mutex
	commands []*exec.Cmd
}

func renderer(t *testing.T, role string, memory int64) *started {
	t.Helper()
	s := &started{}
	s.Renderer = New(Options{Memory: memory, Log: testr.New(t), Command: func() *exec.Cmd {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		command := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0])
		command.Env = []string{roleVariable + "=" + role}
		s.commands = append(s.commands, command)
		return command
	}})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		for _, command := range s.commands {
			if command.ProcessState == nil {
				t.Errorf("process %d was left behind", command.Process.Pid)
			}
		}
	})
	return s
}

func job(template string) judge.Job {
	return judge.Job{KubernetesVersion: "v1.30.0", Input: render.Input{
		BundleID: "app", ManifestID: "s-" + strconv.Itoa(len(template)) + template[:1],
		Manifest: content.Manifest{Resources: []fleet.BundleResource{
			{Name: "Chart.yaml", Content: "apiVersion: v2\nname: app\nversion: 1.0.0\n"},
			{Name: "templates/a.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: " + template + "}\n"},
			{Name: "templates/_doubling.tpl", Content: `{{ define "double" }}{{ if lt .n 40 }}{{ $half := include "double" (dict "n" (add1 .n)) }}{{ $half }}{{ $half }}{{ else }}xxxxxxxx{{ end }}{{ end }}`},
		}},
	}}
}

// What is found is what Judge finds; one process does it all, also for other options of the same files.
func TestSameAsJudge(t *testing.T) {
	r := renderer(t, "serve", 0)
	for _, template := range []string{"1", `{{ fail "no" }}`, `{{ required "tier" .Values.tier }}`, `{{ lookup "v1" "Secret" "a" "b" | required "x" }}`, `{{ if semverCompare "<1.31-0" .Capabilities.KubeVersion.Version }}1{{ end }}`} {
		for _, tier := range []string{"", "gold"} {
			asked := job(template)
			if tier != "" {
				asked.Input.Options.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{"tier": tier}}}
			}
			got, want := r.Judge(t.Context(), asked), judge.Judge(t.Context(), asked)
			if got != want {
				t.Errorf("%s with %q: got %+v, want %+v", template, tier, got, want)
			}
		}
	}
	if len(r.commands) != 1 {
		t.Errorf("%d processes", len(r.commands))
	}
}

// Templates that take too much memory end their process and nothing else; the bundle is held back, and says why.
func TestTooMuchMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("memory is limited on Linux only")
	}
	r := renderer(t, "serve", 128<<20)
	if found := r.Judge(t.Context(), job("1")); found.Result != judge.Passed {
		t.Fatalf("a small bundle: %+v", found)
	}
	for _, template := range []string{`{{ range until 100000000 }}{{ end }}`, `{{ repeat 1000000000 "x" }}`, `{{ include "double" (dict "n" 0) }}`} {
		found := r.Judge(t.Context(), job(template))
		if found.Result != judge.Failed || !strings.Contains(found.Message, "bundle app") || !strings.Contains(found.Message, "128 MiB") {
			t.Errorf("%s: %+v", template, found)
		}
	}
	asked := job(`{{ repeat 1000000000 "x" }}`)
	asked.Input.Options.Helm = &fleet.HelmOptions{ValuesFrom: []fleet.ValuesFrom{{}}}
	if found := r.Judge(t.Context(), asked); found.Result != judge.MemberDecides {
		t.Errorf("with values of the member: %+v", found)
	}
	if found := r.Judge(t.Context(), job("2")); found.Result != judge.Passed {
		t.Errorf("a bundle after those: %+v", found)
	}
}

// Files of a bundle have room beside the limit.
func TestLargeFiles(t *testing.T) {
	r := renderer(t, "serve", 64<<20)
	asked := job("1")
	for i := range 3 {
		asked.Input.Manifest.Resources = append(asked.Input.Manifest.Resources,
			fleet.BundleResource{Name: fmt.Sprintf("files/%d.txt", i), Content: strings.Repeat("some text\n", 1<<20)})
	}
	if found := r.Judge(t.Context(), asked); found.Result != judge.Passed {
		t.Errorf("%+v", found)
	}
}

// A template that never ends is ended with the context.
func TestNoEnd(t *testing.T) {
	r := renderer(t, "serve", 0)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	endless := `{{ range until 60000 }}{{ range until 60000 }}{{ end }}{{ end }}`
	if found := r.Judge(ctx, job(endless)); found.Result != judge.GaveUp {
		t.Errorf("%+v", found)
	}
	if found := r.Judge(t.Context(), job("1")); found.Result != judge.Passed {
		t.Errorf("a bundle after that: %+v", found)
	}
}

// A program that is another one, or none, lets bundles through.
func TestOtherProgram(t *testing.T) {
	for _, role := range []string{"old", "nothing"} {
		if found := renderer(t, role, 0).Judge(t.Context(), job("1")); found.Result != judge.GaveUp {
			t.Errorf("%s: %+v", role, found)
		}
	}
}

// A process does not outlive who started it, whatever it does.
func TestInputEnds(t *testing.T) {
	for _, template := range []string{"1", `{{ range until 60000 }}{{ range until 60000 }}{{ end }}{{ end }}`} {
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = []string{roleVariable + "=serve"}
		c, err := start(command, 0)
		if err != nil {
			t.Fatal(err)
		}
		asked := job(template)
		if err := c.to.Encode(request{Job: asked}); err != nil {
			t.Fatal(err)
		}
		if err := c.in.Close(); err != nil {
			t.Fatal(err)
		}
		if err := command.Wait(); err != nil {
			t.Errorf("%s: %v", template, err)
		}
	}
}

// Processes that are asked at one time are several; one of them stays.
func TestOneStays(t *testing.T) {
	r := renderer(t, "serve", 0)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			if found := r.Judge(t.Context(), job("1")); found.Result != judge.Passed {
				t.Errorf("%+v", found)
			}
		})
	}
	group.Wait()
	running := 0
	for _, command := range r.commands {
		if command.ProcessState == nil {
			running++
		}
	}
	if running != 1 {
		t.Errorf("%d processes stay", running)
	}
}

func BenchmarkJudge(b *testing.B) {
	r := New(Options{Log: logr.Discard(), Command: func() *exec.Cmd {
		command := exec.Command(os.Args[0])
		command.Env = []string{roleVariable + "=serve"}
		return command
	}})
	ctx, cancel := context.WithCancel(b.Context())
	for b.Loop() {
		if r.Judge(b.Context(), job("1")).Result != judge.Passed {
			b.Fatal("does not render")
		}
	}
	cancel()
	_ = r.Start(ctx)
}
