package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/utils/clock"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/controller"
	"github.com/fairlead-dev/fairlead/pkg/agent/heartbeat"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/hub"
	"github.com/fairlead-dev/fairlead/pkg/agent/identity"
	"github.com/fairlead-dev/fairlead/pkg/agent/join"
	"github.com/fairlead-dev/fairlead/pkg/agent/synced"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/version"
)

// electionLease is the Lease on the member by which replicas agree which of them works.
const electionLease = "fleet-agent"

// agent is one running agent.
type agent struct {
	settings settings
	log      logr.Logger
	config   *rest.Config
	member   kubernetes.Interface
	// unregistered is set while this replica has the work and cannot do it yet.
	unregistered atomic.Bool
}

func run(ctx context.Context, s settings, log logr.Logger) error {
	config, err := memberConfig(s)
	if err != nil {
		return err
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connect to the member: %w", err)
	}
	a := &agent{settings: s, log: log, config: config, member: clients}
	group, ctx := errgroup.WithContext(ctx)
	serve(ctx, group, a)
	group.Go(func() error {
		if !s.leaderElect {
			return a.work(ctx)
		}
		return a.lead(ctx)
	})
	return group.Wait()
}

func memberConfig(s settings) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", s.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("connect to the member: %w", err)
	}
	// The API server's priority and fairness is the limit.
	config.QPS = -1
	config.UserAgent = userAgent()
	return config, nil
}

func userAgent() string { return "fleet-agent/" + version.Version }

// lead works while this replica is the one that does. To lose the lease ends the process: whatever is
// under way may be somebody else's by now.
func (a *agent) lead(ctx context.Context) error {
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, a.settings.namespace, electionLease,
		a.member.CoreV1(), a.member.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: a.settings.holder})
	if err != nil {
		return fmt.Errorf("elect a leader: %w", err)
	}
	var result error
	elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
		Lock: lock, Name: electionLease, ReleaseOnCancel: true,
		LeaseDuration: a.settings.election.lease, RenewDeadline: a.settings.election.renew, RetryPeriod: a.settings.election.retry,
		Callbacks: leaderelection.LeaderCallbacks{
			OnStartedLeading: func(ctx context.Context) { result = a.work(ctx) },
			OnStoppedLeading: func() {},
		},
	})
	if err != nil {
		return fmt.Errorf("elect a leader: %w", err)
	}
	elector.Run(ctx)
	if ctx.Err() == nil && result == nil {
		return errors.New("another replica leads now")
	}
	return result
}

// work registers and deploys until the context ends.
func (a *agent) work(ctx context.Context) error {
	for ctx.Err() == nil {
		credential, err := a.register(ctx)
		if err != nil {
			return err
		}
		err = a.serveCluster(ctx, *credential)
		if !errors.Is(err, join.ErrMoved) {
			return err
		}
		a.log.Info("the cluster was registered anew", "previous", credential.DeploymentNamespace)
	}
	return nil
}

// register tries until the agent has an identity. What a person has to mend is tried more rarely.
func (a *agent) register(ctx context.Context) (*identity.Credential, error) {
	joiner := a.joiner()
	a.unregistered.Store(true)
	defer a.unregistered.Store(false)
	wait := time.Second
	for {
		credential, err := joiner.Ensure(ctx, time.Now())
		if err == nil {
			return credential, nil
		}
		if ctx.Err() != nil {
			return nil, nil
		}
		switch fault.ClassOf(err) {
		case fault.Waiting:
			wait = 2 * time.Second
		case fault.Stalled, fault.Denied:
			wait = min(max(wait*2, 10*time.Second), time.Minute)
		default:
			wait = min(wait*2, 30*time.Second)
		}
		a.log.Info("not registered yet", "class", fault.ClassOf(err), "reason", err.Error(), "again", wait.String())
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, nil
		case <-timer.C:
		}
	}
}

func (a *agent) joiner() *join.Joiner {
	return &join.Joiner{
		Member: a.member, Namespace: a.settings.namespace, AgentVersion: version.Version,
		UserAgent: userAgent(), Log: a.log.WithName("join"),
	}
}

// serveCluster runs everything that needs the hub until the context ends or one part fails.
func (a *agent) serveCluster(ctx context.Context, credential identity.Credential) error {
	connection, err := identity.Connect(credential, userAgent())
	if err != nil {
		return err
	}
	reach, err := hub.New(connection.Config(), credential.DeploymentNamespace, registry.Client{Proxy: http.ProxyFromEnvironment})
	if err != nil {
		return err
	}
	hubClients, err := kubernetes.NewForConfig(connection.Config())
	if err != nil {
		return fmt.Errorf("connect to the hub: %w", err)
	}
	member, err := access.NewMember(a.config, a.settings.namespace, synced.New())
	if err != nil {
		return err
	}
	collectEvery, err := a.collectInterval(ctx)
	if err != nil {
		return err
	}
	deployer := helm.NewDeployer(member, helm.Options{
		AgentNamespace: a.settings.namespace, AgentScope: a.settings.agentScope, Log: a.log.WithName("helm"),
	})
	group, ctx := errgroup.WithContext(ctx)
	loop, err := controller.New(ctx, reach, member, deployer, controller.Options{
		AgentNamespace: a.settings.namespace, Workers: a.settings.workers, CollectEvery: collectEvery,
		Log: a.log.WithName("controller"),
	})
	if err != nil {
		return err
	}
	beat := &heartbeat.Sender{
		Hub: hubClients, Namespace: credential.DeploymentNamespace, Holder: a.settings.holder,
		Interval: a.heartbeatInterval(), AgentVersion: version.Version, AgentNamespace: a.settings.namespace,
		KubernetesVersion: a.kubernetesVersion, Clock: clock.RealClock{}, Log: a.log.WithName("heartbeat"),
	}
	renewer := join.NewRenewer(a.joiner(), connection, credential, clock.RealClock{})
	beat.Refused = renewer.Refused
	group.Go(func() error { return loop.Run(ctx) })
	group.Go(func() error { return renewer.Run(ctx) })
	group.Go(func() error {
		beat.Run(ctx)
		return nil
	})
	return group.Wait()
}

// collectInterval returns how often releases without a deployment are looked for: as the ConfigMap says, else as
// the flag does.
func (a *agent) collectInterval(ctx context.Context) (time.Duration, error) {
	configured, err := join.ReadSettings(ctx, a.member, a.settings.namespace)
	if err != nil {
		return 0, err
	}
	if interval := configured.GarbageCollectionInterval.Duration; interval > 0 {
		return interval, nil
	}
	return a.settings.collectInterval, nil
}

func (a *agent) heartbeatInterval() time.Duration {
	if a.settings.checkinInterval > 0 {
		return min(a.settings.checkinInterval, a.settings.heartbeat)
	}
	return a.settings.heartbeat
}

// kubernetesVersion returns the member's version, or "" when it does not answer.
func (a *agent) kubernetesVersion() string {
	info, err := a.member.Discovery().ServerVersion()
	if err != nil {
		return ""
	}
	return info.GitVersion
}
