package kubetest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
)

// shownLines of each log are printed when a test fails.
const shownLines = 15

// Options say which clusters a test needs.
type Options struct {
	// Members is how many clusters there are besides the hub.
	Members int
	// Nodes each cluster has: 0 means one. On a node pods become Ready.
	Nodes int
	// APIOnly gives API servers only, without nodes and controllers (see kube.Options).
	APIOnly bool
}

// Fleet is a set of running clusters: hub, member-1, member-2 and so on.
type Fleet struct {
	Hub     *kube.Cluster
	Members []*kube.Cluster

	dir string
}

// Start starts clusters for one test and has them stopped when it ends. When they do not start the
// test fails at once.
func Start(t testing.TB, options Options) *Fleet {
	t.Helper()
	fleet, err := start(t.Context(), options, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := fleet.finish(t.Failed(), t.Output()); err != nil {
			t.Error(err)
		}
	})
	return fleet
}

// Shared is a set of clusters that the tests of one package use together.
type Shared struct {
	options Options
	once    sync.Once
	fleet   *Fleet
	err     error
}

// Share returns a set that is started when it is first asked for.
func Share(options Options) *Shared { return &Shared{options: options} }

// Get returns the clusters, started if this is the first call. When they do not start, or one of
// their processes has ended, the test fails at once.
func (s *Shared) Get(t testing.TB) *Fleet {
	t.Helper()
	s.once.Do(func() {
		// Not the test's context: the clusters outlive it.
		s.fleet, s.err = start(context.Background(), s.options, t.Logf)
	})
	if s.err != nil {
		t.Fatal(s.err)
	}
	for _, cluster := range s.fleet.All() {
		if err := cluster.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return s.fleet
}

// Run runs a package's tests, stops the clusters and returns the exit code for os.Exit.
func (s *Shared) Run(m *testing.M) int {
	code := m.Run()
	if s.fleet == nil {
		return code
	}
	if err := s.fleet.finish(code != 0, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return max(code, 1)
	}
	return code
}

// All returns the hub and the members.
func (f *Fleet) All() []*kube.Cluster { return append([]*kube.Cluster{f.Hub}, f.Members...) }

// Logs returns the last lines of the logs of all processes of all clusters.
func (f *Fleet) Logs() string {
	var all strings.Builder
	for _, cluster := range f.All() {
		all.WriteString(cluster.LogTails(shownLines))
	}
	return all.String()
}

func start(ctx context.Context, options Options, logf func(string, ...any)) (*Fleet, error) {
	binaries, err := kube.FindBinaries(ctx, "", os.Stderr)
	if err != nil {
		return nil, err
	}
	// Not a test's own folder, which would be gone when somebody wants to read the logs.
	dir, err := os.MkdirTemp("", "fairlead-kube-")
	if err != nil {
		return nil, fmt.Errorf("start clusters: %w", err)
	}
	nodes := max(options.Nodes, 1)
	if options.APIOnly {
		nodes = 0
	}
	wanted := make([]kube.Options, options.Members+1)
	for i := range wanted {
		name := "hub"
		if i > 0 {
			name = fmt.Sprintf("member-%d", i)
		}
		wanted[i] = kube.Options{
			Name: name, Dir: filepath.Join(dir, name), Binaries: binaries,
			Nodes: nodes, APIOnly: options.APIOnly, Logf: logf,
		}
	}
	clusters, err := kube.StartAll(ctx, wanted)
	if err != nil {
		return nil, fmt.Errorf("%w\nlogs are in %s", err, dir)
	}
	return &Fleet{Hub: clusters[0], Members: clusters[1:], dir: dir}, nil
}

// finish stops the clusters and removes their files; of a failed test the logs are shown and kept.
func (f *Fleet) finish(failed bool, output io.Writer) error {
	stopped := kube.StopAll(f.All())
	if !failed && stopped == nil {
		return os.RemoveAll(f.dir)
	}
	fmt.Fprint(output, f.Logs())
	return errors.Join(stopped, f.keepLogs())
}

// keepLogs removes everything but the logs: etcd alone takes 120 MB a cluster.
func (f *Fleet) keepLogs() error {
	var failures []error
	for _, cluster := range f.All() {
		failures = append(failures, cluster.RemoveData())
	}
	return errors.Join(failures...)
}
