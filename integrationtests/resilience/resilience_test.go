package resilience

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
)

// A manifest the API server refuses is reported where a person looks, leaves what runs alone, does not keep
// other bundles from changing, and is forgotten when it is mended.
func TestManifestTheAPIServerRefuses(t *testing.T) {
	w := newWorld(t, "refused", map[string]string{
		"bad/fleet.yaml": "{}\n", "bad/one.yaml": value("bad-one", "first"),
		"good/fleet.yaml": "{}\n", "good/one.yaml": value("good-one", "first"),
	})
	w.commit(map[string]string{
		"bad/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: bad, namespace: default}\nspec: {ports: [{port: 123456}]}\n",
		"good/one.yaml":    value("good-one", "second"),
	})
	for _, member := range w.Members {
		w.has(member, "good-one", "second")
		w.deployment("refused-bad", member, "says what is refused", func(d *fleet.BundleDeployment) error {
			if status.Of(d) != fleet.ErrApplied || !strings.Contains(status.MessageOf(d), "123456") {
				return fmt.Errorf("state %s, message %q", status.Of(d), status.MessageOf(d))
			}
			return nil
		})
		w.has(member, "bad-one", "first")
	}
	w.says("ErrApplied(3)", "123456")
	w.awaitReady(w.commit(map[string]string{
		"bad/service.yaml": "apiVersion: v1\nkind: Service\nmetadata: {name: bad, namespace: default}\nspec: {ports: [{port: 80}]}\n",
	}))
}

// A member that is down shows as disconnected and does not hold up the others; when it returns it gets the
// newest state.
func TestMemberThatIsDown(t *testing.T) {
	w := newWorld(t, "down", map[string]string{"one.yaml": value("down-one", "first")})
	lost, others := w.Members[0], w.Members[1:]
	if err := lost.Agent.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := lost.Cluster.StopAPIServer(); err != nil {
		t.Fatal(err)
	}
	w.commit(map[string]string{"one.yaml": value("down-one", "missed")})
	last := w.commit(map[string]string{"one.yaml": value("down-one", "last")})
	for _, member := range others {
		w.has(member, "down-one", "last")
	}
	kubetest.Eventually(t, "the cluster shows as disconnected", func(ctx context.Context) error {
		var cluster fleet.Cluster
		if err := w.Client.Get(ctx, client.ObjectKey{Namespace: stack.Workspace, Name: lost.Name}, &cluster); err != nil {
			return err
		}
		if cluster.Status.Display.State != parent.StateDisconnected || !cluster.Status.Display.Error {
			return fmt.Errorf("display %+v, phase %s", cluster.Status.Display, cluster.Status.Phase)
		}
		return nil
	})
	if err := lost.Cluster.StartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := lost.Agent.Start(); err != nil {
		t.Fatal(err)
	}
	w.awaitReady(last)
	w.has(lost, "down-one", "last")
}

// Controller and agents are killed at twenty random moments of changes, and the hub's API server restarts in
// the middle; the newest commit runs everywhere in the end, on the same objects.
func TestKilledAtAnyMoment(t *testing.T) {
	w := newWorld(t, "killed", map[string]string{
		"raw/fleet.yaml": "{}\n", "raw/one.yaml": value("killed-raw", "0"),
		"chart/fleet.yaml": "defaultNamespace: killed\nhelm: {values: {count: \"0\"}}\n", "chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
		"chart/templates/one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: killed-chart, namespace: default}\ndata: {value: {{ .Values.count | quote }}}\n",
	})
	before := map[string]types.UID{}
	for _, member := range w.Members {
		before[member.Name] = w.has(member, "killed-raw", "0").UID
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var last string
	for i := 1; i <= 20; i++ {
		last = w.commit(map[string]string{
			"raw/one.yaml":     value("killed-raw", fmt.Sprint(i)),
			"chart/fleet.yaml": fmt.Sprintf("defaultNamespace: killed\nhelm: {values: {count: %q}}\n", fmt.Sprint(i)),
		})
		if err := w.Announce(t.Context(), w.repo.HTTPURL(), "master", last); err != nil {
			t.Logf("webhook %d: %v", i, err) // the controller may be down; polling will see the commit
		}
		pause(t, time.Duration(random.IntN(1000))*time.Millisecond)
		w.kill(random.IntN(1 + len(w.Members)))
		if i == 10 {
			if err := w.Hub.RestartAPIServer(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.revive()
		}
	}
	kubetest.Eventually(t, "the newest commit runs on all members", func(ctx context.Context) error {
		w.revive() // each time: what was started last may end by itself yet
		return w.runs(ctx, last)
	})
	for _, member := range w.Members {
		if uid := w.has(member, "killed-raw", "20").UID; uid != before[member.Name] {
			t.Errorf("the object on %s was made anew", member.Name)
		}
		w.has(member, "killed-chart", "20")
		w.checkHistory(member)
	}
}

// pause waits for a random moment; nothing is asserted about time.
func pause(t *testing.T, duration time.Duration) {
	select {
	case <-time.After(duration):
	case <-t.Context().Done():
	}
}

// kill ends the controller (0) or an agent, and starts it again.
func (w *world) kill(which int) {
	w.t.Helper()
	program := w.Controller
	if which > 0 {
		program = w.Members[which-1].Agent
	}
	if err := program.Kill(); err != nil {
		w.t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		w.t.Fatal(err)
	}
}

// revive starts what has ended by itself: an agent that loses its lease ends, and a Deployment would start it
// again.
func (w *world) revive() {
	w.t.Helper()
	programs := []*stack.Program{w.Controller}
	for _, member := range w.Members {
		programs = append(programs, member.Agent)
	}
	for _, program := range programs {
		if program.Err() != nil {
			if err := program.Start(); err != nil {
				w.t.Fatal(err)
			}
		}
	}
}

// checkHistory wants at most two releases kept, and none of them pending.
func (w *world) checkHistory(member *stack.Member) {
	w.t.Helper()
	var secrets corev1.SecretList
	if err := member.Client.List(w.t.Context(), &secrets, client.MatchingLabels{"owner": "helm"}); err != nil {
		w.t.Fatal(err)
	}
	count := map[string]int{}
	for _, secret := range secrets.Items {
		if !strings.HasPrefix(secret.Labels["name"], "killed-") {
			continue
		}
		count[secret.Labels["name"]]++
		if strings.HasPrefix(secret.Labels["status"], "pending") {
			w.t.Errorf("%s: release %s is %s", member.Name, secret.Name, secret.Labels["status"])
		}
	}
	for release, n := range count {
		if n > 2 {
			w.t.Errorf("%s: release %s keeps %d revisions", member.Name, release, n)
		}
	}
}

// A chart that does not render for one cluster of three deploys to the other two, and says why not there.
func TestChartThatFailsForOneCluster(t *testing.T) {
	chart := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: partly, namespace: default}\ndata: {value: {{ .Values.text | quote }}}\n"
	w := newWorld(t, "partly", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n", "templates/one.yaml": chart,
		"fleet.yaml": "helm:\n  values: {text: first, env: \"${ .ClusterLabels.env }\"}\n",
	}, func(spec *fleet.GitRepoSpec) { spec.Validate = new(bool) }) // the agent is to meet it, not the hub
	failing := "{{ if eq .Values.env \"test\" }}{{ fail \"not made for test\" }}{{ end }}\n"
	w.commit(map[string]string{
		"templates/one.yaml": failing + chart,
		"fleet.yaml":         "helm:\n  values: {text: second, env: \"${ .ClusterLabels.env }\"}\n",
	})
	for _, member := range w.Members {
		if member.Labels["env"] != "test" {
			w.has(member, "partly", "second")
			continue
		}
		w.deployment("partly", member, "says why", func(d *fleet.BundleDeployment) error {
			if status.Of(d) != fleet.ErrApplied || !strings.Contains(status.MessageOf(d), "not made for test") {
				return fmt.Errorf("state %s, message %q", status.Of(d), status.MessageOf(d))
			}
			return nil
		})
		w.has(member, "partly", "first")
	}
	w.says("ErrApplied(1)", "not made for test")
	w.awaitReady(w.commit(map[string]string{"templates/one.yaml": chart}))
	for _, member := range w.Members {
		w.has(member, "partly", "second")
	}
}
