package stack

import (
	"context"
	"path/filepath"

	"github.com/fairlead-dev/fairlead/integrationtests/charts"
	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
)

// election makes a program that was killed take up its work again within seconds, instead of waiting for
// the lease of its former self for half a minute.
var election = []string{
	"CATTLE_ELECTION_LEASE_DURATION=4s",
	"CATTLE_ELECTION_RENEW_DEADLINE=3s",
	"CATTLE_ELECTION_RETRY_PERIOD=1s",
}

func (s *Stack) installHub(ctx context.Context) error {
	if err := install(ctx, s.Hub, "fleet-crd", nil); err != nil {
		return err
	}
	return install(ctx, s.Hub, "fleet", map[string]any{
		"apiServerURL": s.Hub.URL(),
		"apiServerCA":  string(s.Hub.CA()),
	})
}

func install(ctx context.Context, cluster *kube.Cluster, chart string, values map[string]any) error {
	dir, err := charts.Dir(chart)
	if err != nil {
		return err
	}
	_, err = charts.Install(ctx, cluster.Admin().Config, dir, chart, SystemNamespace, values)
	return err
}

func (s *Stack) startController(ctx context.Context) error {
	webhook, err := freeAddress()
	if err != nil {
		return err
	}
	s.WebhookURL = "http://" + webhook + "/"
	program, err := s.startProgram(ctx, s.Hub, controllerProgram, controllerProgram,
		"--listen="+webhook,
		"--cache-dir="+filepath.Join(s.options.Dir, "cache"),
	)
	if err != nil {
		return err
	}
	s.Controller = program
	return program.WaitReady(ctx)
}

// startProgram starts a program as the service account of its name on a cluster.
func (s *Stack) startProgram(ctx context.Context, cluster *kube.Cluster, program, name string, args ...string) (*Program, error) {
	access, err := cluster.ServiceAccount(ctx, SystemNamespace, program)
	if err != nil {
		return nil, err
	}
	metrics, err := freeAddress()
	if err != nil {
		return nil, err
	}
	health, err := freeAddress()
	if err != nil {
		return nil, err
	}
	child, err := s.parent.Start(process.Command{
		Name: name,
		Path: s.options.Programs.path(program),
		Args: append([]string{
			"--kubeconfig=" + access.Kubeconfig,
			"--namespace=" + SystemNamespace,
			"--metrics-bind-address=" + metrics,
			"--health-probe-bind-address=" + health,
		}, args...),
		Dir: cluster.Dir(),
		Env: election,
		Log: s.logOf(name),
	})
	if err != nil {
		return nil, err
	}
	return &Program{Process: child, Metrics: metrics, Health: health}, nil
}
