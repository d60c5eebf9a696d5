package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/pair"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

var clusters = kubetest.Share(kubetest.Options{Members: 1})

func TestMain(m *testing.M) { os.Exit(clusters.Run(m)) }

// How often the agent is killed in the middle of each kind of change: thirty times in all.
const (
	upgradeKills   = 10
	installKills   = 5
	hookKills      = 5
	rollbackKills  = 5
	uninstallKills = 5
)

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
	for _, phase := range []struct {
		name string
		run  func()
	}{
		{"install", s.killInInstalls}, {"upgrade", s.killInUpgrades}, {"hook", s.killInHooks},
		{"rollback", s.killInRollbacks}, {"uninstall", s.killInUninstalls},
	} {
		t.Run(phase.name, func(t *testing.T) {
			outer := s.t
			s.t = t
			defer func() { s.t = outer }()
			phase.run()
		})
	}
}

func (s *site) killInInstalls() {
	ids := map[string]string{}
	for i := range installKills {
		name := fmt.Sprintf("new-%d", i)
		ids[name] = s.put(name, strings.ReplaceAll(pantry(0), "name: ", "name: "+name+"-"))
		s.pause(400 * time.Millisecond)
		s.kill()
	}
	for name, id := range ids {
		s.untilApplied(name, id)
		s.expectHistory(name, 2)
	}
	if got, want := len(s.objects(s.t.Context())), installKills*8; got != want {
		s.t.Errorf("%d objects, want %d", got, want)
	}
	for name := range ids {
		s.remove(name)
	}
}

func (s *site) killInUpgrades() {
	s.untilApplied("pantry", s.put("pantry", pantry(0)))
	uid := s.configMap("stays").UID
	for step := 1; step <= upgradeKills; step++ {
		id := s.put("pantry", pantry(step))
		s.pause(400 * time.Millisecond)
		s.kill()
		if step%4 == 0 { // the others are overtaken by the next change
			s.untilApplied("pantry", id)
		}
	}
	s.untilApplied("pantry", s.put("pantry", pantry(upgradeKills+1)))
	s.check(uid, upgradeKills+1)
}

// hooked is a chart whose hooks run before and after every change, one of them as a Job.
func hooked(step int) map[string]string {
	const hook = `apiVersion: batch/v1
kind: Job
metadata: {name: before, annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: none}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: after, annotations: {helm.sh/hook: "post-install,post-upgrade", helm.sh/hook-delete-policy: before-hook-creation}}
data: {step: "{{ .Chart.AppVersion }}"}
`
	return map[string]string{
		"Chart.yaml":             fmt.Sprintf("apiVersion: v2\nname: hooked\nversion: 1.0.%d\nappVersion: %q\n", step, fmt.Sprint(step)),
		"templates/hooks.yaml":   hook,
		"templates/objects.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: hooked}\ndata: {step: \"{{ .Chart.AppVersion }}\"}\n",
	}
}

func (s *site) killInHooks() {
	put := func(step int) string { return s.Put(s.t, pair.Bundle{Name: "hooked", Files: hooked(step)}) }
	s.untilApplied("hooked", put(0))
	uid := s.configMap("hooked").UID
	for step := 1; step <= hookKills; step++ {
		id := put(step)
		s.pause(1500 * time.Millisecond) // the Job takes about a second
		s.kill()
		if step%2 == 0 {
			s.untilApplied("hooked", id)
		}
	}
	s.untilApplied("hooked", put(hookKills+1))
	s.expectKept("hooked", uid, hookKills+1)
	s.expectHistory("hooked", 2)
	if after := s.configMap("after"); after.Data["step"] != fmt.Sprint(hookKills+1) {
		s.t.Errorf("the last hook left %v", after.Data)
	}
}

func (s *site) killInRollbacks() {
	put := func(step int, good bool) string {
		objects := fmt.Sprintf("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: atomic}\ndata: {step: %q}\n", fmt.Sprint(step))
		if !good {
			objects += "---\n" + `apiVersion: apps/v1
kind: Deployment
metadata: {name: never}
spec:
  selector: {matchLabels: {app: never}}
  template: {metadata: {labels: {app: never}}, spec: {nodeSelector: {no: where}, containers: [{name: a, image: none}]}}
`
		}
		options := fleet.BundleDeploymentOptions{Helm: &fleet.HelmOptions{Atomic: true, TimeoutSeconds: 1}}
		return s.Put(s.t, pair.Bundle{Name: "atomic", Files: map[string]string{"a.yaml": objects}, Options: options})
	}
	s.untilApplied("atomic", put(0, true))
	uid := s.configMap("atomic").UID
	for step := 1; step <= rollbackKills; step++ {
		put(2*step-1, false)
		s.pause(2 * time.Second) // a second until it is given up, then the way back
		s.kill()
		if step%2 == 0 {
			s.untilApplied("atomic", put(2*step, true))
			s.expectKept("atomic", uid, 2*step)
		}
	}
	last := 2*rollbackKills + 2
	s.untilApplied("atomic", put(last, true))
	s.expectKept("atomic", uid, last)
	s.expectHistory("atomic", 2)
	kubetest.Eventually(s.t, "nothing of the failed changes is left", func(ctx context.Context) error {
		_, err := s.Member.Clients().AppsV1().Deployments(s.Target).Get(ctx, "never", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("the deployment is there"), err)
	})
}

// An agent that is killed while it uninstalls still finishes, whether a finalizer keeps the deployment on the hub
// or it finds nothing there. Others' objects stay. Only few go without a finalizer: lists that lack more are not
// believed.
func (s *site) killInUninstalls() {
	s.untilApplied("other", s.put("other", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n"))
	uid := s.configMap("other").UID
	var leaving []string
	for i := range uninstallKills {
		name := fmt.Sprintf("leaves-%d", i)
		leaving = append(leaving, name)
		b := pair.Bundle{Name: name, Files: map[string]string{"a.yaml": strings.ReplaceAll(pantry(0), "name: ", "name: "+name+"-")}}
		if i%2 == 0 {
			b.Finalizers = []string{fleet.BundleDeploymentFinalizer}
		}
		s.untilApplied(name, s.Put(s.t, b))
	}
	leaving = append(leaving, "pantry")
	for _, name := range leaving {
		if err := s.Delete(s.t.Context(), name); err != nil {
			s.t.Fatal(err)
		}
		s.pause(200 * time.Millisecond)
		s.kill()
	}
	kubetest.Eventually(s.t, "what left the hub is gone", func(ctx context.Context) error {
		if names := s.objects(ctx); !slices.Equal(names, []string{"atomic", "hooked", "other"}) {
			return fmt.Errorf("objects %v", names)
		}
		for _, name := range leaving {
			if left := s.history(ctx, name); len(left) > 0 {
				return fmt.Errorf("records of %s: %v", name, left)
			}
		}
		return nil
	})
	if now := s.configMap("other").UID; now != uid {
		s.t.Errorf("an object of another bundle was made anew")
	}
}

func (s *site) remove(name string) {
	s.t.Helper()
	if err := s.Delete(s.t.Context(), name); err != nil {
		s.t.Fatal(err)
	}
	kubetest.Eventually(s.t, name+" is uninstalled", func(ctx context.Context) error {
		if left := s.history(ctx, name); len(left) > 0 {
			return fmt.Errorf("records %v", left)
		}
		return nil
	})
}

func (s *site) configMap(name string) *corev1.ConfigMap {
	s.t.Helper()
	found, err := s.Member.Clients().CoreV1().ConfigMaps(s.Target).Get(s.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	return found
}

// history returns the records of a release.
func (s *site) history(ctx context.Context, release string) []string {
	list, err := s.Member.Clients().CoreV1().Secrets(s.Target).List(ctx, metav1.ListOptions{LabelSelector: "owner=helm,name=" + release})
	if err != nil {
		return []string{err.Error()}
	}
	var records []string
	for i := range list.Items {
		records = append(records, list.Items[i].Labels["version"]+":"+list.Items[i].Labels["status"])
	}
	return records
}

func (s *site) expectHistory(release string, most int) {
	s.t.Helper()
	records := s.history(s.t.Context(), release)
	if len(records) > most {
		s.t.Errorf("%s has revisions %v, want at most %d", release, records, most)
	}
	for _, record := range records {
		if strings.Contains(record, "pending") {
			s.t.Errorf("%s has revisions %v", release, records)
		}
	}
}

// expectKept says that an object is the one it was, as a step wants it.
func (s *site) expectKept(name string, uid types.UID, step int) {
	s.t.Helper()
	kept := s.configMap(name)
	if kept.UID != uid || kept.Data["step"] != fmt.Sprint(step) {
		s.t.Errorf("%s has uid %s, want %s, and data %v, want step %d", name, kept.UID, uid, kept.Data, step)
	}
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

func (s *site) check(uid types.UID, step int) {
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
	s.expectKept("stays", uid, step)
	s.expectHistory("pantry", 2)
}
