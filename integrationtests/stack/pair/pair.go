package pair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/process"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/pkg/agent/hub"
	"github.com/fairlead-dev/fairlead/pkg/agent/identity"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

const (
	// AgentNamespace is where the agent keeps its Secrets on the member.
	AgentNamespace = "cattle-fleet-system"
	// shownBytes of the agent's log are printed when a test fails.
	shownBytes = 20000

	resource = "bundledeployments"
)

// Pair is a hub's namespace, a member's namespace, and an agent that deploys from the one to the other.
type Pair struct {
	Hub, Member *kube.Cluster
	// Namespace on the hub holds the BundleDeployments; Target on the member is where they deploy to.
	Namespace, Target string
	Agent             *stack.Program

	fleet rest.Interface
}

// Start makes the namespaces and starts an agent with the arguments. Its process ends with the test.
func Start(t testing.TB, hubCluster, member *kube.Cluster, args ...string) *Pair {
	t.Helper()
	p := &Pair{Hub: hubCluster, Member: member}
	p.installDefinitions(t)
	var err error
	if p.fleet, err = hub.NewClient(hubCluster.Admin().Config); err != nil {
		t.Fatal(err)
	}
	p.Namespace, p.Target = kubetest.Namespace(t, hubCluster), kubetest.Namespace(t, member)
	p.giveIdentity(t)
	p.startAgent(t, args)
	return p
}

func (p *Pair) installDefinitions(t testing.TB) {
	t.Helper()
	root, err := stack.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := os.Open(filepath.Join(root, "charts", "fleet-crd", "templates", "crds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer definitions.Close()
	if _, err := p.Hub.Kubectl(t.Context(), definitions, "apply", "--server-side", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Hub.Kubectl(t.Context(), nil, "wait", "--for=condition=Established", "crd", "--all", "--timeout=3m"); err != nil {
		t.Fatal(err)
	}
}

// giveIdentity stores what a registration would have.
func (p *Pair) giveIdentity(t testing.TB) {
	t.Helper()
	clients := p.Member.Clients().CoreV1()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: AgentNamespace}}
	if _, err := clients.Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	kubeconfig, err := os.ReadFile(p.Hub.Admin().Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	_, err = clients.Secrets(AgentNamespace).Create(t.Context(), &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: identity.Secret},
		Data:       map[string][]byte{"kubeconfig": kubeconfig, "deploymentNamespace": []byte(p.Namespace)},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context()) // which has ended
		if err := clients.Secrets(AgentNamespace).Delete(ctx, identity.Secret, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

func (p *Pair) startAgent(t testing.TB, args []string) {
	t.Helper()
	programs, err := stack.BuildPrograms(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	parent := process.NewParent()
	log := filepath.Join(t.TempDir(), "agent.log")
	agent, err := parent.Start(process.Command{
		Name: "fleet-agent", Path: programs.Agent, Log: log, Dir: filepath.Dir(log),
		Args: append([]string{"--namespace=" + AgentNamespace, "--kubeconfig=" + p.Member.Admin().Kubeconfig}, args...),
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Agent = &stack.Program{Process: agent}
	t.Cleanup(func() {
		if agent.Running() {
			if err := agent.Kill(); err != nil {
				t.Error(err)
			}
		}
		parent.Close()
		if t.Failed() {
			text, _ := os.ReadFile(log)
			t.Logf("agent:\n%s", text[max(0, len(text)-shownBytes):])
		}
	})
}

// Restart kills the agent (SIGKILL) and starts it again.
func (p *Pair) Restart() error { return errors.Join(p.Agent.Kill(), p.Agent.Start()) }

// Bundle is what a test deploys.
type Bundle struct {
	Name string
	// Files of the bundle: name and content.
	Files map[string]string
	// Options; without a namespace it is Pair.Target.
	Options fleet.BundleDeploymentOptions
	// Finalizers of the deployment; the hub sets fleet.BundleDeploymentFinalizer.
	Finalizers []string
}

// Store puts the files on the hub, where they are not there yet, and returns the deployment for Create
// or Change.
func (p *Pair) Store(ctx context.Context, bundle Bundle) (*fleet.BundleDeployment, error) {
	var manifest content.Manifest
	for name, text := range bundle.Files {
		manifest.Resources = append(manifest.Resources, fleet.BundleResource{Name: name, Content: text})
	}
	stored, err := manifest.Store()
	if err != nil {
		return nil, err
	}
	objects, err := stored.Objects()
	if err != nil {
		return nil, err
	}
	if err := p.fleet.Post().Resource("contents").Body(objects.Head).Do(ctx).Error(); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("create content of %s: %w", bundle.Name, err)
	}
	options := bundle.Options
	if options.DefaultNamespace == "" && options.TargetNamespace == "" {
		options.DefaultNamespace = p.Target
	}
	id, err := content.DeploymentID(stored.ID, options)
	if err != nil {
		return nil, err
	}
	return &fleet.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{Name: bundle.Name, Namespace: p.Namespace, Finalizers: bundle.Finalizers},
		Spec: fleet.BundleDeploymentSpec{DeploymentPartSpec: fleet.DeploymentPartSpec{
			DeploymentID: id, StagedDeploymentID: id, Options: options, StagedOptions: options, CorrectDrift: options.CorrectDrift,
		}},
	}, nil
}

// Create creates a deployment.
func (p *Pair) Create(ctx context.Context, wanted *fleet.BundleDeployment) error {
	return p.fleet.Post().Namespace(p.Namespace).Resource(resource).Body(wanted).Do(ctx).Error()
}

// Change gives an existing deployment another spec, in one write.
func (p *Pair) Change(ctx context.Context, wanted *fleet.BundleDeployment) error {
	patch, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/spec", "value": wanted.Spec}})
	if err != nil {
		return err
	}
	return p.fleet.Patch(types.JSONPatchType).Namespace(p.Namespace).Resource(resource).Name(wanted.Name).Body(patch).Do(ctx).Error()
}

// Put stores, and creates or changes, and returns the deployment's id.
func (p *Pair) Put(t testing.TB, bundle Bundle) string {
	t.Helper()
	deployment, err := p.Store(t.Context(), bundle)
	if err == nil {
		err = p.Create(t.Context(), deployment)
	}
	if apierrors.IsAlreadyExists(err) {
		err = p.Change(t.Context(), deployment)
	}
	if err != nil {
		t.Fatal(err)
	}
	return deployment.Spec.DeploymentID
}

// Get returns a deployment as the hub has it.
func (p *Pair) Get(ctx context.Context, name string) (*fleet.BundleDeployment, error) {
	deployment := &fleet.BundleDeployment{}
	err := p.fleet.Get().Namespace(p.Namespace).Resource(resource).Name(name).Do(ctx).Into(deployment)
	return deployment, err
}

// ListWatch lists and watches all deployments.
func (p *Pair) ListWatch() cache.ListerWatcher {
	return cache.NewListWatchFromClient(p.fleet, resource, p.Namespace, fields.Everything())
}

// Delete deletes a deployment.
func (p *Pair) Delete(ctx context.Context, name string) error {
	return p.fleet.Delete().Namespace(p.Namespace).Resource(resource).Name(name).Do(ctx).Error()
}

// Settled says whether a deployment is applied with an id, ready and unmodified.
func Settled(deployment *fleet.BundleDeployment, id string) bool {
	status := deployment.Status
	return status.AppliedDeploymentID == id && status.Ready && status.NonModified
}
