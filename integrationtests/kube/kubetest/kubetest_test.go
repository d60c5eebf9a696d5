package kubetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

var clusters = Share(Options{Members: 1, APIOnly: true})

func TestMain(m *testing.M) { os.Exit(clusters.Run(m)) }

func TestFleetIsClustersApart(t *testing.T) {
	fleet := clusters.Get(t)
	if clusters.Get(t) != fleet {
		t.Error("a second Get gave other clusters")
	}
	if len(fleet.Members) != 1 || fleet.Hub.Name() != "hub" || fleet.Members[0].Name() != "member-1" {
		t.Fatalf("clusters %v", fleet.All())
	}
	member := fleet.Members[0]
	if bytes.Equal(fleet.Hub.CA(), member.CA()) || fleet.Hub.URL() == member.URL() {
		t.Error("hub and member are the same")
	}
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "there"}}
	if _, err := member.Clients().CoreV1().ConfigMaps("default").Create(t.Context(), configMap, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := fleet.Hub.Clients().CoreV1().ConfigMaps("default").Get(t.Context(), "there", metav1.GetOptions{}); err == nil {
		t.Error("what the member stores is on the hub")
	}
}

func TestNamespaceIsTheTestsOwn(t *testing.T) {
	hub := clusters.Get(t).Hub
	var first string
	t.Run("with/odd ~ characters, and a name that is longer than a label may be", func(t *testing.T) {
		first = Namespace(t, hub)
		if second := Namespace(t, hub); second == first {
			t.Error("two of one name")
		}
	})
	namespace, err := hub.Clients().CoreV1().Namespaces().Get(t.Context(), first, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if namespace.DeletionTimestamp == nil {
		t.Error("it is not deleted when its test ends")
	}
}

func TestNamePrefix(t *testing.T) {
	for name, test := range map[string]struct{ in, want string }{
		"plain":      {"TestFoo", "testfoo-"},
		"subtest":    {"TestFoo/a_b c", "testfoo-a-b-c-"},
		"odd ends":   {"/Test/", "test-"},
		"not ASCII":  {"TestÄ", "test-"},
		"very long":  {strings.Repeat("x", 100), strings.Repeat("x", 53) + "-"},
		"long, odd":  {strings.Repeat("x", 52) + "/y", strings.Repeat("x", 52) + "-"},
		"many bytes": {"T" + strings.Repeat("日", 60) + "t", "t-"},
	} {
		t.Run(name, func(t *testing.T) {
			got := namePrefix(test.in)
			if got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if problems := validation.IsDNS1123Label(got + "abcde"); len(problems) != 0 {
				t.Error(problems)
			}
		})
	}
}

func TestStartStopsWhenTheTestEnds(t *testing.T) {
	var fleet *Fleet
	t.Run("uses clusters", func(t *testing.T) {
		fleet = Start(t, Options{APIOnly: true})
		if len(fleet.Hub.Processes()) != 2 {
			t.Errorf("runs %v", fleet.Hub.Processes())
		}
	})
	if left := fleet.Hub.Processes(); len(left) != 0 {
		t.Errorf("%v still run", left)
	}
	if _, err := os.Stat(fleet.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("their files are still there: %v", err)
	}
}

func TestLogsOfAFailedTestAreShownAndKept(t *testing.T) {
	fleet, err := start(t.Context(), Options{APIOnly: true}, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(fleet.dir)
	var output bytes.Buffer
	if err := fleet.finish(true, &output); err != nil {
		t.Fatal(err)
	}
	var kept []string
	err = filepath.WalkDir(fleet.dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			kept = append(kept, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(kept) != 2 {
		t.Errorf("kept %v, want the logs of two processes", kept)
	}
	for _, path := range kept {
		if !strings.Contains(output.String(), path) {
			t.Errorf("%s is not shown in\n%s", path, &output)
		}
	}
}

func TestEventuallyFailsWithTheLastAnswer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	recorder := &recordingT{TB: t, ctx: ctx}
	recorder.run(func() {
		asked := 0
		Eventually(recorder, "it works", func(context.Context) error {
			if asked++; asked == 3 {
				cancel()
				return errors.New("cut short")
			}
			return fmt.Errorf("answer %d", asked)
		})
	})
	if want := "gave up waiting until it works: answer 2"; recorder.failure != want {
		t.Errorf("failed with %q, want %q", recorder.failure, want)
	}
}

func TestDeadClustersFailTheTestThatAsksForThem(t *testing.T) {
	shared := &Shared{}
	shared.once.Do(func() { shared.err = errors.New("no room") })
	recorder := &recordingT{TB: t, ctx: t.Context()}
	recorder.run(func() { shared.Get(recorder) })
	if recorder.failure != "no room" {
		t.Errorf("failed with %q", recorder.failure)
	}
}

// recordingT is a test whose failure is recorded instead of failing.
type recordingT struct {
	testing.TB
	ctx     context.Context
	failure string
}

// run runs a test's body, which Fatal ends.
func (r *recordingT) run(body func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		body()
	}()
	<-done
}

func (r *recordingT) Context() context.Context { return r.ctx }

func (r *recordingT) Fatal(args ...any) {
	r.failure = fmt.Sprint(args...)
	runtime.Goexit()
}

func (r *recordingT) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}
