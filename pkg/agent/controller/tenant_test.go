package controller_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// apply has kubectl apply objects to the member.
func (w *world) apply(objects string) {
	w.t.Helper()
	if _, err := w.member.Kubectl(w.t.Context(), strings.NewReader(objects), "apply", "-f", "-"); err != nil {
		w.t.Fatal(err)
	}
}

// tenant makes a service account that may do anything with some kinds, in the target namespace only.
func (w *world) tenant() string {
	w.t.Helper()
	w.apply(fmt.Sprintf(`apiVersion: v1
kind: ServiceAccount
metadata: {name: %[1]s, namespace: %[2]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: tenant, namespace: %[1]s}
rules:
- {apiGroups: ["", apps, batch], resources: [configmaps, secrets, deployments, jobs], verbs: ["*"]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: tenant, namespace: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: tenant}
subjects: [{kind: ServiceAccount, name: %[1]s, namespace: %[2]s}]
`, w.target, agentNamespace))
	return w.target
}

func chart(templates map[string]string) map[string]string {
	files := map[string]string{"Chart.yaml": "apiVersion: v2\nname: c\nversion: 1.0.0\n"}
	for name, text := range templates {
		files["templates/"+name] = text
	}
	return files
}

func hook(kind, name, namespace, when string) string {
	return "apiVersion: v1\nkind: " + kind + "\nmetadata:\n  name: " + name + "\n  namespace: " + namespace + "\n  annotations: {helm.sh/hook: " + when + "}\n"
}

// An account with rights in one namespace is enough for all that a bundle does there, and no way to what is
// elsewhere.
func TestTenant(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	account := w.tenant()
	options := func(helm *fleet.HelmOptions) fleet.BundleDeploymentOptions {
		return fleet.BundleDeploymentOptions{ServiceAccount: account, Helm: helm}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, Data: map[string][]byte{"a": []byte("1")}}
	if _, err := w.hub.Clients().CoreV1().Secrets(w.namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	copies := options(nil)
	copies.DownstreamResources = []fleet.DownstreamResource{{Kind: "Secret", Name: "key"}}
	w.put("copies", bundle{files: map[string]string{"a.yaml": configMap("own", "a", "1")}, options: copies, change: func(d *fleet.BundleDeployment) {
		d.Spec.DownstreamResourcesGeneration = 1
	}})
	w.put("hooks", bundle{options: options(nil), files: chart(map[string]string{
		"a.yaml":    configMap("plain", "own", `{{ (lookup `+"`v1` `ConfigMap` .Release.Namespace `kube-root-ca.crt`"+`).metadata.name }}`),
		"hook.yaml": hook("ConfigMap", "before", w.target, "pre-install") + "---\n" + hook("ConfigMap", "after", w.target, "post-delete"),
	})})
	marks := options(nil)
	marks.NamespaceLabels = map[string]string{"team": "blue"}
	elsewhere := fleet.ConfigMapKeySelector{LocalObjectReference: fleet.LocalObjectReference{Name: "kube-root-ca.crt"}, Namespace: "default", Key: "ca.crt"}
	denied := map[string]bundle{
		"looks":  {options: options(nil), files: chart(map[string]string{"a.yaml": configMap("looked", "n", "{{ len (lookup `v1` `ConfigMap` `default` `kube-root-ca.crt`) }}")})},
		"values": {options: options(&fleet.HelmOptions{ValuesFrom: []fleet.ValuesFrom{{ConfigMapKeyRef: &elsewhere}}}), files: map[string]string{"a.yaml": configMap("valued", "a", "1")}},
		"marks":  {options: marks, files: map[string]string{"a.yaml": configMap("marked", "a", "1")}},
		"hooked": {options: options(nil), files: chart(map[string]string{"a.yaml": configMap("hooked", "a", "1"), "hook.yaml": hook("ConfigMap", "outside", "default", "pre-install")})},
	}
	for name, b := range denied {
		w.put(name, b)
	}
	for name := range denied {
		refused := w.until(name, fleet.ErrApplied)
		if message := status.MessageOf(refused); !strings.Contains(message, "forbidden") || !strings.Contains(message, account) {
			t.Errorf("%s: %q", name, message)
		}
	}
	for _, name := range []string{"copies", "hooks"} {
		w.until(name, fleet.Ready)
	}
	w.wantData("plain", map[string]string{"own": "kube-root-ca.crt"})
	if _, err := w.configMap("before"); err != nil {
		t.Errorf("pre-install hook: %v", err)
	}
	for _, name := range []string{"copies", "hooks"} {
		w.delete(name)
		w.untilNoRecords(name)
	}
	w.wantData("after", nil)
	kubetest.Eventually(t, "the copy is gone", func(ctx context.Context) error { // after the records
		_, err := w.memberClients().CoreV1().Secrets(w.target).Get(ctx, "key", metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("still there"), err)
	})
}

// What scales a tenant's workload is nothing the tenant has to be allowed to see. Beyond its bounds it is drift.
func TestTenantIsScaled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	options := fleet.BundleDeploymentOptions{ServiceAccount: w.tenant(), CorrectDrift: &fleet.CorrectDrift{Enabled: true}}
	files := func(label string) map[string]string {
		return map[string]string{"a.yaml": strings.Replace(stuck(label), "nodeSelector: {nowhere: \"true\"}, ", "", 1)}
	}
	w.put("web", bundle{files: files("1"), options: options})
	w.until("web", fleet.Ready)
	w.apply(`apiVersion: autoscaling/v2
kind: HorizontalPodAutoscaler
metadata: {name: web, namespace: ` + w.target + `}
spec:
  scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: stuck}
  minReplicas: 1
  maxReplicas: 3
  metrics: [{type: Resource, resource: {name: cpu, target: {type: Utilization, averageUtilization: 50}}}]
`)
	scale := func(replicas string) {
		t.Helper()
		if _, err := w.member.Kubectl(t.Context(), nil, "-n", w.target, "scale", "deployment/stuck", "--replicas="+replicas); err != nil {
			t.Fatal(err)
		}
	}
	has := func(what string, want int32) {
		t.Helper()
		kubetest.Eventually(t, what, func(ctx context.Context) error {
			live, err := w.memberClients().AppsV1().Deployments(w.target).Get(ctx, "stuck", metav1.GetOptions{})
			if err == nil && *live.Spec.Replicas != want {
				err = fmt.Errorf("%d replicas, want %d", *live.Spec.Replicas, want)
			}
			return err
		})
	}
	scale("2")
	w.put("web", bundle{files: files("2"), options: options})
	w.until("web", fleet.Ready)
	has("a deployment leaves the number", 2)
	kubetest.Eventually(t, "a number out of bounds is corrected", func(ctx context.Context) error {
		live, err := w.memberClients().AppsV1().Deployments(w.target).Get(ctx, "stuck", metav1.GetOptions{})
		if err != nil {
			return err
		}
		switch *live.Spec.Replicas {
		case 1:
			return nil
		case 2, 3: // by the autoscaler, which looks now and then, and was there first this time
			scale("7")
		}
		return fmt.Errorf("%d replicas", *live.Spec.Replicas)
	})
}

// Hooks that run when a release is taken away are bound to a forced namespace as all others are, and one that
// cannot be is refused before anything is written.
func TestForcedNamespaceHoldsForHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	options := fleet.BundleDeploymentOptions{TargetNamespace: w.target}
	w.put("leaves", bundle{options: options, files: chart(map[string]string{
		"a.yaml": configMap("plain", "a", "1"), "hook.yaml": hook("ConfigMap", w.target, "default", "pre-delete"),
	})})
	w.put("reaches", bundle{options: options, files: chart(map[string]string{
		"a.yaml": configMap("unwritten", "a", "1"), "hook.yaml": hook("Namespace", w.target+"-out", `""`, "pre-delete"),
	})})
	refused := w.until("reaches", fleet.ErrApplied)
	if message := status.MessageOf(refused); !strings.Contains(message, "cluster-scoped") {
		t.Errorf("message %q", message)
	}
	if _, err := w.configMap("unwritten"); !apierrors.IsNotFound(err) {
		t.Errorf("an object of the refused bundle: %v", err)
	}
	w.until("leaves", fleet.Ready)
	w.delete("leaves")
	w.untilNoRecords("leaves")
	w.wantData(w.target, nil)
	if _, err := w.memberClients().CoreV1().ConfigMaps("default").Get(t.Context(), w.target, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the hook wrote outside of its namespace: %v", err)
	}
}
