package stack

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	// Workspace is the namespace on the hub whose Clusters the members are.
	Workspace = "fleet-default"
	// SystemNamespace is where the charts go, on the hub and on members.
	SystemNamespace = "cattle-fleet-system"

	// joinTimeout bounds each member's way from an installed chart to an Available Cluster.
	joinTimeout = 2 * time.Minute
	logsDir     = "logs"
)

// Options describe a stack.
type Options struct {
	// Dir holds everything the stack writes. It is made when missing and never removed.
	Dir string
	// Binaries are the programs of control planes, Programs those of this repository.
	Binaries kube.Binaries
	Programs Programs
	// Members are the clusters beside the hub; DefaultMembers when nil.
	Members []MemberOptions
	// Nodes is how many nodes each member has; 0 means one.
	Nodes int
	// ControllerArgs are given to fleet-controller beside those the stack needs.
	ControllerArgs []string
	// AgentArgs are given to every fleet-agent beside those.
	AgentArgs []string
	// Steps, when set, runs the steps of Start.
	Steps *Steps
	// Logf, when set, is told details.
	Logf func(format string, args ...any)
}

// MemberOptions describe one member.
type MemberOptions struct {
	// Name of the control plane and of the Cluster.
	Name string
	// Labels of the Cluster.
	Labels map[string]string
}

// DefaultMembers returns three members, one for each value of the label env, in two regions.
func DefaultMembers() []MemberOptions {
	return []MemberOptions{
		{"dev", map[string]string{"env": "dev", "region": "north"}},
		{"test", map[string]string{"env": "test", "region": "south"}},
		{"prod", map[string]string{"env": "prod", "region": "north"}},
	}
}

// Stack is a running fleet.
type Stack struct {
	Hub     *kube.Cluster
	Members []*Member
	// Controller is the hub's program.
	Controller *Program
	// Client is the administrator's on the hub.
	Client client.Client
	// WebhookURL is where the hub receives push notifications (see Announce).
	WebhookURL string

	options    Options
	scheme     *runtime.Scheme
	parent     *process.Parent
	webhookKey string
}

// Start starts a stack and returns when every member's Cluster is Available. On an error nothing is left
// running; the error is a *StepError. The caller must call Stop; the context only bounds the start.
func Start(ctx context.Context, options Options) (*Stack, error) {
	if options.Steps == nil {
		options.Steps = &Steps{}
	}
	if options.Members == nil {
		options.Members = DefaultMembers()
	}
	dir, err := filepath.Abs(options.Dir)
	if err != nil {
		return nil, err
	}
	options.Dir = dir
	s := &Stack{options: options, scheme: runtime.NewScheme(), parent: process.NewParent()}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context) error {
	if err := errors.Join(clientgoscheme.AddToScheme(s.scheme), fleet.AddToScheme(s.scheme)); err != nil {
		return err
	}
	steps := s.options.Steps
	if err := steps.Run(ctx, "start control planes", s.options.Dir, s.startClusters); err != nil {
		return err
	}
	if err := steps.Run(ctx, "install the hub's charts", "", s.installHub); err != nil {
		return err
	}
	if err := steps.Run(ctx, "start "+controllerProgram, s.logOf(controllerProgram), s.startController); err != nil {
		return err
	}
	group, groupCtx := errgroup.WithContext(ctx)
	for _, member := range s.Members {
		group.Go(func() error {
			return steps.Run(groupCtx, "join member "+member.Name, s.logOf(agentName(member.Name)), func(ctx context.Context) error {
				ctx, cancel := context.WithTimeout(ctx, joinTimeout)
				defer cancel()
				return s.join(ctx, member)
			})
		})
	}
	return group.Wait()
}

func (s *Stack) startClusters(ctx context.Context) error {
	wanted := []kube.Options{s.clusterOptions("hub", 1)}
	for _, member := range s.options.Members {
		wanted = append(wanted, s.clusterOptions(member.Name, max(s.options.Nodes, 1)))
	}
	clusters, err := kube.StartAll(ctx, wanted)
	if err != nil {
		return err
	}
	s.Hub = clusters[0]
	if s.Client, err = s.clientOf(s.Hub); err != nil {
		return errors.Join(err, kube.StopAll(clusters[1:]))
	}
	for i, cluster := range clusters[1:] {
		member := &Member{Cluster: cluster, Name: s.options.Members[i].Name, Labels: s.options.Members[i].Labels}
		s.Members = append(s.Members, member)
	}
	for _, member := range s.Members {
		if member.Client, err = s.clientOf(member.Cluster); err != nil {
			return err
		}
	}
	return nil
}

func (s *Stack) clusterOptions(name string, nodes int) kube.Options {
	return kube.Options{Name: name, Dir: filepath.Join(s.options.Dir, name), Binaries: s.options.Binaries, Nodes: nodes, Logf: s.options.Logf}
}

func (s *Stack) clientOf(cluster *kube.Cluster) (client.Client, error) {
	c, err := client.New(cluster.Admin().Config, client.Options{Scheme: s.scheme})
	if err != nil {
		return nil, fmt.Errorf("make a client of %s: %w", cluster.Name(), err)
	}
	return c, nil
}

// Member returns a member by name, nil when there is none.
func (s *Stack) Member(name string) *Member {
	for _, member := range s.Members {
		if member.Name == name {
			return member
		}
	}
	return nil
}

// Dir returns the folder of the stack's files, as an absolute path.
func (s *Stack) Dir() string { return s.options.Dir }

// Logs returns the path of every log of this repository's programs.
func (s *Stack) Logs() []string {
	var paths []string
	for _, program := range s.programs() {
		paths = append(paths, program.Log())
	}
	return paths
}

// Err returns an error that names the processes which ended by themselves; none should.
func (s *Stack) Err() error {
	var failures []error
	for _, cluster := range s.clusters() {
		failures = append(failures, cluster.Err())
	}
	for _, program := range s.programs() {
		failures = append(failures, program.Err())
	}
	return errors.Join(failures...)
}

// Processes returns the process ids of all that runs, by "cluster/program".
func (s *Stack) Processes() map[string]int {
	pids := map[string]int{}
	for _, cluster := range s.clusters() {
		for name, pid := range cluster.Processes() {
			pids[cluster.Name()+"/"+name] = pid
		}
	}
	for _, program := range s.programs() {
		if program.Running() {
			pids[program.Name()] = program.Pid()
		}
	}
	return pids
}

// Stop ends everything and returns when it is gone. The error names what had ended by itself before.
func (s *Stack) Stop() error {
	var failures []error
	for _, program := range s.programs() {
		failures = append(failures, program.Err(), program.Kill())
	}
	failures = append(failures, kube.StopAll(s.clusters()))
	s.parent.Close()
	return errors.Join(failures...)
}

// RemoveData removes what a stopped stack has written, but for its logs.
func (s *Stack) RemoveData() error {
	var failures []error
	for _, cluster := range s.clusters() {
		failures = append(failures, cluster.RemoveData())
	}
	return errors.Join(failures...)
}

// LogTails returns the last lines of the programs' and control planes' logs.
func (s *Stack) LogTails(lines int) string {
	var out strings.Builder
	for _, program := range s.programs() {
		out.WriteString(tail(program.Log(), lines))
	}
	for _, cluster := range s.clusters() {
		out.WriteString(cluster.LogTails(min(lines, 5)))
	}
	return out.String()
}

func (s *Stack) clusters() []*kube.Cluster {
	var all []*kube.Cluster
	if s.Hub != nil {
		all = append(all, s.Hub)
	}
	for _, member := range s.Members {
		all = append(all, member.Cluster)
	}
	return all
}

func (s *Stack) programs() []*Program {
	var all []*Program
	if s.Controller != nil {
		all = append(all, s.Controller)
	}
	for _, member := range s.Members {
		if member.Agent != nil {
			all = append(all, member.Agent)
		}
	}
	return all
}

func (s *Stack) logOf(program string) string {
	return filepath.Join(s.options.Dir, logsDir, program+".log")
}
