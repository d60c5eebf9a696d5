// Command fleet-agent runs on a member of the fleet: it registers with the hub, deploys what the hub
// assigns to its cluster, and reports how it does.
package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/fairlead-dev/fairlead/pkg/version"
)

// settings are the flags.
type settings struct {
	namespace, agentScope, kubeconfig string
	checkinInterval, heartbeat        time.Duration
	collectInterval                   time.Duration
	workers                           int
	leaderElect                       bool
	election                          election
	debug                             bool
	debugLevel                        int
	metricsAddress, healthAddress     string
	holder                            string
}

// election are the times of leader election.
type election struct{ lease, renew, retry time.Duration }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := command(os.Getenv, os.Stderr).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// command returns the command line; what flags leave open comes from the environment.
func command(getenv func(string) string, logs io.Writer) *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:           "fleetagent",
		Short:         "Deploy what the hub assigns to this cluster",
		Version:       version.Version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.namespace == "" {
				return fmt.Errorf("--namespace (or NAMESPACE) says where the agent keeps its Secrets and is required")
			}
			log := logger(logs, s)
			klog.SetLogger(log.WithName("client"))
			return run(cmd.Context(), s, log)
		},
	}
	env := environment{getenv}
	flags := cmd.Flags()
	flags.StringVar(&s.namespace, "namespace", getenv("NAMESPACE"), "the agent's namespace on the member")
	flags.StringVar(&s.agentScope, "agent-scope", getenv("AGENT_SCOPE"), "tells several agents on one cluster apart")
	flags.StringVar(&s.kubeconfig, "kubeconfig", "", "kubeconfig of the member; default: the cluster this runs in")
	flags.DurationVar(&s.heartbeat, "heartbeat-interval", 15*time.Second, "how often the Lease on the hub is renewed")
	flags.DurationVar(&s.checkinInterval, "checkin-interval", env.duration("CHECKIN_INTERVAL", 0), "as heartbeat-interval, for hubs that set it; 0 leaves that alone")
	flags.DurationVar(&s.collectInterval, "garbage-collection-interval", env.duration("GARBAGE_COLLECTION_INTERVAL", 15*time.Minute), "how often releases without a deployment are looked for")
	flags.IntVar(&s.workers, "workers", env.integer("BUNDLEDEPLOYMENT_RECONCILER_WORKERS", 50), "how many bundles are worked on at a time")
	flags.BoolVar(&s.leaderElect, "leader-elect", true, "let one of several replicas work")
	flags.DurationVar(&s.election.lease, "leader-election-lease-duration", env.duration("CATTLE_ELECTION_LEASE_DURATION", 30*time.Second), "how long a silent leader is waited for")
	flags.DurationVar(&s.election.renew, "leader-election-renew-deadline", env.duration("CATTLE_ELECTION_RENEW_DEADLINE", 25*time.Second), "how long the leader tries to stay so")
	flags.DurationVar(&s.election.retry, "leader-election-retry-period", env.duration("CATTLE_ELECTION_RETRY_PERIOD", 10*time.Second), "how often it tries")
	flags.BoolVar(&s.debug, "debug", false, "log more")
	flags.IntVar(&s.debugLevel, "debug-level", 1, "how much more")
	flags.StringVar(&s.metricsAddress, "metrics-bind-address", getenv("FLEET_AGENT_METRICS_BIND_ADDRESS"), "address of /metrics; empty or 0: off")
	flags.StringVar(&s.healthAddress, "health-probe-bind-address", getenv("FLEET_AGENT_PROBE_BIND_ADDRESS"), "address of /healthz and /readyz; empty or 0: off")
	s.holder = holder()
	return cmd
}

// holder names this process to others. A container that is started again in its pod has the same name,
// and so need not wait for its own lease to run out.
func holder() string {
	name, err := os.Hostname()
	if err != nil {
		return "fleet-agent"
	}
	return name
}

type environment struct{ getenv func(string) string }

func (e environment) duration(name string, otherwise time.Duration) time.Duration {
	if value, err := time.ParseDuration(e.getenv(name)); err == nil {
		return value
	}
	return otherwise
}

func (e environment) integer(name string, otherwise int) int {
	if value, err := strconv.Atoi(e.getenv(name)); err == nil {
		return value
	}
	return otherwise
}

func logger(out io.Writer, s settings) logr.Logger {
	level := slog.LevelInfo
	if s.debug {
		level = slog.Level(-max(s.debugLevel, 1))
	}
	return logr.FromSlogHandler(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
}
