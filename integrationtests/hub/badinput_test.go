package hub

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// deployed is what one bundle on one cluster runs before something goes wrong.
type deployed struct {
	h         *hub
	namespace string
	repo      *gitserver.Repo
	object    *fleet.GitRepo
	commit    string
	id        string
}

// deployOne starts from a GitRepo that works.
func deployOne(t *testing.T, change func(*fleet.GitRepoSpec)) *deployed {
	t.Helper()
	h := getHub(t)
	d := &deployed{h: h, namespace: h.workspace("dev")}
	d.repo, d.commit = h.repo(map[string]string{"app/one.yaml": fmt.Sprintf(configMap, "good"), "app/fleet.yaml": "defaultNamespace: one\n"})
	d.object = gitRepo(d.namespace, "app", d.repo.HTTPURL(), func(s *fleet.GitRepoSpec) {
		s.Paths = []string{"app"}
		if change != nil {
			change(s)
		}
	})
	h.create(d.object)
	wait(h, d.object, "has the commit", commitIs(d.commit))
	d.id = h.waitDeployments("app-app", d.namespace, "dev")["dev"].Spec.DeploymentID
	return d
}

// edit changes the GitRepo's spec.
func (d *deployed) edit(change func(*fleet.GitRepoSpec)) {
	d.h.t.Helper()
	wait(d.h, d.object, "is changed", func(object *fleet.GitRepo) error {
		change(&object.Spec)
		return d.h.client.Update(d.h.t.Context(), object)
	})
}

// failsWith waits for a condition that says what is wrong and checks that nothing else has changed.
func (d *deployed) failsWith(texts ...string) {
	d.h.t.Helper()
	for _, text := range texts {
		wait(d.h, d.object, "says "+text, readySays(text))
	}
	if s := d.object.Status; s.Display.Message == "" || s.GitJobStatus != "Failed" || s.Commit != d.commit {
		d.h.t.Errorf("display %+v, job %s, commit %s; want an explanation, Failed and the old commit", s.Display, s.GitJobStatus, s.Commit)
	}
	d.keepsRunning()
}

func (d *deployed) keepsRunning() {
	d.h.t.Helper()
	if now := d.h.deployments("app-app", d.namespace)["dev"].Spec.DeploymentID; now != d.id {
		d.h.t.Errorf("deployment id changed from %s to %s", d.id, now)
	}
}

// mended waits until the error is gone and the commit applied.
func (d *deployed) mended(commit string) {
	d.h.t.Helper()
	wait(d.h, d.object, "is mended", func(object *fleet.GitRepo) error {
		stalled := status.IsTrue(object.Status.Conditions, fleet.ConditionStalled)
		polling := status.IsTrue(object.Status.Conditions, fleet.ConditionGitPolling)
		if stalled || !polling || object.Status.GitJobStatus != "Current" || object.Status.Commit != commit || object.Status.Display.Error {
			return fmt.Errorf("status %+v", object.Status)
		}
		return nil
	})
}

func TestUnreachableRepository(t *testing.T) {
	d := deployOne(t, nil)
	url := d.object.Spec.Repo
	d.edit(func(s *fleet.GitRepoSpec) { s.Repo = "http://127.0.0.1:1/gone.git" })
	d.failsWith("127.0.0.1")
	d.edit(func(s *fleet.GitRepoSpec) { s.Repo = url })
	d.mended(d.commit)
}

func TestWrongBranch(t *testing.T) {
	d := deployOne(t, nil)
	d.edit(func(s *fleet.GitRepoSpec) { s.Branch = "mastre" })
	d.failsWith(`no branch "mastre"`, "master")
	if !status.IsTrue(d.object.Status.Conditions, fleet.ConditionStalled) {
		t.Error("a wrong branch is not Stalled")
	}
	d.edit(func(s *fleet.GitRepoSpec) { s.Branch = "master" })
	d.mended(d.commit)
}

func TestBadCredentials(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev")
	repo, commit := h.repo(map[string]string{"one.yaml": fmt.Sprintf(configMap, "private")})
	repo.Private("user", "right")
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "login"},
		Type:       corev1.SecretTypeBasicAuth,
		Data:       map[string][]byte{"username": []byte("user"), "password": []byte("wrong-password")},
	}
	object := gitRepo(namespace, "private", repo.HTTPURL(), func(s *fleet.GitRepoSpec) { s.ClientSecretName = "login" })
	h.create(object)
	wait(h, object, "names the missing Secret", readySays("does not exist"))
	h.create(secret)
	wait(h, object, "is refused", func(r *fleet.GitRepo) error {
		polling := status.Find(r.Status.Conditions, fleet.ConditionGitPolling)
		if polling == nil || polling.Status != corev1.ConditionFalse || strings.Contains(polling.Message, "does not exist") {
			return fmt.Errorf("GitPolling is %v", polling)
		}
		return nil
	})
	for _, condition := range object.Status.Conditions {
		if strings.Contains(condition.Message, "wrong-password") {
			t.Errorf("condition %s shows the password", condition.Type)
		}
	}
	secret.Data["password"] = []byte("right")
	if err := h.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	wait(h, object, "is let in", commitIs(commit))
}

func TestUnknownHostKey(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev")
	repo, commit := h.repo(map[string]string{"one.yaml": fmt.Sprintf(configMap, "ssh")})
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "key"},
		Type:       corev1.SecretTypeSSHAuth,
		Data:       map[string][]byte{"ssh-privatekey": h.git.ClientKey()},
	}
	object := gitRepo(namespace, "ssh", repo.SSHURL(), func(s *fleet.GitRepoSpec) { s.ClientSecretName = "key" })
	h.create(secret, object)
	wait(h, object, "shows the offered key", readySays("SHA256:"))
	if !status.IsTrue(object.Status.Conditions, fleet.ConditionStalled) {
		t.Error("an unknown host key is not Stalled")
	}
	secret.Data["known_hosts"] = []byte(h.git.KnownHosts())
	if err := h.client.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	wait(h, object, "trusts the host", commitIs(commit))
}

func TestFleetYAMLThatDoesNotParse(t *testing.T) {
	d := deployOne(t, nil)
	d.h.commit(d.repo, map[string]string{"app/fleet.yaml": "defaultNamespace: one\n helm: [\n"})
	d.failsWith("app/fleet.yaml", "line")
	mended := d.h.commit(d.repo, map[string]string{"app/fleet.yaml": "defaultNamespace: one\n"})
	d.mended(mended)
	d.keepsRunning()
}

func TestUnknownKeyWarnsAndDeploys(t *testing.T) {
	d := deployOne(t, nil)
	commit := d.h.commit(d.repo, map[string]string{"app/fleet.yaml": "defaultNamespace: one\ndefaultNamespce: two\n"})
	wait(d.h, d.object, "has the commit", commitIs(commit))
	wait(d.h, d.object, "warns", func(r *fleet.GitRepo) error {
		warnings := status.Find(r.Status.Conditions, fleet.ConditionSourceWarnings)
		if warnings == nil || warnings.Status != corev1.ConditionTrue {
			return fmt.Errorf("conditions %v", r.Status.Conditions)
		}
		for _, part := range []string{"app/fleet.yaml", "2", "defaultNamespce", `defaultNamespace`} {
			if !strings.Contains(warnings.Message, part) {
				return fmt.Errorf("warning %q does not say %q", warnings.Message, part)
			}
		}
		return nil
	})
	d.keepsRunning()
	commit = d.h.commit(d.repo, map[string]string{"app/fleet.yaml": "defaultNamespace: one\n"})
	wait(d.h, d.object, "has the mended commit", commitIs(commit))
	wait(d.h, d.object, "warns no more", func(r *fleet.GitRepo) error {
		if left := status.Find(r.Status.Conditions, fleet.ConditionSourceWarnings); left != nil {
			return fmt.Errorf("condition %v", left)
		}
		return nil
	})
}

// A path that matches nothing warns; the other paths proceed, and nothing is pruned meanwhile.
func TestPathThatMatchesNothing(t *testing.T) {
	d := deployOne(t, func(s *fleet.GitRepoSpec) { s.Paths = []string{"app", "extra"} })
	wait(d.h, d.object, "warns about the path", func(r *fleet.GitRepo) error {
		warnings := status.Find(r.Status.Conditions, fleet.ConditionSourceWarnings)
		if warnings == nil || !strings.Contains(warnings.Message, "extra") {
			return fmt.Errorf("conditions %v", r.Status.Conditions)
		}
		return nil
	})
	d.h.commit(d.repo, map[string]string{"extra/two.yaml": fmt.Sprintf(configMap, "extra")})
	d.h.waitDeployments("app-extra", d.namespace, "dev")
	if _, err := d.repo.Remove("lose a path", "app"); err != nil {
		t.Fatal(err)
	}
	head := d.h.commit(d.repo, map[string]string{"extra/two.yaml": fmt.Sprintf(configMap, "changed")})
	wait(d.h, d.object, "has the commit", commitIs(head))
	d.keepsRunning()
	d.edit(func(s *fleet.GitRepoSpec) { s.Paths = []string{"extra"} })
	d.h.waitDeployments("app-app", d.namespace)
}

// Values that do not render for one cluster hold back that cluster only.
func TestTemplateThatFailsForOneCluster(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev", "prod", "test")
	repo, commit := h.repo(map[string]string{
		"Chart.yaml":         "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
		"templates/one.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: chart}\ndata: {tier: {{ .Values.tier | quote }}}\n",
		"fleet.yaml":         "helm:\n  values:\n    tier: ${ .ClusterLabels.tier }\n",
	})
	for _, name := range []string{"dev", "test"} {
		h.setLabel(namespace, name, "tier", "gold")
	}
	object := gitRepo(namespace, "tiers", repo.HTTPURL(), nil)
	h.create(object)
	wait(h, object, "has the commit", commitIs(commit))
	h.waitDeployments("tiers", namespace, "dev", "test")
	bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "tiers"}}
	wait(h, bundle, "names the cluster and the key", func(b *fleet.Bundle) error {
		ready := status.Find(b.Status.Conditions, fleet.ConditionReady)
		if ready == nil || !strings.Contains(ready.Message, namespace+"/prod") || !strings.Contains(ready.Message, "tier") {
			return fmt.Errorf("Ready is %v", ready)
		}
		return nil
	})
	wait(h, object, "says it too", readySays("prod"))
	h.setLabel(namespace, "prod", "tier", "silver")
	h.waitDeployments("tiers", namespace, "dev", "prod", "test")
}

// A bundle of another owner is not overwritten.
func TestNameOfAnothersBundle(t *testing.T) {
	d := deployOne(t, nil)
	d.h.create(&fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "taken"}, Spec: fleet.BundleSpec{BundleDeploymentOptions: fleet.BundleDeploymentOptions{DefaultNamespace: "theirs"}}})
	d.h.commit(d.repo, map[string]string{"app/fleet.yaml": "name: taken\n"})
	d.failsWith("bundle taken already exists")
	taken := &fleet.Bundle{}
	if err := d.h.client.Get(t.Context(), client.ObjectKey{Namespace: d.namespace, Name: "taken"}, taken); err != nil {
		t.Fatal(err)
	}
	if taken.Spec.DefaultNamespace != "theirs" {
		t.Errorf("the other's bundle was overwritten: %+v", taken.Spec)
	}
	d.mended(d.h.commit(d.repo, map[string]string{"app/fleet.yaml": "defaultNamespace: one\n"}))
}
