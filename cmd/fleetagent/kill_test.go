package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/pair"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

var clusters = kubetest.Share(kubetest.Options{Members: 1})

func TestMain(m *testing.M) { os.Exit(clusters.Run(m)) }

// kills is how often the agent is killed in the middle of a change.
const kills = 20

// site is a hub and a member with an agent that runs as a process.
type site struct {
	*pair.Pair
	t *testing.T
}

func newSite(t *testing.T) *site {
	t.Helper()
	all := clusters.Get(t)
	return &site{Pair: pair.Start(t, all.Hub, all.Members[0], "--heartbeat-interval=1s", "--debug"), t: t}
}

// put stores a bundle of manifests as the hub would.
func (s *site) put(name, manifests string) string {
	s.t.Helper()
	return s.Put(s.t, pair.Bundle{Name: name, Files: map[string]string{"a.yaml": manifests}})
}

func (s *site) untilApplied(name, id string) {
	s.t.Helper()
	kubetest.Eventually(s.t, name+" is applied", func(ctx context.Context) error {
		deployment, err := s.Get(ctx, name)
		if err != nil || pair.Settled(deployment, id) {
			return err
		}
		text, _ := json.Marshal(deployment.Status)
		return fmt.Errorf("status %s", text)
	})
}

func (s *site) kill() {
	s.t.Helper()
	if err := s.Restart(); err != nil {
		s.t.Fatal(err)
	}
}

// pause waits a random part of the time a change takes.
func (s *site) pause(most time.Duration) {
	timer := time.NewTimer(rand.N(most))
	defer timer.Stop()
	<-timer.C
}

// pantry is a bundle whose objects come and go: the given step keeps one object and replaces the others.
func pantry(step int) string {
	var objects []string
	for i := range 8 {
		name := fmt.Sprintf("jar-%d-%d", step%2, i)
		if i == 0 {
			name = "stays"
		}
		objects = append(objects, fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s}\ndata: {step: %q}\n", name, fmt.Sprint(step)))
	}
	return strings.Join(objects, "---\n")
}

// Whenever the agent is killed, the next one ends where it should: nothing is lost, left over, made anew
// or deployed more often than the history shows.
func TestKilledAtAnyMoment(t *testing.T) {
	s := newSite(t)
	s.untilApplied("pantry", s.put("pantry", pantry(0)))
	maps := s.Member.Clients().CoreV1().ConfigMaps(s.Target)
	first, err := maps.Get(t.Context(), "stays", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= kills; step++ {
		id := s.put("pantry", pantry(step))
		s.pause(400 * time.Millisecond)
		s.kill()
		if step%4 == 0 { // the others are overtaken by the next change
			s.untilApplied("pantry", id)
		}
	}
	s.untilApplied("pantry", s.put("pantry", pantry(kills+1)))
	s.check(first.UID, kills+1)

	if err := s.Delete(t.Context(), "pantry"); err != nil {
		t.Fatal(err)
	}
	// An agent that is killed while it uninstalls, and finds nothing on the hub, still finishes: the hub
	// has another deployment, so that its list is not empty.
	s.put("other", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
	s.pause(200 * time.Millisecond)
	s.kill()
	kubetest.Eventually(t, "the bundle is gone", func(ctx context.Context) error {
		if names := s.objects(ctx); !slices.Equal(names, []string{"other"}) {
			return fmt.Errorf("objects %v", names)
		}
		return nil
	})
}

func (s *site) objects(ctx context.Context) []string {
	list, err := s.Member.Clients().CoreV1().ConfigMaps(s.Target).List(ctx, metav1.ListOptions{LabelSelector: fleet.SetHashLabel})
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for _, object := range list.Items {
		names = append(names, object.Name)
	}
	slices.Sort(names)
	return names
}

func (s *site) check(uid any, step int) {
	s.t.Helper()
	kubetest.Eventually(s.t, "only the last step's objects are there", func(ctx context.Context) error {
		names := s.objects(ctx)
		want := fmt.Sprintf("jar-%d-", step%2)
		if len(names) != 8 {
			return fmt.Errorf("objects %v", names)
		}
		for _, name := range names {
			if name != "stays" && !strings.HasPrefix(name, want) {
				return fmt.Errorf("objects %v", names)
			}
		}
		return nil
	})
	kept, err := s.Member.Clients().CoreV1().ConfigMaps(s.Target).Get(s.t.Context(), "stays", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	if kept.UID != uid || kept.Data["step"] != fmt.Sprint(step) {
		s.t.Errorf("the object that every step keeps has uid %s, want %s, and data %v", kept.UID, uid, kept.Data)
	}
	records, err := s.Member.Clients().CoreV1().Secrets(s.Target).List(s.t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(records.Items) > 2 {
		s.t.Errorf("%d revisions are kept, want at most 2", len(records.Items))
	}
}
