package shard

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordination "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"

	"github.com/fairlead-dev/fairlead/pkg/confirm"
)

// membersLabel marks the leases of members with the name of the table they share.
const membersLabel = "fleet.cattle.io/shard-members"

// Members shares the shards with other processes. It is a runnable of a manager without election.
type Members struct {
	shards   *Shards
	leases   coordination.LeaseInterface
	table    string
	identity string
	timing   Timing
	renewal  *renewal
	now      func() time.Time

	own      *coordinationv1.Lease
	observed map[string]observation
}

// observation is what was last seen of a member's lease, and since when it is that.
type observation struct {
	renewed string
	since   time.Time
}

// NewMembers returns a runnable that shares shards through the table, a Lease of that name.
func NewMembers(config *rest.Config, namespace, table string, timing Timing, shards *Shards, now func() time.Time) (*Members, error) {
	identity, err := Identity()
	if err != nil {
		return nil, err
	}
	clients, err := kubernetes.NewForConfig(leaseConfig(config, timing))
	if err != nil {
		return nil, fmt.Errorf("connect to the hub for leases: %w", err)
	}
	shards.log.Info("member", "table", table, "identity", identity)
	return &Members{
		shards: shards, leases: clients.CoordinationV1().Leases(namespace), table: table, identity: identity, timing: timing,
		renewal: &renewal{deadline: timing.Deadline, now: now}, now: now, observed: map[string]observation{},
	}, nil
}

// NeedLeaderElection is asked by the manager.
func (m *Members) NeedLeaderElection() bool { return false }

// Start takes its share of the shards until the context ends, and then gives them back.
func (m *Members) Start(ctx context.Context) error {
	work, end := context.WithCancel(context.WithoutCancel(ctx)) // what is under way is drained, not cut
	defer end()
	watchdog := time.NewTimer(m.timing.Deadline)
	defer watchdog.Stop()
	ticker := time.NewTicker(m.timing.Retry)
	defer ticker.Stop()
	for {
		if err := m.step(ctx, work); err != nil && ctx.Err() == nil {
			m.shards.log.Error(err, "cannot share shards at the moment")
		}
		if m.renewal.valid() {
			watchdog.Reset(m.timing.Deadline)
		}
		select {
		case <-ctx.Done():
			return m.leave(work)
		case <-watchdog.C:
			m.giveUp()
		case <-ticker.C:
		}
	}
}

// giveUp ends all work, because others may take the shards from now on.
func (m *Members) giveUp() {
	if held := m.shards.all(); len(held) > 0 {
		m.shards.log.Info("lease not renewed in time; all shards are lost", "shards", len(held))
		m.shards.lose(held)
	}
}

// step renews this member's lease, looks at the others and takes or gives what the shares say.
func (m *Members) step(ctx, work context.Context) error {
	if err := m.renew(ctx); err != nil {
		return err
	}
	live, err := m.observe(ctx)
	if err != nil {
		return err
	}
	stored, table, err := m.read(ctx)
	if err != nil {
		return err
	}
	v := view{self: m.identity, live: live, table: table, held: map[int]bool{}, idle: map[int]bool{}}
	for _, shard := range m.shards.all() {
		v.held[shard], v.idle[shard] = true, m.shards.isIdle(shard)
	}
	v.dead = m.deaths(ctx)
	d := decide(v)
	m.shards.lose(d.lost)
	m.shards.drain(d.drain)
	return m.carryOut(ctx, work, stored, table, d)
}

// carryOut writes a decision to the table and does what it says when that was accepted.
func (m *Members) carryOut(ctx, work context.Context, stored *coordinationv1.Lease, table []string, d decision) error {
	if len(d.release)+len(d.claim) == 0 {
		return nil
	}
	m.shards.lose(d.release)
	write(stored, d.apply(table, m.identity))
	// Whoever decided on the table as it was before, with this member as dead, is refused by the version.
	stored.Spec.RenewTime = &metav1.MicroTime{Time: m.now()}
	if _, err := m.leases.Update(ctx, stored, metav1.UpdateOptions{}); err != nil {
		if apierrors.IsConflict(err) {
			return nil // somebody else was first; the next step sees what is left
		}
		return fmt.Errorf("write table %s: %w", m.table, err)
	}
	if len(d.claim) == 0 {
		return nil
	}
	return m.shards.acquire(work, d.claim, m.renewal.valid)
}

func (m *Members) renew(ctx context.Context) error {
	// The time is read once: a process that is stopped after this has renewed too early, not too late.
	at := m.now()
	if m.renewal.lapsed(at) {
		m.giveUp()
	}
	if m.own == nil {
		made, err := m.leases.Create(ctx, m.lease(at), metav1.CreateOptions{})
		if err != nil {
			return fmt.Errorf("make the lease of this member: %w", err)
		}
		m.own = made
		m.renewal.renewed(at)
		return nil
	}
	m.own.Spec.RenewTime = &metav1.MicroTime{Time: at}
	renewed, err := m.leases.Update(ctx, m.own, metav1.UpdateOptions{})
	switch {
	case apierrors.IsConflict(err):
		if m.own, err = m.leases.Get(ctx, m.own.Name, metav1.GetOptions{}); err != nil {
			return fmt.Errorf("read the lease of this member: %w", err)
		}
		return errors.New("the lease of this member was changed by somebody else")
	case confirm.Gone(err):
		m.own = nil
		return fmt.Errorf("renew the lease of this member: %w", err)
	case err != nil:
		return fmt.Errorf("renew the lease of this member: %w", err)
	}
	m.own = renewed
	m.renewal.renewed(at)
	return nil
}

func (m *Members) leaseName(identity string) string { return m.table + "-" + identity }

func (m *Members) lease(at time.Time) *coordinationv1.Lease {
	return &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: m.leaseName(m.identity), Labels: map[string]string{membersLabel: m.table}},
		Spec: coordinationv1.LeaseSpec{
			HolderIdentity: &m.identity, RenewTime: &metav1.MicroTime{Time: at},
			LeaseDurationSeconds: ptr.To(int32(m.timing.Lease.Round(time.Second) / time.Second)),
		},
	}
}

// observe notes what changed of the members' leases, removes those of members long gone, and returns who lives.
func (m *Members) observe(ctx context.Context) ([]string, error) {
	list, err := m.leases.List(ctx, metav1.ListOptions{LabelSelector: membersLabel + "=" + m.table})
	if err != nil {
		return nil, fmt.Errorf("list members: %w", err)
	}
	live := []string{m.identity}
	for i := range list.Items {
		lease := &list.Items[i]
		holder := ptr.Deref(lease.Spec.HolderIdentity, "")
		if holder == "" || holder == m.identity || lease.Name != m.leaseName(holder) {
			continue
		}
		still := m.unchangedFor(holder, renewTime(lease))
		if still < m.timing.Lease {
			live = append(live, holder)
		}
		if still > forgetMembers*m.timing.Lease {
			options := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &lease.UID, ResourceVersion: &lease.ResourceVersion}}
			_ = m.leases.Delete(ctx, lease.Name, options) // the next step tries again
			delete(m.observed, holder)
		}
	}
	return live, nil
}

// forgetMembers is after how many times its duration the lease of a dead member is removed.
const forgetMembers = 20

func renewTime(lease *coordinationv1.Lease) string {
	if lease.Spec.RenewTime == nil {
		return ""
	}
	return lease.Spec.RenewTime.UTC().Format(time.RFC3339Nano)
}

// unchangedFor notes a renewal, as its member's clock has it, and says how long it has been the newest by ours.
func (m *Members) unchangedFor(holder, renewed string) time.Duration {
	now := m.now()
	last, known := m.observed[holder]
	if !known || last.renewed != renewed {
		m.observed[holder] = observation{renewed, now}
		return 0
	}
	return now.Sub(last.since)
}

// deaths returns a function that asks the API server whether a holder's lease is not renewed any more.
func (m *Members) deaths(ctx context.Context) func(string) bool {
	asked := map[string]bool{}
	return func(holder string) bool {
		if dead, known := asked[holder]; known {
			return dead
		}
		lease, err := m.leases.Get(ctx, m.leaseName(holder), metav1.GetOptions{})
		switch {
		case err == nil:
			asked[holder] = m.unchangedFor(holder, renewTime(lease)) >= m.timing.Lease
		case confirm.Gone(err):
			asked[holder] = m.unchangedFor(holder, "gone") >= m.timing.Lease
		default:
			asked[holder] = false
		}
		return asked[holder]
	}
}

// leave gives everything back: at once what nobody works on, the rest when its work is done, or is cut.
func (m *Members) leave(work context.Context) error {
	ctx, cancel := context.WithTimeout(work, m.timing.Deadline)
	defer cancel()
	held := m.shards.all()
	idle := m.shards.drain(held)
	patience := time.NewTimer(leavePatience)
	defer patience.Stop()
	for _, done := range idle {
		select {
		case <-done:
		case <-patience.C:
			m.shards.lose(held)
			return nil // others take the shards when the lease has run out
		}
	}
	m.shards.lose(held)
	for ctx.Err() == nil {
		stored, table, err := m.read(ctx)
		if err == nil {
			write(stored, decision{release: held}.apply(table, m.identity))
			_, err = m.leases.Update(ctx, stored, metav1.UpdateOptions{})
		}
		if err == nil {
			return m.leases.Delete(ctx, m.leaseName(m.identity), metav1.DeleteOptions{})
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("give shards back: %w", err)
		}
	}
	return nil
}

// leavePatience is how long work under way is waited for when the process ends.
const leavePatience = 5 * time.Second

// read returns the table, made when there is none.
func (m *Members) read(ctx context.Context) (*coordinationv1.Lease, []string, error) {
	stored, err := m.leases.Get(ctx, m.table, metav1.GetOptions{})
	if confirm.Gone(err) {
		stored, err = m.leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: m.table}}, metav1.CreateOptions{})
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read table %s: %w", m.table, err)
	}
	table := make([]string, m.shards.count)
	for shard := range table {
		table[shard] = stored.Annotations[annotation(shard)]
	}
	return stored, table, nil
}

// write puts a table into its object.
func write(stored *coordinationv1.Lease, table []string) {
	annotations := maps.Clone(stored.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	for shard, holder := range table {
		annotations[annotation(shard)] = holder
		if holder == "" {
			delete(annotations, annotation(shard))
		}
	}
	stored.Annotations = annotations
}

func annotation(shard int) string { return fmt.Sprintf("shard.fleet.cattle.io/%03d", shard) }
