package controller_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/controller"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/hub"
	"github.com/fairlead-dev/fairlead/pkg/agent/synced"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

var (
	clusters = kubetest.Share(kubetest.Options{Members: 1})
	prepared sync.Once
)

func TestMain(m *testing.M) { os.Exit(clusters.Run(m)) }

const agentNamespace = "cattle-fleet-system"

// world is a hub namespace with an agent that works on it, and a namespace on the member to deploy to.
type world struct {
	t         *testing.T
	hub       *kube.Cluster
	member    *kube.Cluster
	namespace string // on the hub
	target    string // on the member
	client    rest.Interface
	toHub     func() *rest.Config // the agent's way to it
	stop      func()

	volumeGrace time.Duration // of the agents that are started
}

// newWorld starts an agent, as administrator on both sides: rights are tested elsewhere.
func newWorld(t *testing.T) *world {
	t.Helper()
	all := clusters.Get(t)
	w := &world{t: t, hub: all.Hub, member: all.Members[0], volumeGrace: volumeGrace}
	prepared.Do(w.prepare)
	var err error
	if w.client, err = hub.NewClient(w.hub.Admin().Config); err != nil {
		t.Fatal(err)
	}
	w.toHub = func() *rest.Config { return w.hub.Admin().Config }
	w.namespace = kubetest.Namespace(t, w.hub)
	w.target = kubetest.Namespace(t, w.member)
	w.start()
	return w
}

// prepare installs the definitions on the hub and makes the agents' namespace on the member.
func (w *world) prepare() {
	w.t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "charts", "fleet-crd", "templates", "crds.yaml"))
	if err != nil {
		w.t.Fatal(err)
	}
	defer file.Close()
	if _, err := w.hub.Kubectl(w.t.Context(), file, "apply", "--server-side", "-f", "-"); err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.hub.Kubectl(w.t.Context(), nil, "wait", "--for=condition=Established", "crd", "--all", "--timeout=3m"); err != nil {
		w.t.Fatal(err)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agentNamespace}}
	if _, err := w.memberClients().CoreV1().Namespaces().Create(w.t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// start runs the agent in this process; the returned agent is stopped by w.stop or when the test ends.
func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	log := w.log()
	from, err := hub.New(w.toHub(), w.namespace, registry.Client{})
	if err != nil {
		w.t.Fatal(err)
	}
	member, err := access.NewMember(w.member.Admin().Config, agentNamespace, synced.New())
	if err != nil {
		w.t.Fatal(err)
	}
	// The namespace on the hub tells the agents of this package's tests apart.
	deployer := helm.NewDeployer(member, helm.Options{AgentNamespace: agentNamespace, AgentScope: w.namespace, Log: log})
	loop, err := controller.New(ctx, from, member, deployer, controller.Options{
		AgentNamespace: agentNamespace, Workers: 8, ConfirmAfter: time.Second, CollectEvery: 2 * time.Second, VolumeGrace: w.volumeGrace, Log: log,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := loop.Run(ctx); err != nil {
			w.t.Error(err)
		}
	}()
	stopped := false
	w.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			<-done
		}
	}
	w.t.Cleanup(func() { w.stop() })
}

// log returns a log of the test's, which takes nothing any more once the test has ended: a watch that is told to end may
// say something a moment later, and for that the test program would end.
func (w *world) log() logr.Logger {
	var mu sync.Mutex
	ended := false
	w.t.Cleanup(func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
	})
	return funcr.New(func(prefix, args string) {
		mu.Lock()
		defer mu.Unlock()
		if !ended {
			w.t.Log(strings.TrimSpace(prefix + " " + args))
		}
	}, funcr.Options{LogTimestamp: true})
}

// bundle is what a test deploys.
type bundle struct {
	files   map[string]string
	options fleet.BundleDeploymentOptions
	values  map[string]any
	change  func(*fleet.BundleDeployment)
}

// put creates or updates Content, values and BundleDeployment, as the hub would, and returns the id.
func (w *world) put(name string, b bundle) string {
	w.t.Helper()
	ctx := w.t.Context()
	var manifest content.Manifest
	for file, text := range b.files {
		manifest.Resources = append(manifest.Resources, fleet.BundleResource{Name: file, Content: text})
	}
	stored, err := manifest.Store()
	if err != nil {
		w.t.Fatal(err)
	}
	objects, err := stored.Objects()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.client.Post().Resource("contents").Body(objects.Head).Do(ctx).Error(); err != nil && !apierrors.IsAlreadyExists(err) {
		w.t.Fatal(err)
	}
	if b.options.DefaultNamespace == "" && b.options.TargetNamespace == "" {
		b.options.DefaultNamespace = w.target
	}
	hashed := *b.options.DeepCopy()
	if b.values != nil {
		if hashed.Helm == nil {
			hashed.Helm = &fleet.HelmOptions{}
		}
		hashed.Helm.Values = &fleet.GenericMap{Data: b.values}
	}
	id, err := content.DeploymentID(stored.ID, hashed)
	if err != nil {
		w.t.Fatal(err)
	}
	wanted := &fleet.BundleDeployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: w.namespace,
			Labels: map[string]string{fleet.BundleLabel: name, fleet.BundleNamespaceLabel: "fleet-default"},
		},
		Spec: fleet.BundleDeploymentSpec{DeploymentPartSpec: fleet.DeploymentPartSpec{
			DeploymentID: id, StagedDeploymentID: id, Options: b.options, StagedOptions: b.options, CorrectDrift: b.options.CorrectDrift,
		}},
	}
	if b.values != nil {
		wanted.Spec.ValuesHash = w.putValues(name, b.values)
	}
	if b.change != nil {
		b.change(wanted)
	}
	err = w.client.Post().Namespace(w.namespace).Resource("bundledeployments").Body(wanted).Do(ctx).Error()
	if apierrors.IsAlreadyExists(err) {
		// A whole new spec: what is not in it goes.
		err = retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			current := w.get(name)
			current.Spec = wanted.Spec
			return w.client.Put().Namespace(w.namespace).Resource("bundledeployments").Name(name).Body(current).Do(ctx).Error()
		})
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return wanted.Spec.DeploymentID
}

func (w *world) putValues(name string, values map[string]any) string {
	w.t.Helper()
	data, err := json.Marshal(values)
	if err != nil {
		w.t.Fatal(err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Type: fleet.DeploymentValuesSecretType,
		Data: map[string][]byte{"values": data, "stagedValues": data},
	}
	secrets := w.hub.Clients().CoreV1().Secrets(w.namespace)
	if _, err := secrets.Create(w.t.Context(), secret, metav1.CreateOptions{}); apierrors.IsAlreadyExists(err) {
		_, err = secrets.Update(w.t.Context(), secret, metav1.UpdateOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
	} else if err != nil {
		w.t.Fatal(err)
	}
	return content.DeploymentValuesHash(data, data)
}

func (w *world) get(name string) *fleet.BundleDeployment {
	w.t.Helper()
	deployment := &fleet.BundleDeployment{}
	err := w.client.Get().Namespace(w.namespace).Resource("bundledeployments").Name(name).Do(w.t.Context()).Into(deployment)
	if err != nil {
		w.t.Fatal(err)
	}
	return deployment
}

func (w *world) delete(name string) {
	w.t.Helper()
	err := w.client.Delete().Namespace(w.namespace).Resource("bundledeployments").Name(name).Do(w.t.Context()).Error()
	if err != nil {
		w.t.Fatal(err)
	}
}

// until waits until the deployment has a state, for its present id.
func (w *world) until(name string, state fleet.BundleState) *fleet.BundleDeployment {
	w.t.Helper()
	return w.untilTrue(name, "is "+string(state), func(d *fleet.BundleDeployment) bool {
		return status.Of(d) == state && d.Status.Display.State == string(state)
	})
}

func (w *world) untilTrue(name, what string, holds func(*fleet.BundleDeployment) bool) *fleet.BundleDeployment {
	w.t.Helper()
	var last *fleet.BundleDeployment
	kubetest.Eventually(w.t, name+" "+what, func(context.Context) error {
		last = w.get(name)
		if holds(last) {
			return nil
		}
		text, _ := json.Marshal(last.Status)
		return fmt.Errorf("state %s: %s", status.Of(last), text)
	})
	return last
}

func (w *world) memberClients() kubernetes.Interface { return w.member.Clients() }

func (w *world) configMap(name string) (*corev1.ConfigMap, error) {
	return w.memberClients().CoreV1().ConfigMaps(w.target).Get(w.t.Context(), name, metav1.GetOptions{})
}

// untilData waits until a config map has a value.
func (w *world) untilData(name, key, want string) {
	w.t.Helper()
	kubetest.Eventually(w.t, fmt.Sprintf("config map %s has %s: %s", name, key, want), func(context.Context) error {
		live, err := w.configMap(name)
		if err == nil && live.Data[key] != want {
			err = fmt.Errorf("data %v", live.Data)
		}
		return err
	})
}

func (w *world) untilGone(name string) {
	w.t.Helper()
	kubetest.Eventually(w.t, "config map "+name+" is gone", func(context.Context) error {
		_, err := w.configMap(name)
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	})
}

func (w *world) patchConfigMap(name, patch string) {
	w.t.Helper()
	_, err := w.memberClients().CoreV1().ConfigMaps(w.target).Patch(w.t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
	if err != nil {
		w.t.Fatal(err)
	}
}

// revisions returns the revisions of a release that are stored.
func (w *world) revisions(release string) []string {
	w.t.Helper()
	list, err := w.memberClients().CoreV1().Secrets(w.target).List(w.t.Context(), metav1.ListOptions{LabelSelector: "owner=helm,name=" + release})
	if err != nil {
		w.t.Fatal(err)
	}
	var names []string
	for _, secret := range list.Items {
		names = append(names, secret.Labels["version"]+":"+secret.Labels["status"])
	}
	return names
}

func configMap(name string, data ...string) string {
	lines := []string{"apiVersion: v1", "kind: ConfigMap", "metadata:", "  name: " + name, "data:"}
	for i := 0; i+1 < len(data); i += 2 {
		lines = append(lines, fmt.Sprintf("  %s: %q", data[i], data[i+1]))
	}
	return strings.Join(lines, "\n") + "\n"
}

func newConfigMap(name, key, value string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{key: value}}
}

func (w *world) untilNoRecords(release string) {
	w.t.Helper()
	kubetest.Eventually(w.t, "release "+release+" is gone", func(context.Context) error {
		if left := w.revisions(release); len(left) > 0 {
			return fmt.Errorf("records left: %v", left)
		}
		return nil
	})
}

func definition(group string) string {
	return `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: jars.` + group + `}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {kind: Jar, plural: jars, singular: jar, listKind: JarList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {n: {type: integer}}
`
}
