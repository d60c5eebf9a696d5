package stack_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/stacktest"
)

var shared = stacktest.Share(stack.Options{Members: stack.DefaultMembers()[:1]})

func TestMain(m *testing.M) {
	ctrllog.SetLogger(logr.Discard())
	os.Exit(shared.Run(m))
}

func TestProgramsComeBackAfterKill(t *testing.T) {
	fleet := shared.Get(t)
	for name, program := range map[string]*stack.Program{"controller": fleet.Controller, "agent": fleet.Members[0].Agent} {
		memory, err := program.Memory()
		if err != nil || memory.Resident == 0 || memory.Peak < memory.Resident {
			t.Errorf("%s: memory %+v, %v", name, memory, err)
		}
		before := program.Pid()
		if err := program.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if program.Pid() == before {
			t.Errorf("%s was not restarted", name)
		}
		kubetest.Eventually(t, name+" serves its metrics", func(ctx context.Context) error { // it may be ready before it does
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+program.Metrics+"/metrics", nil)
			if err != nil {
				return err
			}
			metrics, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			defer metrics.Body.Close()
			content, err := io.ReadAll(metrics.Body)
			if err != nil || !strings.Contains(string(content), "go_goroutines") {
				return errors.Join(fmt.Errorf("it answers %.100s", content), err)
			}
			return nil
		})
	}
}

// The programs act as who the charts and the registration make them, never as administrators.
func TestProgramsAreNoAdministrators(t *testing.T) {
	fleet := shared.Get(t)
	member := fleet.Members[0]
	const account = "system:serviceaccount:" + stack.SystemNamespace + ":"
	for _, want := range []struct {
		cluster     *kube.Cluster
		agent, user string
	}{
		{fleet.Hub, "fleet-controller", account + "fleet-controller"},
		{fleet.Hub, "fleet-agent", "system:fleet:" + member.Namespace + ":"},
		{member.Cluster, "fleet-agent", account + "fleet-agent"},
	} {
		all, err := want.cluster.Writes()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, write := range all {
			if !strings.HasPrefix(write.UserAgent, want.agent) {
				continue
			}
			found = found || strings.HasPrefix(write.User, want.user)
			if strings.Contains(write.User, "admin") {
				t.Errorf("%s on %s: %s", want.agent, want.cluster.Name(), write)
			}
		}
		if !found {
			t.Errorf("%s wrote nothing on %s as %s", want.agent, want.cluster.Name(), want.user)
		}
	}
}

func TestChartsBecomeReady(t *testing.T) {
	fleet := shared.Get(t)
	for name, on := range map[string]client.Client{"fleet-controller": fleet.Client, "fleet-agent": fleet.Members[0].Client} {
		err := stack.Await(t.Context(), "Deployment "+name+" is available", func(ctx context.Context) error {
			var deployment appsv1.Deployment
			if err := on.Get(ctx, client.ObjectKey{Namespace: stack.SystemNamespace, Name: name}, &deployment); err != nil {
				return err
			}
			if deployment.Status.AvailableReplicas == 0 {
				return errors.New("it is not")
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// A member that is gone and comes back is found by its agent, as is the hub by everybody.
func TestAPIServersMayRestart(t *testing.T) {
	fleet := shared.Get(t)
	for _, cluster := range []*kube.Cluster{fleet.Members[0].Cluster, fleet.Hub} {
		if err := cluster.RestartAPIServer(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, program := range []*stack.Program{fleet.Controller, fleet.Members[0].Agent} {
			if err := program.Err(); err != nil {
				t.Errorf("after the restart of %s: %v", cluster.Name(), err)
			}
		}
	}
}

func TestUnsignedPushIsRefused(t *testing.T) {
	fleet := shared.Get(t)
	push := `{"ref":"refs/heads/master","after":"` + strings.Repeat("a", 40) + `","repository":{"clone_url":"http://127.0.0.1:1/none.git"}}`
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fleet.WebhookURL, strings.NewReader(push))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("X-GitHub-Event", "push")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("answered %s", response.Status)
	}
	if err := fleet.Announce(t.Context(), "http://127.0.0.1:1/none.git", "master", strings.Repeat("a", 40)); err != nil {
		t.Errorf("a signed one: %v", err)
	}
}
