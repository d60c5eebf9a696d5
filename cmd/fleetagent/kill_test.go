package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
	"github.com/fairlead-dev/fairlead/pkg/agent/join"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

var clusters = kubetest.Share(kubetest.Options{Members: 1})

func TestMain(m *testing.M) { os.Exit(clusters.Run(m)) }

const agentNamespace = "cattle-fleet-system"

// kills is how often the agent is killed in the middle of a change.
const kills = 20

// site is a hub and a member with an agent that runs as a process.
type site struct {
	t           *testing.T
	hub, member *kube.Cluster
	namespace   string // on the hub
	target      string // on the member
	fleet       rest.Interface
	agent       *process.Process
}

func newSite(t *testing.T) *site {
	t.Helper()
	all := clusters.Get(t)
	s := &site{t: t, hub: all.Hub, member: all.Members[0]}
	definitions, err := os.Open(filepath.Join("..", "..", "charts", "fleet-crd", "templates", "crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer definitions.Close()
	if _, err := s.hub.Kubectl(t.Context(), definitions, "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.hub.Kubectl(t.Context(), nil, "wait", "--for=condition=Established", "crd", "--all"); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	if err := fleet.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	config := s.hub.Admin().Config
	config.GroupVersion, config.APIPath = &fleet.GroupVersion, "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	if s.fleet, err = rest.RESTClientFor(config); err != nil {
		t.Fatal(err)
	}
	s.namespace, s.target = kubetest.Namespace(t, s.hub), kubetest.Namespace(t, s.member)
	s.giveIdentity()
	s.startAgent()
	return s
}

// giveIdentity stores what a registration would have.
func (s *site) giveIdentity() {
	s.t.Helper()
	_, err := s.member.Clients().CoreV1().Namespaces().Create(s.t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agentNamespace}}, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(s.hub.Admin().Kubeconfig)
	if err != nil {
		s.t.Fatal(err)
	}
	_, err = s.member.Clients().CoreV1().Secrets(agentNamespace).Create(s.t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: join.CredentialSecret},
		Data:       map[string][]byte{"kubeconfig": kubeconfig, "deploymentNamespace": []byte(s.namespace)},
	}, metav1.CreateOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *site) startAgent() {
	s.t.Helper()
	program := filepath.Join(s.t.TempDir(), "fleetagent")
	build := exec.CommandContext(s.t.Context(), "go", "build", "-o", program, ".")
	if output, err := build.CombinedOutput(); err != nil {
		s.t.Fatalf("build the agent: %v: %s", err, output)
	}
	parent := process.NewParent()
	log := filepath.Join(s.t.TempDir(), "agent.log")
	agent, err := parent.Start(process.Command{
		Name: "fleetagent", Path: program, Log: log,
		Args: []string{"--namespace=" + agentNamespace, "--kubeconfig=" + s.member.Admin().Kubeconfig, "--heartbeat-interval=1s", "--debug"},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.agent = agent
	s.t.Cleanup(func() {
		if agent.Running() {
			if err := agent.Kill(); err != nil {
				s.t.Error(err)
			}
		}
		parent.Close()
		if s.t.Failed() {
			text, _ := os.ReadFile(log)
			s.t.Logf("agent:\n%s", text[max(0, len(text)-20000):])
		}
	})
}

// put stores a bundle of manifests as the hub would.
func (s *site) put(name, manifests string) string {
	s.t.Helper()
	ctx := s.t.Context()
	stored, err := content.Manifest{Resources: []fleet.BundleResource{{Name: "a.yaml", Content: manifests}}}.Store()
	if err != nil {
		s.t.Fatal(err)
	}
	object, err := stored.Object()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.fleet.Post().Resource("contents").Body(object).Do(ctx).Error(); err != nil && !apierrors.IsAlreadyExists(err) {
		s.t.Fatal(err)
	}
	options := fleet.BundleDeploymentOptions{DefaultNamespace: s.target}
	id, err := content.DeploymentID(stored.ID, options)
	if err != nil {
		s.t.Fatal(err)
	}
	wanted := &fleet.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.namespace},
		Spec:       fleet.BundleDeploymentSpec{DeploymentID: id, StagedDeploymentID: id, Options: options, StagedOptions: options},
	}
	err = s.fleet.Post().Namespace(s.namespace).Resource("bundledeployments").Body(wanted).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		current := s.get(name)
		current.Spec = wanted.Spec
		err = s.fleet.Put().Namespace(s.namespace).Resource("bundledeployments").Name(name).Body(current).Do(ctx).Error()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return id
}

func (s *site) get(name string) *fleet.BundleDeployment {
	s.t.Helper()
	deployment := &fleet.BundleDeployment{}
	if err := s.fleet.Get().Namespace(s.namespace).Resource("bundledeployments").Name(name).Do(s.t.Context()).Into(deployment); err != nil {
		s.t.Fatal(err)
	}
	return deployment
}

func (s *site) untilApplied(name, id string) {
	s.t.Helper()
	kubetest.Eventually(s.t, name+" is applied", func(context.Context) error {
		deployment := s.get(name)
		if deployment.Status.AppliedDeploymentID == id && deployment.Status.Ready && deployment.Status.NonModified {
			return nil
		}
		text, _ := json.Marshal(deployment.Status)
		return fmt.Errorf("status %s", text)
	})
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
	maps := s.member.Clients().CoreV1().ConfigMaps(s.target)
	first, err := maps.Get(t.Context(), "stays", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for step := 1; step <= kills; step++ {
		id := s.put("pantry", pantry(step))
		s.pause(400 * time.Millisecond)
		if err := s.agent.Kill(); err != nil {
			t.Fatal(err)
		}
		if err := s.agent.Start(); err != nil {
			t.Fatal(err)
		}
		if step%4 == 0 { // the others are overtaken by the next change
			s.untilApplied("pantry", id)
		}
	}
	s.untilApplied("pantry", s.put("pantry", pantry(kills+1)))
	s.check(first.UID, kills+1)

	if err := s.fleet.Delete().Namespace(s.namespace).Resource("bundledeployments").Name("pantry").Do(t.Context()).Error(); err != nil {
		t.Fatal(err)
	}
	// An agent that is killed while it uninstalls, and finds nothing on the hub, still finishes: the hub
	// has another deployment, so that its list is not empty.
	s.put("other", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: other}\n")
	s.pause(200 * time.Millisecond)
	if err := s.agent.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the bundle is gone", func(ctx context.Context) error {
		if names := s.objects(ctx); !slices.Equal(names, []string{"other"}) {
			return fmt.Errorf("objects %v", names)
		}
		return nil
	})
}

func (s *site) objects(ctx context.Context) []string {
	list, err := s.member.Clients().CoreV1().ConfigMaps(s.target).List(ctx, metav1.ListOptions{LabelSelector: fleet.SetHashLabel})
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
	kept, err := s.member.Clients().CoreV1().ConfigMaps(s.target).Get(s.t.Context(), "stays", metav1.GetOptions{})
	if err != nil {
		s.t.Fatal(err)
	}
	if kept.UID != uid || kept.Data["step"] != fmt.Sprint(step) {
		s.t.Errorf("the object that every step keeps has uid %s, want %s, and data %v", kept.UID, uid, kept.Data)
	}
	records, err := s.member.Clients().CoreV1().Secrets(s.target).List(s.t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil {
		s.t.Fatal(err)
	}
	if len(records.Items) > 2 {
		s.t.Errorf("%d revisions are kept, want at most 2", len(records.Items))
	}
}
