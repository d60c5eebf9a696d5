package examples

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	"github.com/fairlead-dev/fairlead/integrationtests/stack/sources"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// removePatience is how long an example may take to go: far longer than it does.
const removePatience = 2 * time.Minute

// checks say what an example promises for one member.
var checks = map[string]func(*testing.T, *stack.Member){
	"raw-manifests":  checkRawManifests,
	"helm-chart":     checkHelmChart,
	"helm-repo":      checkHelmRepo,
	"kustomize":      checkKustomize,
	"helm-kustomize": checkHelmKustomize,
	"yaml-overlays":  checkYAMLOverlays,
	"customizations": checkCustomizations,
	"monorepo":       checkMonorepo,
}

func TestExamples(t *testing.T) {
	w := getWorld(t)
	if len(w.sources.Paths) != len(checks) {
		t.Errorf("the examples are %v, but %d have a check", w.sources.Paths, len(checks))
	}
	for _, path := range w.sources.Paths {
		t.Run(path, func(t *testing.T) {
			if _, err := os.Stat("../../examples/" + path + "/README.md"); err != nil {
				t.Error(err)
			}
			check := checks[path]
			if check == nil {
				t.Fatal("it has no check")
			}
			w.deploy(t, path)
			for _, member := range w.Members {
				check(t, member)
			}
		})
	}
	for _, member := range w.Members {
		checkNothingLeft(t, member)
	}
}

// checkNothingLeft holds that what was deployed went with its GitRepo.
func checkNothingLeft(t *testing.T, member *stack.Member) {
	t.Helper()
	var deployments appsv1.DeploymentList
	if err := member.Client.List(t.Context(), &deployments, client.HasLabels{fleet.SetHashLabel}); err != nil {
		t.Fatal(err)
	}
	for _, left := range deployments.Items {
		t.Errorf("%s: Deployment %s/%s is left", member.Name, left.Namespace, left.Name)
	}
	err := member.Client.Get(t.Context(), client.ObjectKey{Namespace: "helm-repo", Name: "beacon"}, &corev1.ConfigMap{})
	if !apierrors.IsNotFound(err) {
		t.Errorf("%s: ConfigMap helm-repo/beacon: %v", member.Name, err)
	}
}

func wantReplicas(t *testing.T, member *stack.Member, deployment *appsv1.Deployment, want int32) {
	t.Helper()
	if *deployment.Spec.Replicas != want || deployment.Status.ReadyReplicas != want {
		t.Errorf("%s: Deployment %s has %d replicas, %d ready; want %d", member.Name, deployment.Name, *deployment.Spec.Replicas, deployment.Status.ReadyReplicas, want)
	}
}

func wantText(t *testing.T, member *stack.Member, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: %s is %q, want %q", member.Name, what, got, want)
	}
}

func checkRawManifests(t *testing.T, member *stack.Member) {
	const namespace = "raw-manifests"
	config := get(t, member, namespace, "hello", &corev1.ConfigMap{})
	wantText(t, member, "the greeting", config.Data["greeting"], "good morning")
	service := get(t, member, namespace, "hello", &corev1.Service{})
	wantText(t, member, "what the service selects", service.Spec.Selector["app"], "hello")
	wantReplicas(t, member, get(t, member, namespace, "hello", &appsv1.Deployment{}), 1)
	own := get(t, member, "", namespace, &corev1.Namespace{})
	if own.Labels[fleet.SetHashLabel] == "" {
		t.Errorf("%s: the Namespace of the example is not the bundle's", member.Name)
	}
}

func checkHelmChart(t *testing.T, member *stack.Member) {
	const namespace = "helm-chart"
	web := get(t, member, namespace, "guestbook", &appsv1.Deployment{})
	wantReplicas(t, member, web, 2)
	wantText(t, member, "the title", web.Spec.Template.Spec.Containers[0].Env[0].Value, "Guestbook on "+member.Name)
	get(t, member, namespace, "guestbook-cache", &appsv1.StatefulSet{})
	release := get(t, member, namespace, "sh.helm.release.v1.guestbook.v1", &corev1.Secret{})
	wantText(t, member, "the release's state", release.Labels["status"], "deployed")
}

func checkHelmRepo(t *testing.T, member *stack.Member) {
	config := get(t, member, "helm-repo", "beacon", &corev1.ConfigMap{})
	wantText(t, member, "the light", config.Data["light"], "green")
	wantText(t, member, "the chart's version", config.Data["version"], "1.2.3")
}

func checkKustomize(t *testing.T, member *stack.Member) {
	mailer := get(t, member, "kustomize", "mailer", &appsv1.Deployment{})
	env := member.Labels["env"]
	wantReplicas(t, member, mailer, map[string]int32{"dev": 1, "test": 2, "prod": 3}[env])
	wantText(t, member, "the label env", mailer.Labels["env"], env)
	generated := mailer.Spec.Template.Spec.Containers[0].EnvFrom[0].ConfigMapRef.Name
	if !strings.HasPrefix(generated, "mailer-") {
		t.Errorf("%s: the Deployment refers to ConfigMap %s", member.Name, generated)
	}
	config := get(t, member, "kustomize", generated, &corev1.ConfigMap{})
	wantText(t, member, "the sender", config.Data["from"], "noreply@example.com")
}

func checkHelmKustomize(t *testing.T, member *stack.Member) {
	relay := get(t, member, "helm-kustomize", "relay", &appsv1.Deployment{})
	wantReplicas(t, member, relay, 1)
	wantText(t, member, "the label Kustomize adds", relay.Labels["team"], "network")
	wantText(t, member, "the argument from the values", relay.Spec.Template.Spec.Containers[0].Args[0], "--port=9090")
	notes := get(t, member, "helm-kustomize", "relay-notes", &corev1.ConfigMap{})
	wantText(t, member, "the owner", notes.Data["owner"], "network")
}

func checkYAMLOverlays(t *testing.T, member *stack.Member) {
	settings := get(t, member, "yaml-overlays", "settings", &corev1.ConfigMap{})
	wantText(t, member, "the mode", settings.Data["mode"], "small")
	want := int32(1)
	if member.Labels["env"] == "prod" {
		want = 4
	}
	worker := get(t, member, "yaml-overlays", "worker", &appsv1.Deployment{})
	wantReplicas(t, member, worker, want)
	wantText(t, member, "the image", worker.Spec.Template.Spec.Containers[0].Image, "registry.example.com/worker:5")
}

func checkCustomizations(t *testing.T, member *stack.Member) {
	const namespace = "customizations"
	env := member.Labels["env"]
	shop := get(t, member, namespace, "shop", &corev1.ConfigMap{})
	wantText(t, member, "the environment", shop.Data["env"], env)
	wantText(t, member, "payments", shop.Data["payments"], map[string]string{"dev": "true", "test": "false", "prod": "true"}[env])
	wantReplicas(t, member, get(t, member, namespace, "shop", &appsv1.Deployment{}), map[string]int32{"dev": 1, "test": 1, "prod": 3}[env])
	labels := get(t, member, "", namespace, &corev1.Namespace{}).Labels
	wantText(t, member, "the namespace's label", labels["pod-security.kubernetes.io/enforce"], map[string]string{"prod": "baseline"}[env])
}

func checkMonorepo(t *testing.T, member *stack.Member) {
	const namespace = "monorepo-shop"
	get(t, member, namespace, "shop", &corev1.ResourceQuota{})
	wantReplicas(t, member, get(t, member, namespace, "cart", &appsv1.Deployment{}), 1)
	get(t, member, namespace, "index", &batchv1.Job{})
	all, err := member.Cluster.Writes()
	if err != nil {
		t.Fatal(err)
	}
	for _, order := range [][2]string{
		{"namespaces/monorepo-shop", "resourcequotas/shop"},
		{"namespaces/monorepo-shop", "jobs/index"},
		{"resourcequotas/shop", "deployments/cart"},
	} {
		first, second := firstWrite(all, order[0]), firstWrite(all, order[1])
		if first.IsZero() || second.IsZero() || second.Before(first) {
			t.Errorf("%s: %s was written at %s, %s at %s", member.Name, order[0], first, order[1], second)
		}
	}
}

// firstWrite returns when an object, "resource/name", was first stored.
func firstWrite(all []writes.Write, object string) time.Time {
	for _, w := range all {
		if fmt.Sprintf("%s/%s", w.Resource, w.Name) == object && w.Subresource == "" && !writes.Refused(w.Request) {
			return w.Time
		}
	}
	return time.Time{}
}

// A commit that touches one folder of a tree with several bundles changes that bundle only.
func TestMonorepoChangesOneBundle(t *testing.T) {
	w := getWorld(t)
	w.deploy(t, "monorepo")
	before := w.generations(t)
	const file = "monorepo/apps/cart/cart.yaml"
	content, err := os.ReadFile("../../examples/" + file)
	if err != nil {
		t.Fatal(err)
	}
	const was, is = "registry.example.com/cart:3", "registry.example.com/cart:4"
	commit, err := w.sources.Examples.Commit(map[string]string{file: strings.Replace(string(content), was, is, 1)}, "New cart")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Announce(t.Context(), w.sources.Examples.HTTPURL(), sources.Branch, commit); err != nil {
		t.Fatal(err)
	}
	w.awaitReady(t, commit)
	for _, member := range w.Members {
		cart := get(t, member, "monorepo-shop", "cart", &appsv1.Deployment{})
		wantText(t, member, "the image", cart.Spec.Template.Spec.Containers[0].Image, is)
	}
	for bundle, generation := range w.generations(t) {
		if changed := generation != before[bundle]; changed != (bundle == "monorepo-cart") {
			t.Errorf("bundle %s: generation %d, before %d", bundle, generation, before[bundle])
		}
	}
}

func (w *world) generations(t *testing.T) map[string]int64 {
	t.Helper()
	var bundles fleet.BundleList
	if err := w.Client.List(t.Context(), &bundles, client.InNamespace(stack.Workspace)); err != nil {
		t.Fatal(err)
	}
	generations := map[string]int64{}
	for i := range bundles.Items {
		generations[bundles.Items[i].Name] = bundles.Items[i].Generation
	}
	if len(generations) != 4 {
		t.Errorf("there are bundles %v", generations)
	}
	return generations
}
