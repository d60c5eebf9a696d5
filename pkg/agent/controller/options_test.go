package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// An autoscaler that the bundle knows nothing of scales its Deployment: neither drift nor undone by the
// next deployment.
func TestAutoscaledReplicas(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	deployment := func(label string) map[string]string {
		return map[string]string{"a.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {version: "` + label + `"}}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: none, resources: {requests: {cpu: 1m}}}]}
`}
	}
	options := fleet.BundleDeploymentOptions{CorrectDrift: &fleet.CorrectDrift{Enabled: true}}
	w.put("web", bundle{files: deployment("1"), options: options})
	w.until("web", fleet.Ready)
	_, err := w.member.Kubectl(t.Context(), strings.NewReader(`apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: `+w.target+`}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: web}
  minReplicas: 3
  maxReplicas: 5
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`), "apply", "-f", "-")
	if err != nil {
		t.Fatal(err)
	}
	replicas := func() int32 {
		live, err := w.memberClients().AppsV1().Deployments(w.target).Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return *live.Spec.Replicas
	}
	kubetest.Eventually(t, "the autoscaler has scaled", func(context.Context) error {
		if got := replicas(); got != 3 {
			return fmt.Errorf("%d replicas", got)
		}
		return nil
	})
	w.until("web", fleet.Ready)
	w.put("web", bundle{files: deployment("2"), options: options})
	w.until("web", fleet.Ready)
	if got := replicas(); got != 3 {
		t.Errorf("a deployment set %d replicas, want the autoscaler's 3", got)
	}
}

func TestCopiesFromTheHub(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	secrets := w.hub.Clients().CoreV1().Secrets(w.namespace)
	made, err := secrets.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"a": []byte("1")}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	put := func(generation int64, resources ...fleet.DownstreamResource) {
		w.put("copies", bundle{
			files:   map[string]string{"a.yaml": configMap("own", "a", "1")},
			options: fleet.BundleDeploymentOptions{DownstreamResources: resources},
			change:  func(d *fleet.BundleDeployment) { d.Spec.DownstreamResourcesGeneration = generation },
		})
	}
	there := func(want string) {
		t.Helper()
		kubetest.Eventually(t, "the copy holds "+want, func(ctx context.Context) error {
			copied, err := w.memberClients().CoreV1().Secrets(w.target).Get(ctx, "key", metav1.GetOptions{})
			if want == "" {
				if apierrors.IsNotFound(err) {
					return nil
				}
				return errors.Join(errors.New("still there"), err)
			}
			if err == nil && string(copied.Data["a"]) != want {
				err = fmt.Errorf("holds %q", copied.Data["a"])
			}
			return err
		})
	}
	put(1, fleet.DownstreamResource{Kind: "Secret", Name: "key"})
	w.until("copies", fleet.Ready)
	there("1")
	made.Data["a"] = []byte("2")
	if _, err := secrets.Update(t.Context(), made, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	put(2, fleet.DownstreamResource{Kind: "Secret", Name: "key"})
	there("2")
	put(2)
	there("")
	put(3, fleet.DownstreamResource{Kind: "Secret", Name: "key"})
	there("2")
	w.delete("copies")
	there("")
}

// A bundle's service account is the limit of what it can do, and of what it can read.
func TestServiceAccountIsTheLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	accounts := w.memberClients().CoreV1().ServiceAccounts(agentNamespace)
	name := w.target
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	roles := w.memberClients().RbacV1()
	_, err := roles.Roles(w.target).Create(t.Context(), &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: "tenant"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"*"}}},
	}, metav1.CreateOptions{})
	if err == nil {
		_, err = roles.RoleBindings(w.target).Create(t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "tenant"},
			RoleRef:    rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "Role", Name: "tenant"},
			Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: agentNamespace, Name: name}},
		}, metav1.CreateOptions{})
	}
	if err != nil {
		t.Fatal(err)
	}
	options := fleet.BundleDeploymentOptions{ServiceAccount: name}
	w.put("allowed", bundle{files: map[string]string{"a.yaml": configMap("mine", "a", "1")}, options: options})
	w.until("allowed", fleet.Ready)
	w.put("greedy", bundle{options: options, files: map[string]string{"a.yaml": "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: " + name + "}\nrules: []\n"}})
	denied := w.until("greedy", fleet.ErrApplied)
	if message := status.MessageOf(denied); !strings.Contains(message, "forbidden") || !strings.Contains(message, name) {
		t.Errorf("message %q", message)
	}
	w.put("nobody", bundle{options: fleet.BundleDeploymentOptions{ServiceAccount: "missing"}, files: map[string]string{"a.yaml": configMap("x", "a", "1")}})
	denied = w.until("nobody", fleet.ErrApplied)
	if message := status.MessageOf(denied); !strings.Contains(message, "missing") {
		t.Errorf("message %q", message)
	}
	// The hub's restriction on namespaces holds although the account may not see namespaces.
	restricted := options
	restricted.AllowedTargetNamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "blue"}}
	files := map[string]string{"a.yaml": configMap("restricted", "a", "1")}
	w.put("restricted", bundle{files: files, options: restricted})
	denied = w.until("restricted", fleet.ErrApplied)
	if message := status.MessageOf(denied); !strings.Contains(message, "namespace "+w.target+" is not allowed") {
		t.Errorf("message %q", message)
	}
	if _, err := w.member.Kubectl(t.Context(), nil, "label", "namespace", w.target, "team=blue"); err != nil {
		t.Fatal(err)
	}
	restricted.ForceSyncGeneration = 1
	w.put("restricted", bundle{files: files, options: restricted})
	w.until("restricted", fleet.Ready)

	w.delete("allowed")
	w.untilGone("mine")
}

// Where the member has an account fleet-default, it is the limit of bundles that name none.
func TestDefaultServiceAccount(t *testing.T) {
	w := newWorld(t)
	accounts := w.memberClients().CoreV1().ServiceAccounts(agentNamespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "fleet-default"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := accounts.Delete(context.Background(), "fleet-default", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	w.put("limited", bundle{files: map[string]string{"a.yaml": configMap("limited", "a", "1")}})
	denied := w.until("limited", fleet.ErrApplied)
	if message := status.MessageOf(denied); !strings.Contains(message, "system:serviceaccount:"+agentNamespace+":fleet-default") {
		t.Errorf("message %q", message)
	}
}

func TestNamespaceOptions(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	name := w.target + "-new"
	options := fleet.BundleDeploymentOptions{
		DefaultNamespace: name, DeleteNamespace: true,
		NamespaceLabels: map[string]string{"team": "blue", "old": "x"}, NamespaceAnnotations: map[string]string{"note": "hello"},
	}
	w.put("ns", bundle{files: map[string]string{"a.yaml": configMap("inside", "a", "1")}, options: options})
	w.until("ns", fleet.Ready)
	if _, err := w.member.Kubectl(t.Context(), nil, "label", "namespace", name, "theirs=y"); err != nil {
		t.Fatal(err)
	}
	options.NamespaceLabels = map[string]string{"team": "red"}
	w.put("ns", bundle{files: map[string]string{"a.yaml": configMap("inside", "a", "2")}, options: options})
	w.until("ns", fleet.Ready)
	namespace, err := w.memberClients().CoreV1().Namespaces().Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if labels := namespace.Labels; labels["team"] != "red" || labels["theirs"] != "y" || labels["old"] != "" || namespace.Annotations["note"] != "hello" {
		t.Errorf("labels %v, annotations %v", namespace.Labels, namespace.Annotations)
	}
	w.delete("ns")
	kubetest.Eventually(t, "the namespace is gone", func(ctx context.Context) error {
		_, err := w.memberClients().CoreV1().Namespaces().Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	})
}

// Lists that hold a key twice cannot be applied by the server; they are merged, and are not drift.
func TestDuplicateListKeys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	service := func(port string) map[string]string {
		return map[string]string{"a.yaml": `apiVersion: apps/v1
kind: Deployment
metadata: {name: twice}
spec:
  replicas: 1
  selector: {matchLabels: {app: twice}}
  template:
    metadata: {labels: {app: twice}}
    spec: {containers: [{name: a, image: none, env: [{name: A, value: "1"}, {name: A, value: "` + port + `"}]}]}
`}
	}
	w.put("twice", bundle{files: service("2")})
	w.until("twice", fleet.Ready)
	w.put("twice", bundle{files: service("3")})
	w.until("twice", fleet.Ready)
	live, err := w.memberClients().AppsV1().Deployments(w.target).Get(t.Context(), "twice", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if env := live.Spec.Template.Spec.Containers[0].Env; len(env) != 2 || env[1].Value != "3" {
		t.Errorf("env %v", env)
	}
	if _, err := w.member.Kubectl(t.Context(), nil, "-n", w.target, "scale", "deployment/twice", "--replicas=0"); err != nil {
		t.Fatal(err)
	}
	w.until("twice", fleet.Modified)
}
