package hub

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

func bundleNamed(namespace, name string) *fleet.Bundle {
	return &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
}

// handMade is a bundle with one ConfigMap that somebody makes without a GitRepo.
func handMade(namespace, name string, target fleet.ClusterTarget) *fleet.Bundle {
	bundle := bundleNamed(namespace, name)
	bundle.Labels = map[string]string{"made-in": namespace}
	bundle.Spec.Resources = []fleet.BundleResource{{Name: "one.yaml", Content: fmt.Sprintf(configMap, namespace)}}
	bundle.Spec.Targets = []fleet.BundleTarget{{ClusterTarget: target}}
	return bundle
}

// bundleSays waits for a bundle that is not ready and says why.
func bundleSays(texts ...string) func(*fleet.Bundle) error {
	return func(bundle *fleet.Bundle) error {
		ready := status.Find(bundle.Status.Conditions, fleet.ConditionReady)
		for _, text := range texts {
			if ready == nil || ready.Status != corev1.ConditionFalse || !strings.Contains(ready.Message, text) {
				return fmt.Errorf("Ready is %v, want it to say %q", ready, text)
			}
		}
		return nil
	}
}

// Secrets with values that somebody deletes come back: the bundle's and each deployment's.
func TestDeletedValuesComeBack(t *testing.T) {
	t.Parallel()
	h := getHub(t)
	namespace := h.workspace("dev")
	repo, commit := h.repo(twoBundles())
	object := gitRepo(namespace, "values", repo.HTTPURL(), func(s *fleet.GitRepoSpec) {
		s.Paths, s.PollingInterval = []string{"apps"}, &fleet.Duration{Duration: time.Hour}
	})
	h.create(object)
	wait(h, object, "has the commit", commitIs(commit))
	deployment := h.waitDeployments("values-apps-chart", namespace, "dev")["dev"]
	for what, key := range map[string]client.ObjectKey{
		"deployment": client.ObjectKeyFromObject(&deployment),
		"bundle":     {Namespace: namespace, Name: "values-apps-chart"},
	} {
		secret := &corev1.Secret{}
		if err := h.client.Get(t.Context(), key, secret); err != nil {
			t.Fatal(err)
		}
		uid, data := secret.UID, secret.Data
		if err := h.client.Delete(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		wait(h, secret, "of the "+what+" is back", func(s *corev1.Secret) error {
			if s.UID == uid || fmt.Sprint(s.Data) != fmt.Sprint(data) {
				return errors.New("it is not, or with other data")
			}
			return nil
		})
	}
	wait(h, bundleNamed(namespace, "values-apps-chart"), "waits no more", func(b *fleet.Bundle) error {
		if ready := status.Find(b.Status.Conditions, fleet.ConditionReady); ready == nil || ready.Reason != "" {
			return fmt.Errorf("Ready is %v", ready)
		}
		return nil
	})
}

// Values that somebody overwrites are put right when an agent complains of them.
func TestOverwrittenValuesComeBack(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev")
	bundle := handMade(namespace, "overwritten", fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}})
	bundle.Spec.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{"of": "mine"}}}
	h.create(bundle)
	deployment := h.waitDeployments("overwritten", namespace, "dev")["dev"]
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
	wait(h, secret, "is overwritten", func(s *corev1.Secret) error {
		s.Data["values"] = []byte(`{"of":"theirs"}`)
		return h.client.Update(t.Context(), s)
	})
	before := deployment.DeepCopy()
	deployment.Status.Conditions = []fleet.Condition{{Type: fleet.ConditionDeployed, Status: corev1.ConditionUnknown, Reason: "WaitingForValues", Message: "other values"}}
	if err := h.client.Status().Patch(t.Context(), &deployment, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	wait(h, secret, "is right again", func(s *corev1.Secret) error {
		if got := string(s.Data["values"]); got != `{"of":"mine"}` {
			return fmt.Errorf("values are %s", got)
		}
		return nil
	})
}

// A Content that somebody deletes while deployments refer to it comes back.
func TestDeletedContentComesBack(t *testing.T) {
	d := deployOne(t, nil)
	name, _, _ := strings.Cut(d.id, ":")
	content := &fleet.Content{ObjectMeta: metav1.ObjectMeta{Name: name}}
	wait(d.h, content, "exists", func(*fleet.Content) error { return nil })
	uid := content.UID
	if err := d.h.client.Delete(t.Context(), content); err != nil {
		t.Fatal(err)
	}
	wait(d.h, content, "is back", func(c *fleet.Content) error {
		if c.UID == uid {
			return errors.New("it is the old one")
		}
		return nil
	})
}

// Two workspaces whose bundles of one name reach the same cluster: the second is told whose the deployment
// is, and takes nothing.
func TestNameTakenByAnotherWorkspace(t *testing.T) {
	h := getHub(t)
	first, second := h.workspace("dev"), h.workspace()
	everywhere := fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}}
	withValues := handMade(first, "same", everywhere)
	withValues.Spec.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{"of": "first"}}}
	h.create(withValues)
	deployment := h.waitDeployments("same", first, "dev")["dev"]
	intruder := handMade(second, "same", everywhere)
	intruder.Spec.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{"of": "second"}}}
	h.create(&fleet.BundleNamespaceMapping{
		ObjectMeta:        metav1.ObjectMeta{Namespace: second, Name: "reach"},
		BundleSelector:    &metav1.LabelSelector{},
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": first}},
	}, intruder)
	wait(h, intruder, "names the owner", bundleSays("belongs to", first+"/same"))
	now := &fleet.BundleDeployment{}
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(&deployment), now); err != nil {
		t.Fatal(err)
	}
	if now.Labels[fleet.BundleNamespaceLabel] != first || now.Spec.DeploymentID != deployment.Spec.DeploymentID {
		t.Errorf("the deployment was taken: labels %v", now.Labels)
	}
	values := &corev1.Secret{}
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(&deployment), values); err != nil {
		t.Fatal(err)
	}
	if got := string(values.Data["values"]); got != `{"of":"first"}` {
		t.Errorf("values of the deployment are %s", got)
	}
	if err := h.client.Delete(t.Context(), withValues); err != nil {
		t.Fatal(err)
	}
	h.waitDeployments("same", second, "dev")
}

// A cluster group whose selector cannot be read holds back the bundles that refer to it, which keep what
// they have, and no others.
func TestBrokenClusterGroup(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev")
	group := &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "all"}}
	group.Spec.Selector = &metav1.LabelSelector{}
	others := handMade(namespace, "others", fleet.ClusterTarget{ClusterSelector: &metav1.LabelSelector{}})
	grouped := handMade(namespace, "grouped", fleet.ClusterTarget{ClusterGroup: "all"})
	h.create(group, others, grouped)
	h.waitDeployments("grouped", namespace, "dev")
	h.waitDeployments("others", namespace, "dev")
	broken := group.DeepCopy()
	broken.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Nearly", Values: []string{"dev"}}}}
	if err := h.client.Patch(t.Context(), broken, client.MergeFrom(group)); err != nil {
		t.Fatal(err)
	}
	wait(h, grouped, "names the group", bundleSays(namespace+"/all", "Nearly"))
	h.waitDeployments("grouped", namespace, "dev")
	touched := others.DeepCopy()
	wait(h, touched, "is planned again", func(b *fleet.Bundle) error {
		if b.Spec.DefaultNamespace == "" {
			b.Spec.DefaultNamespace = "elsewhere"
			return errors.Join(errors.New("edited"), h.client.Update(t.Context(), b))
		}
		if b.Status.ObservedGeneration != b.Generation {
			return errors.New("not yet")
		}
		return nil
	})
	if ready := status.Find(touched.Status.Conditions, fleet.ConditionReady); ready == nil || ready.Reason == fleet.ReasonError {
		t.Errorf("a bundle that refers to no group says %v", ready)
	}
	if err := h.client.Patch(t.Context(), group, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"selector":{"matchExpressions":null}}}`))); err != nil {
		t.Fatal(err)
	}
	wait(h, grouped, "is mended", func(b *fleet.Bundle) error {
		if ready := status.Find(b.Status.Conditions, fleet.ConditionReady); ready == nil || ready.Reason == fleet.ReasonError {
			return fmt.Errorf("Ready is %v", ready)
		}
		return nil
	})
}

// What only a person can mend, and mends elsewhere than in the source, is tried again.
func TestSecretForChartsAppears(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev")
	repo, commit := h.repo(map[string]string{"one.yaml": fmt.Sprintf(configMap, "x")})
	object := gitRepo(namespace, "login", repo.HTTPURL(), func(s *fleet.GitRepoSpec) { s.HelmSecretName, s.DisablePolling = "charts", true })
	h.create(object)
	wait(h, object, "names the missing Secret", readySays("does not exist"))
	h.create(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "charts"},
		Type:       corev1.SecretTypeBasicAuth,
		Data:       map[string][]byte{"username": []byte("user"), "password": []byte("secret")},
	})
	wait(h, object, "has the commit", commitIs(commit))
}

// A Bundle that is deleted as soon as it was made comes back, although no look is due.
func TestBundleDeletedAtOnce(t *testing.T) {
	t.Parallel()
	d := deployOne(t, func(s *fleet.GitRepoSpec) { s.DisablePolling = true })
	bundle := bundleNamed(d.namespace, "app-app")
	for range 2 {
		wait(d.h, bundle, "exists", func(b *fleet.Bundle) error {
			if !b.DeletionTimestamp.IsZero() {
				return errors.New("it is being deleted")
			}
			return nil
		})
		uid := bundle.UID
		if err := d.h.client.Delete(t.Context(), bundle); err != nil {
			t.Fatal(err)
		}
		wait(d.h, bundle, "is made again", func(b *fleet.Bundle) error {
			if b.UID == uid {
				return errors.New("it is the old one")
			}
			return nil
		})
	}
}

// Two GitRepos that want one bundle at the same time: one has it whole, the other says whose it is.
func TestTwoReposMakeOneBundle(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev")
	var objects []*fleet.GitRepo
	for _, name := range []string{"left", "right"} {
		files := twoBundles()
		files["apps/chart/fleet.yaml"] = fmt.Sprintf("name: shared\nhelm:\n  values:\n    env: %s\n", name)
		repo, _ := h.repo(files)
		objects = append(objects, gitRepo(namespace, name, repo.HTTPURL(), func(s *fleet.GitRepoSpec) { s.Paths = []string{"apps/chart"} }))
	}
	h.create(objects[0], objects[1])
	deployment := h.waitDeployments("shared", namespace, "dev")["dev"]
	owner := deployment.Labels[fleet.RepoLabel]
	for _, object := range objects {
		if object.Name != owner {
			wait(h, object, "names the owner", readySays("GitRepo "+owner))
		}
	}
	kubetest.Eventually(t, "the owner's values are used", func(ctx ctxT) error {
		values := &corev1.Secret{}
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(&deployment), values); err != nil {
			return err
		}
		if got := string(values.Data["values"]); got != fmt.Sprintf(`{"env":%q}`, owner) {
			return fmt.Errorf("values are %s, and the owner is %s", got, owner)
		}
		return nil
	})
}

// A GitRepo is not Ready while a Bundle of its newest commit is not deployed.
func TestGitRepoIsReadyLast(t *testing.T) {
	d := deployOne(t, nil)
	dev := d.h.deployments("app-app", d.namespace)["dev"]
	d.reports(&dev)
	wait(d.h, d.object, "is ready", isReady)
	head := d.h.commit(d.repo, map[string]string{"app/one.yaml": fmt.Sprintf(configMap, "second")})
	// Nobody reports the new deployment as applied, so that Ready can never be true with the new commit.
	wait(d.h, d.object, "has the commit", func(r *fleet.GitRepo) error {
		if r.Status.Commit == head && isReady(r) == nil {
			t.Fatalf("Ready with a commit that no cluster runs: %+v", r.Status)
		}
		return commitIs(head)(r)
	})
	kubetest.Eventually(t, "the deployment is changed", func(ctxT) error {
		if now := d.h.deployments("app-app", d.namespace)["dev"]; now.Spec.DeploymentID == d.id {
			return errors.New("not yet")
		}
		return nil
	})
	dev = d.h.deployments("app-app", d.namespace)["dev"]
	d.reports(&dev)
	wait(d.h, d.object, "is ready again", isReady)
}

// reports writes what an agent would that has deployed everything.
func (d *deployed) reports(deployment *fleet.BundleDeployment) {
	d.h.t.Helper()
	before := deployment.DeepCopy()
	deployment.Status.AppliedDeploymentID, deployment.Status.Release = deployment.Spec.DeploymentID, "one/app:1"
	deployment.Status.Ready, deployment.Status.NonModified = true, true
	if err := d.h.client.Status().Patch(d.h.t.Context(), deployment, client.MergeFrom(before)); err != nil {
		d.h.t.Fatal(err)
	}
}

func isReady(repo *fleet.GitRepo) error {
	if !status.IsTrue(repo.Status.Conditions, fleet.ConditionReady) {
		return fmt.Errorf("conditions %v", repo.Status.Conditions)
	}
	return nil
}

// A folder that moves to where its Bundle cannot be stored takes nothing away from where it was.
func TestNothingIsPrunedWhileSomethingFails(t *testing.T) {
	d := deployOne(t, func(s *fleet.GitRepoSpec) { s.Paths = []string{"app", "new"} })
	d.h.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "app-new-chart"}})
	d.h.commit(d.repo, map[string]string{"app/fleet.yaml": "name: moved\n", "new/chart/one.yaml": fmt.Sprintf(configMap, "x"), "new/chart/fleet.yaml": "helm: {values: {a: b}}\n"})
	d.failsWith("Secret of its own name")
	if err := d.h.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "app-new-chart"}}); err != nil {
		t.Fatal(err)
	}
	d.h.waitDeployments("app-app", d.namespace)
	d.h.waitDeployments("moved", d.namespace, "dev")
}
