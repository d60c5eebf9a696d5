package resilience

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
)

// A fleet where nothing happens writes nothing but leases for a minute: not on the hub, not on a member.
func TestIdleWritesNothing(t *testing.T) {
	w := newWorld(t, "idle", map[string]string{
		"a/fleet.yaml": "{}\n", "a/one.yaml": value("idle-a", "x"),
		"b/fleet.yaml": "{}\n", "b/one.yaml": value("idle-b", "x"),
	})
	clusters := []*kube.Cluster{w.Hub}
	for _, member := range w.Members {
		clusters = append(clusters, member.Cluster)
	}
	kubetest.Eventually(t, "the contents of earlier tests are collected", w.Tidy)
	before := quiet(t, clusters) // the last roll-up of the start may be on its way
	pause(t, time.Minute)
	for i, cluster := range clusters {
		for _, write := range ours(t, cluster)[before[i]:] {
			t.Errorf("%s: %s", cluster.Name(), write)
		}
	}
}

// quiet waits until none of our programs has written anything for some seconds, and returns how much they have written.
func quiet(t *testing.T, clusters []*kube.Cluster) []int {
	t.Helper()
	var before []int
	kubetest.Eventually(t, "nothing is written for five seconds", func(context.Context) error {
		counts := func() (found []int) {
			for _, cluster := range clusters {
				found = append(found, len(ours(t, cluster)))
			}
			return found
		}
		before = counts()
		pause(t, 5*time.Second)
		if now := counts(); !slices.Equal(now, before) {
			return fmt.Errorf("%v writes became %v", before, now)
		}
		return nil
	})
	return before
}

// ours lists the writes of our programs, but for leases.
func ours(t *testing.T, cluster *kube.Cluster) []writes.Write {
	t.Helper()
	all, err := cluster.Writes()
	if err != nil {
		t.Fatal(err)
	}
	var kept []writes.Write
	for _, write := range all {
		own := strings.HasPrefix(write.User, "system:fleet:") || strings.HasPrefix(write.User, "system:serviceaccount:"+stack.SystemNamespace+":fleet-")
		if own && writes.NotLeases(write.Request) {
			kept = append(kept, write)
		}
	}
	return kept
}
