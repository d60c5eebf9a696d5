package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

func strategy(kind, name string, apply fleet.ApplyOptions) fleet.ManifestConfig {
	return fleet.ManifestConfig{Resource: fleet.ResourceSelector{Kind: kind, Name: name}, Apply: &apply}
}

// wantData waits until a config map holds the data.
func (w *world) wantData(name string, want map[string]string) {
	w.t.Helper()
	kubetest.Eventually(w.t, "config map "+name, func(context.Context) error {
		found, err := w.configMap(name)
		if err != nil {
			return err
		}
		if diff := cmp.Diff(want, found.Data); diff != "" {
			return fmt.Errorf("data differ: %s", diff)
		}
		return nil
	})
}

// Objects that are only created are left as they are found; those that are only looked at are never written or
// deleted, and are reported all the same.
func TestCreateOnlyAndReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	maps := w.memberClients().CoreV1().ConfigMaps(w.target)
	create := func(name string) {
		t.Helper()
		if _, err := maps.Create(t.Context(), newConfigMap(name, "a", "theirs"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	create("found")
	options := fleet.BundleDeploymentOptions{
		CorrectDrift: &fleet.CorrectDrift{Enabled: true},
		ManifestConfigs: []fleet.ManifestConfig{
			strategy("ConfigMap", "made", fleet.ApplyOptions{Strategy: fleet.ApplyCreateOnly}),
			strategy("ConfigMap", "found", fleet.ApplyOptions{Strategy: fleet.ApplyCreateOnly}),
			strategy("ConfigMap", "looked", fleet.ApplyOptions{Strategy: fleet.ApplyReadOnly}),
		},
	}
	files := func(value string) map[string]string {
		var all []string
		for _, name := range []string{"usual", "made", "found", "looked"} {
			all = append(all, configMap(name, "a", value))
		}
		return map[string]string{"a.yaml": strings.Join(all, "---\n")}
	}
	w.put("leave", bundle{files: files("1"), options: options})
	missing := w.untilTrue("leave", "misses the object that is only looked at", func(d *fleet.BundleDeployment) bool {
		return len(d.Status.ModifiedStatus) == 1 && d.Status.ModifiedStatus[0].Name == "looked" && d.Status.ModifiedStatus[0].Create
	})
	if missing.Status.ResourceCounts.Ready != 3 {
		t.Errorf("counts %+v", missing.Status.ResourceCounts)
	}
	create("looked")
	w.until("leave", fleet.Ready)
	w.patchConfigMap("made", `{"data":{"b":"theirs"}}`)

	w.put("leave", bundle{files: files("2"), options: options})
	w.until("leave", fleet.Ready)
	w.wantData("usual", map[string]string{"a": "2"})
	w.wantData("made", map[string]string{"a": "1", "b": "theirs"})
	w.wantData("found", map[string]string{"a": "theirs"})
	w.wantData("looked", map[string]string{"a": "theirs"})
	if found, err := w.configMap("found"); err != nil || found.Labels[fleet.SetHashLabel] != "" {
		t.Errorf("the object that was found was marked: %v, %v", found.Labels, err)
	}

	w.delete("leave")
	w.untilNoRecords("leave")
	w.untilGone("made")
	w.wantData("found", map[string]string{"a": "theirs"})
	w.wantData("looked", map[string]string{"a": "theirs"})
}

// Fields that are left to the member keep its values, and are no drift; one that is left only until git changes
// it follows git then. Without force, another manager's field is refused by its name.
func TestIgnoredFields(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	options := fleet.BundleDeploymentOptions{Apply: &fleet.ApplyOptions{
		Strategy: fleet.ApplyServerSide,
		IgnoreFields: []fleet.IgnoreFields{
			{Condition: fleet.OnMemberPresent, JSONPointers: []string{"/data/once"}},
			{Condition: fleet.OnMemberChange, JSONPaths: []string{".data.shared"}},
		},
	}}
	files := func(value string) map[string]string {
		return map[string]string{"a.yaml": configMap("fields", "once", value, "shared", value, "ours", value)}
	}
	w.put("fields", bundle{files: files("1"), options: options})
	w.until("fields", fleet.Ready)
	w.patchConfigMap("fields", `{"data":{"once":"x","shared":"x","ours":"x"}}`)
	// The strategy alone asks for correction.
	w.wantData("fields", map[string]string{"once": "x", "shared": "x", "ours": "1"})
	w.until("fields", fleet.Ready)

	// Without memory, everything is compared anew.
	w.stop()
	w.start()
	w.put("fields", bundle{files: map[string]string{"a.yaml": configMap("fields", "once", "2", "shared", "1", "ours", "2")}, options: options})
	w.wantData("fields", map[string]string{"once": "x", "shared": "x", "ours": "2"})
	w.put("fields", bundle{files: files("3"), options: options})
	w.wantData("fields", map[string]string{"once": "x", "shared": "3", "ours": "3"})
	w.until("fields", fleet.Ready)

	gentle := false
	options.Apply = &fleet.ApplyOptions{Force: &gentle}
	w.put("fields", bundle{files: files("4"), options: options})
	refused := w.until("fields", fleet.ErrApplied)
	if message := status.MessageOf(refused); !strings.Contains(message, "somebody") || !strings.Contains(message, ".data.once") {
		t.Errorf("message %q", message)
	}
}
