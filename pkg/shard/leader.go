package shard

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// Leader has all shards while the process leads. It is a runnable of a manager that needs the election.
type Leader struct {
	shards *Shards
	valid  func() bool
	retry  time.Duration
}

// NewLeader returns the runnable and the lock for the manager's election, which ends tenures in time.
func NewLeader(config *rest.Config, namespace, name string, timing Timing, shards *Shards, now func() time.Time) (*Leader, resourcelock.Interface, error) {
	identity, err := Identity()
	if err != nil {
		return nil, nil, err
	}
	clients, err := kubernetes.NewForConfig(leaseConfig(config, timing))
	if err != nil {
		return nil, nil, fmt.Errorf("connect to the hub for leases: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, name,
		clients.CoreV1(), clients.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: identity})
	if err != nil {
		return nil, nil, fmt.Errorf("prepare the election %s/%s: %w", namespace, name, err)
	}
	shards.log.Info("candidate", "election", name, "identity", identity)
	timed := &timedLock{Interface: lock, renewal: &renewal{deadline: timing.Deadline, now: now}}
	return &Leader{shards: shards, valid: timed.renewal.valid, retry: timing.Retry}, timed, nil
}

// Alone returns the runnable of a process that has no rivals.
func Alone(shards *Shards) *Leader {
	return &Leader{shards: shards, valid: func() bool { return true }, retry: time.Second}
}

// Start takes all shards, and gives them up when the context ends.
func (l *Leader) Start(ctx context.Context) error {
	all := make([]int, l.shards.count)
	for i := range all {
		all[i] = i
	}
	ticker := time.NewTicker(l.retry)
	defer ticker.Stop()
	for {
		err := l.shards.acquire(ctx, all, l.valid)
		if err == nil {
			break
		}
		l.shards.log.Error(err, "not ready to work")
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
	<-ctx.Done()
	return nil
}

// NeedLeaderElection is asked by the manager.
func (l *Leader) NeedLeaderElection() bool { return true }

// timedLock notes when the leader's lease was renewed.
type timedLock struct {
	resourcelock.Interface
	renewal *renewal
}

// Create makes the lease.
func (l *timedLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.timed(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update renews, takes or releases the lease.
func (l *timedLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.timed(record, func() error { return l.Interface.Update(ctx, record) })
}

func (l *timedLock) timed(record resourcelock.LeaderElectionRecord, write func() error) error {
	ours := record.HolderIdentity == l.Identity()
	if !ours {
		l.renewal.renewed(time.Time{}) // given up, even if the answer gets lost
	}
	at := l.renewal.now()
	if ours && l.renewal.lapsed(at) {
		// Somebody else may have led meanwhile: this process ends, as the manager does without its lease.
		return errLost
	}
	err := write()
	if err == nil && ours {
		l.renewal.renewed(at)
	}
	return err
}

// Identity returns a name for this process that no other process has had.
func Identity() (string, error) {
	host, err := os.Hostname()
	if err != nil {
		return "", fmt.Errorf("name this process: %w", err)
	}
	return host + "-" + string(uuid.NewUUID())[:8], nil
}

// leaseConfig keeps one hung request from costing the claim, and lets no other traffic stand in its way.
func leaseConfig(config *rest.Config, timing Timing) *rest.Config {
	own := rest.CopyConfig(config)
	own.Timeout = max(timing.Deadline/2, time.Second)
	return rest.AddUserAgent(own, "leader-election")
}
