package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/ociserver"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/registry"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// noise is text of so many bytes that hardly compresses.
func noise(seed uint64, size int) string {
	random := rand.New(rand.NewPCG(seed, seed))
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return string(data)
}

func bigBundle(seed uint64, size int) map[string]string {
	return map[string]string{
		"fleet.yaml": "defaultNamespace: big\n", "one.yaml": fmt.Sprintf(configMap, fmt.Sprint(seed)), "blob.bin": noise(seed, size),
	}
}

// load reads contents as an agent does.
func (h *hub) load(id string) (content.Manifest, error) {
	get := func(name string) (*fleet.Content, error) {
		object := &fleet.Content{}
		return object, h.client.Get(h.t.Context(), types.NamespacedName{Name: name}, object)
	}
	head, err := get(id)
	if err != nil {
		return content.Manifest{}, err
	}
	return content.Load(head, get)
}

// chunks lists the chunks of a Content, and checks that nothing about it is too large.
func (h *hub) chunks(id string) []fleet.Content {
	h.t.Helper()
	var list fleet.ContentList
	if err := h.client.List(h.t.Context(), &list, client.MatchingLabels{fleet.ChunkOfLabel: id}); err != nil {
		h.t.Fatal(err)
	}
	for i := range list.Items {
		h.checkSize(&list.Items[i])
	}
	return list.Items
}

func (h *hub) checkSize(object client.Object) {
	h.t.Helper()
	data, err := json.Marshal(object)
	if err != nil {
		h.t.Fatal(err)
	}
	if len(data) > content.MaxObject {
		h.t.Errorf("%T %s has %d bytes", object, object.GetName(), len(data))
	}
}

// A bundle that no object can hold is stored in chunks; what somebody deletes of it comes back, and all of it
// goes with its last user.
func TestBigBundle(t *testing.T) {
	t.Parallel()
	h := getHub(t)
	namespace := h.workspace("dev")
	repo, first := h.repo(bigBundle(1, 3<<20))
	object := gitRepo(namespace, "big", repo.HTTPURL(), nil)
	h.create(object)
	wait(h, object, "has the commit", commitIs(first))
	deployment := h.waitDeployments("big", namespace, "dev")["dev"]
	id, _, _ := strings.Cut(deployment.Spec.DeploymentID, ":")
	if deployment.Spec.OCIContents || deployment.Labels[fleet.ContentLabel] != id {
		t.Errorf("the deployment says: registry %v, content %s, want %s", deployment.Spec.OCIContents, deployment.Labels[fleet.ContentLabel], id)
	}
	stored := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "big"}}
	wait(h, stored, "names its contents", func(b *fleet.Bundle) error {
		if b.Spec.ContentsID != id || b.Spec.ContentsStorage != fleet.ContentsOnHub || len(b.Spec.Resources) > 0 {
			return fmt.Errorf("contents %q in %q, %d files, want %s", b.Spec.ContentsID, b.Spec.ContentsStorage, len(b.Spec.Resources), id)
		}
		return nil
	})
	h.checkSize(stored)
	manifest, err := h.load(id)
	if err != nil || len(manifest.Resources) != 2 {
		t.Fatalf("contents have %d files, %v", len(manifest.Resources), err)
	}
	chunks := h.chunks(id)
	if len(chunks) < 4 {
		t.Fatalf("3 MiB are in %d chunks", len(chunks))
	}
	if err := h.client.Delete(t.Context(), &chunks[1]); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the chunk is there again", func(context.Context) error {
		_, err := h.load(id)
		return err
	})
	head := &fleet.Content{ObjectMeta: metav1.ObjectMeta{Name: id}}
	if err := h.client.Delete(t.Context(), head); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the head is there again", func(ctx context.Context) error {
		if _, err := h.load(id); err != nil {
			return errors.Join(err, h.client.Get(ctx, client.ObjectKeyFromObject(object), object), fmt.Errorf("conditions %v", object.Status.Conditions))
		}
		return nil
	})
	wait(h, stored, "is content again", func(b *fleet.Bundle) error {
		if ready := status.Find(b.Status.Conditions, fleet.ConditionReady); ready != nil && ready.Reason == fleet.ReasonContentsMissing {
			return errors.New(ready.Message)
		}
		return nil
	})

	second := h.commit(repo, bigBundle(2, 3<<20))
	wait(h, object, "has the second commit", commitIs(second))
	kubetest.Eventually(t, "the deployment has new contents", func(context.Context) error {
		now := h.waitDeployments("big", namespace, "dev")["dev"]
		if next, _, _ := strings.Cut(now.Spec.DeploymentID, ":"); next == id {
			return errors.New("it is the old id")
		}
		return nil
	})
	if err := h.client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	var left []string
	kubetest.Eventually(t, "the contents are collected", func(ctx context.Context) error {
		left = nil
		var all fleet.ContentList
		if err := h.client.List(ctx, &all); err != nil {
			return err
		}
		for i := range all.Items {
			if strings.HasPrefix(all.Items[i].Name, id) {
				left = append(left, all.Items[i].Name)
			}
		}
		if len(left) > 0 {
			return fmt.Errorf("left: %v", left)
		}
		return nil
	})
}

var (
	writer = ociserver.User{Name: "writer", Password: "password-of-writer"}
	reader = ociserver.User{Name: "reader", Password: "password-of-reader", ReadOnly: true}
)

// Contents of a GitRepo with a registry go there; members get what they need to read them and nothing to
// write; what is deployed no longer is removed from the registry, also when that was away meanwhile.
func TestContentsInRegistry(t *testing.T) {
	h := getHub(t)
	oci := ociserver.Start(writer, reader)
	t.Cleanup(oci.Close)
	namespace := h.workspace("dev", "prod")
	// Files that no other test has: theirs would be on the hub under the same name.
	repo, first := h.repo(map[string]string{"one.yaml": fmt.Sprintf(configMap, "first in a registry")})
	object := gitRepo(namespace, "oci", repo.HTTPURL(), func(s *fleet.GitRepoSpec) { s.OCIRegistrySecret = "registry" })
	h.create(object)
	wait(h, object, "says what is missing", readySays("Secret "+namespace+"/registry"))

	wrong := oci.Secret(namespace, "registry", ociserver.User{Name: writer.Name, Password: "wrong-password"}, &reader)
	h.create(wrong)
	wait(h, object, "says that the password is wrong", func(r *fleet.GitRepo) error {
		if err := readySays("check user name and password")(r); err != nil {
			return err
		}
		return readySays(oci.Reference())(r)
	})
	for _, condition := range object.Status.Conditions {
		if strings.Contains(condition.Message, "wrong-password") {
			t.Errorf("condition %s holds a password", condition.Type)
		}
	}
	if !strings.Contains(status.Find(object.Status.Conditions, fleet.ConditionReady).Message, namespace+"/oci") {
		t.Errorf("the message does not name the bundle: %v", object.Status.Conditions)
	}
	right := oci.Secret(namespace, "registry", writer, &reader)
	right.ResourceVersion = wrong.ResourceVersion
	if err := h.client.Update(t.Context(), right); err != nil {
		t.Fatal(err)
	}
	wait(h, object, "has the commit", commitIs(first))

	deployments := h.waitDeployments("oci", namespace, "dev", "prod")
	dev := deployments["dev"]
	id, _, _ := strings.Cut(dev.Spec.DeploymentID, ":")
	if !dev.Spec.OCIContents || dev.Labels[fleet.ContentLabel] != "" {
		t.Errorf("the deployment says: registry %v, content %q", dev.Spec.OCIContents, dev.Labels[fleet.ContentLabel])
	}
	stored := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "oci"}}
	wait(h, stored, "says where its contents are", func(b *fleet.Bundle) error {
		want := "oci://" + oci.Reference() + "/" + id + ":latest"
		if b.Spec.ContentsID != id || b.Spec.ContentsStorage != "" || len(b.Spec.Resources) > 0 || b.Status.OCIReference != want {
			return fmt.Errorf("contents %q, %d files, reference %q, want %s", b.Spec.ContentsID, len(b.Spec.Resources), b.Status.OCIReference, want)
		}
		return nil
	})
	if err := h.client.Get(t.Context(), types.NamespacedName{Name: id}, &fleet.Content{}); !apierrors.IsNotFound(err) {
		t.Errorf("the contents are on the hub too: %v", err)
	}
	h.checkAccess(dev.Namespace, id, reader)
	h.checkAccess(namespace, id, writer)
	var copied corev1.Secret
	if err := h.client.Get(t.Context(), types.NamespacedName{Namespace: dev.Namespace, Name: id}, &copied); err != nil {
		t.Fatal(err)
	}
	for key, value := range copied.Data {
		if strings.Contains(string(value), writer.Password) {
			t.Errorf("the member's Secret has the password for writing as %s", key)
		}
	}
	if err := h.client.Delete(t.Context(), &copied); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "a member's access comes back", func(ctx context.Context) error {
		return h.client.Get(ctx, client.ObjectKeyFromObject(&copied), &corev1.Secret{})
	})
	for _, name := range []string{"dev", "prod"} {
		var secrets corev1.SecretList
		if err := h.client.List(t.Context(), &secrets, client.InNamespace(deployments[name].Namespace)); err != nil {
			t.Fatal(err)
		}
		for i := range secrets.Items {
			if secrets.Items[i].Name == "registry" {
				t.Errorf("the Secret of the source is in the namespace of cluster %s", name)
			}
		}
	}

	second := h.commit(repo, map[string]string{"one.yaml": fmt.Sprintf(configMap, "second in a registry")})
	wait(h, object, "has the second commit", commitIs(second))
	oci.SetAway(true)
	if err := h.client.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	h.waitDeployments("oci", namespace)
	kubetest.Eventually(t, "the bundle goes while the registry is away, and an event tells what stays", func(ctx context.Context) error {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return errors.Join(errors.New("the GitRepo is there"), err)
		}
		var events corev1.EventList
		if err := h.client.List(ctx, &events, client.InNamespace(namespace)); err != nil {
			return err
		}
		for i := range events.Items {
			if event := events.Items[i]; event.Reason == "FailedToDeleteOCIArtifact" && event.InvolvedObject.Name == "oci" && strings.Contains(event.Message, oci.Reference()) {
				return nil
			}
		}
		return fmt.Errorf("no such event among %d", len(events.Items))
	})
	oci.SetAway(false)
	access, err := registry.AccessOf(&corev1.Secret{Type: right.Type, Data: dataOf(oci.Secret(namespace, "x", writer, nil))})
	if err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "the artifact and the Secrets are gone", func(ctx context.Context) error {
		if _, err := (registry.Client{}).Pull(ctx, access, id); fault.ReasonOf(err) != registry.ReasonNotFound {
			return errors.Join(errors.New("the artifact is there"), err)
		}
		for _, where := range []string{namespace, dev.Namespace} {
			if err := h.client.Get(ctx, types.NamespacedName{Namespace: where, Name: id}, &corev1.Secret{}); !apierrors.IsNotFound(err) {
				return errors.Join(fmt.Errorf("the Secret in %s is there", where), err)
			}
		}
		return nil
	})
}

// dataOf returns what the API server makes of a new Secret.
func dataOf(secret *corev1.Secret) map[string][]byte {
	data := map[string][]byte{}
	for key, value := range secret.StringData {
		data[key] = []byte(value)
	}
	return data
}

// checkAccess pulls contents with what the Secret in a namespace has for its reader.
func (h *hub) checkAccess(namespace, id string, want ociserver.User) {
	h.t.Helper()
	var secret corev1.Secret
	if err := h.client.Get(h.t.Context(), types.NamespacedName{Namespace: namespace, Name: id}, &secret); err != nil {
		h.t.Fatal(err)
	}
	access, err := registry.AccessOf(&secret)
	if err != nil {
		h.t.Fatal(err)
	}
	if access.Username != want.Name || secret.Labels[fleet.InternalSecretLabel] != "true" {
		h.t.Errorf("the Secret in %s is for %s, labels %v", namespace, access.Username, secret.Labels)
	}
	manifest, err := registry.Client{}.Pull(h.t.Context(), access, id)
	if err != nil || len(manifest.Resources) != 1 {
		h.t.Errorf("pull with the Secret in %s: %d files, %v", namespace, len(manifest.Resources), err)
	}
}

// A file that is too large is an error that names it, in the GitRepo's condition.
func TestFileTooLarge(t *testing.T) {
	h := getHub(t)
	namespace := h.workspace("dev")
	repo, _ := h.repo(map[string]string{"app/one.yaml": fmt.Sprintf(configMap, "x"), "app/huge.bin": strings.Repeat("x", 30<<20)})
	object := gitRepo(namespace, "huge", repo.HTTPURL(), func(s *fleet.GitRepoSpec) { s.Paths = []string{"app"} })
	h.create(object)
	wait(h, object, "names the file", readySays("app/huge.bin has 30 MiB; a file in a bundle may have at most 24 MiB"))
}
