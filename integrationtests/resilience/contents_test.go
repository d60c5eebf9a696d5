package resilience

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/ociserver"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// A bundle with two versions of a chart of 6 MiB, picked by customization, deploys to members; nothing on the hub is
// beyond the limit for objects.
func TestLargeCharts(t *testing.T) {
	files := map[string]string{"app/fleet.yaml": "defaultNamespace: default\nhelm: {releaseName: large, chart: ./charts/v1}\n" +
		"targetCustomizations:\n- name: prod\n  clusterSelector: {matchLabels: {env: prod}}\n  helm: {chart: ./charts/v2}\n"}
	sums := map[string]string{}
	for i, version := range []string{"v1", "v2"} {
		sums[version] = largeChart(files, version, uint64(i))
	}
	w := newWorld(t, "large", files)
	w.runsVersions(sums)
	w.checkSizes()
}

// largeChart adds a chart to files, 6 MiB of them compressed, and returns what its ConfigMap will hold: the
// digest of all of them.
func largeChart(files map[string]string, version string, seed uint64) string {
	random := rand.New(rand.NewPCG(seed, seed))
	chart := "app/charts/" + version + "/"
	var all strings.Builder
	for i := range 6 {
		noise := make([]byte, 1<<20)
		for j := range noise {
			noise[j] = byte(random.Uint32())
		}
		text := base64.StdEncoding.EncodeToString(noise)
		files[fmt.Sprintf("%sdata/%d.txt", chart, i)] = text
		all.WriteString(text)
	}
	files[chart+"Chart.yaml"] = fmt.Sprintf("apiVersion: v2\nname: large\nversion: %s.0.0\n", version[1:])
	files[chart+"templates/one.yaml"] = `{{ $all := list }}{{ range $path, $data := .Files.Glob "data/*" }}{{ $all = append $all (toString $data) }}{{ end -}}
apiVersion: v1
kind: ConfigMap
metadata: {name: large}
data: {value: "{{ .Chart.Version }} {{ join "" $all | sha256sum }}"}
`
	return fmt.Sprintf("%s.0.0 %x", version[1:], sha256.Sum256([]byte(all.String())))
}

// runsVersions waits until every member runs its version.
func (w *world) runsVersions(sums map[string]string) {
	w.t.Helper()
	for _, member := range w.Members {
		version := "v1"
		if member.Labels["env"] == "prod" {
			version = "v2"
		}
		w.has(member, "large", sums[version])
	}
}

// checkSizes wants chunks on the hub, and no object that holds contents or comes from a bundle to be too large.
func (w *world) checkSizes() {
	w.t.Helper()
	kinds := []schema.GroupVersionKind{corev1.SchemeGroupVersion.WithKind("Secret")}
	for _, kind := range []string{"GitRepo", "Bundle", "BundleDeployment", "Content"} {
		kinds = append(kinds, fleet.GroupVersion.WithKind(kind))
	}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(kind)
		if err := w.Client.List(w.t.Context(), list); err != nil {
			w.t.Fatal(err)
		}
		chunks, largest := 0, 0
		for _, item := range list.Items {
			data, err := json.Marshal(item.Object)
			if err != nil {
				w.t.Fatal(err)
			}
			largest = max(largest, len(data))
			if len(data) > content.MaxObject {
				w.t.Errorf("%s %s/%s has %d bytes", kind.Kind, item.GetNamespace(), item.GetName(), len(data))
			}
			if item.GetLabels()[fleet.ChunkOfLabel] != "" {
				chunks++
			}
		}
		w.t.Logf("%d of kind %s, the largest has %d bytes", len(list.Items), kind.Kind, largest)
		if kind.Kind == "Content" && chunks < 16 { // two times 6 MiB
			w.t.Errorf("there are %d chunks", chunks)
		}
	}
}

// Agents read contents from a registry, as somebody who may not write to it.
func TestBundleInARegistry(t *testing.T) {
	writer := ociserver.User{Name: "writer", Password: "password-of-writer"}
	reader := ociserver.User{Name: "reader", Password: "password-of-reader", ReadOnly: true}
	oci := ociserver.Start(writer, reader)
	t.Cleanup(oci.Close)
	t.Cleanup(func() { awaitNoArtifacts(t, shared.Get(t).Client) })
	secret := oci.Secret(stack.Workspace, "registry", writer, &reader)
	if err := shared.Get(t).Client.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, "stored", map[string]string{"one.yaml": value("stored-one", "first")}, func(s *fleet.GitRepoSpec) { s.OCIRegistrySecret = secret.Name })
	var deployments fleet.BundleDeploymentList
	if err := w.Client.List(t.Context(), &deployments, client.MatchingLabels{fleet.RepoLabel: w.name}); err != nil {
		t.Fatal(err)
	}
	for _, deployment := range deployments.Items {
		if !deployment.Spec.OCIContents {
			t.Errorf("%s/%s does not read from the registry", deployment.Namespace, deployment.Name)
		}
	}
	w.awaitReady(w.commit(map[string]string{"one.yaml": value("stored-one", "second")}))
	for _, member := range w.Members {
		w.has(member, "stored-one", "second")
	}
}

// awaitNoArtifacts waits until the hub has removed all contents from registries, by the Secrets that tell of them: without
// the registry it would go on to try, and to complain, while other tests look at what it writes.
func awaitNoArtifacts(t *testing.T, hub client.Client) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 2*time.Minute)
	defer cancel()
	err := stack.Await(ctx, "the registry is empty", func(ctx context.Context) error {
		var left corev1.SecretList
		if err := hub.List(ctx, &left, client.MatchingLabels{fleet.InternalSecretLabel: "true"}); err != nil {
			return err
		}
		for i := range left.Items {
			if left.Items[i].Type == fleet.OCIStorageSecretType {
				return fmt.Errorf("Secret %s/%s is there", left.Items[i].Namespace, left.Items[i].Name)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Manifests that do not fit into a release's record leave what runs alone, and the deployment says why.
func TestManifestsBeyondARecord(t *testing.T) {
	w := newWorld(t, "record", map[string]string{"one.yaml": value("record-one", "first")})
	large := map[string]string{"one.yaml": value("record-one", "second")}
	random := rand.New(rand.NewPCG(1, 1))
	for i := range 3 {
		noise := make([]byte, 512<<10)
		for j := range noise {
			noise[j] = byte(random.Uint32())
		}
		large[fmt.Sprintf("large%d.yaml", i)] = value(fmt.Sprintf("record-large%d", i), base64.StdEncoding.EncodeToString(noise))
	}
	w.commit(large)
	for _, member := range w.Members {
		w.deployment("record", member, "says what is too large", func(d *fleet.BundleDeployment) error {
			if status.Of(d) != fleet.ErrApplied || !strings.Contains(status.MessageOf(d), "split the bundle") {
				return fmt.Errorf("state %s, message %q", status.Of(d), status.MessageOf(d))
			}
			return nil
		})
		w.has(member, "record-one", "first")
	}
	w.awaitReady(w.commit(map[string]string{"large0.yaml": "", "large1.yaml": ""}))
	for _, member := range w.Members {
		w.has(member, "record-one", "second")
	}
}
