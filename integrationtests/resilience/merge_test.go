package resilience

import (
	"context"
	"errors"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// Merging is switched on and off under bundles that run, while an agent and the controller are killed: the same
// objects stay, a commit reaches them in either mode, and a folder that goes takes only its own away.
func TestMergingIsSwitched(t *testing.T) {
	names := []string{"a", "b", "c"}
	files := map[string]string{}
	for _, name := range names {
		files[name+"/fleet.yaml"], files[name+"/one.yaml"] = "{}\n", value("merged-"+name, "0")
	}
	w := newWorld(t, "merged", files)
	uids := map[string]types.UID{}
	for _, member := range w.Members {
		for _, name := range names {
			uids[member.Name+name] = w.has(member, "merged-"+name, "0").UID
		}
	}
	change := func(text string) {
		t.Helper()
		for _, name := range names {
			files[name+"/one.yaml"] = value("merged-"+name, text)
		}
		w.awaitReady(w.commit(files))
		for _, member := range w.Members {
			for _, name := range names {
				if uid := w.has(member, "merged-"+name, text).UID; uid != uids[member.Name+name] {
					t.Errorf("change %s: %s on %s was made anew", text, name, member.Name)
				}
			}
		}
	}
	w.merges(fleet.MergePerRepo)
	w.kill(0)
	w.kill(1)
	w.delivered(fleet.MergePerRepo, len(names))
	change("1")

	last, err := w.repo.Remove("without c", "c")
	if err != nil {
		t.Fatal(err)
	}
	w.awaitReady(last)
	for _, member := range w.Members {
		w.gone(member, "merged-c")
	}
	names = names[:2]
	delete(files, "c/fleet.yaml")
	delete(files, "c/one.yaml")
	w.merges(fleet.MergePerPath)
	w.delivered(fleet.MergePerPath, len(names))
	change("2")
}

// merges says how the bundles of the repository are to be delivered.
func (w *world) merges(mode fleet.MergeMode) {
	w.t.Helper()
	patch := fmt.Sprintf(`{"spec":{"merge":{"mode":%q}}}`, mode)
	if err := w.Client.Patch(w.t.Context(), w.object, client.RawPatch(types.MergePatchType, []byte(patch))); err != nil {
		w.t.Fatal(err)
	}
}

// delivered waits until every member's deployments are carried as a mode has it, and by nothing else.
func (w *world) delivered(mode fleet.MergeMode, deployments int) {
	w.t.Helper()
	want := deployments
	if mode == fleet.MergePerRepo {
		want = 1
	}
	kubetest.Eventually(w.t, fmt.Sprintf("deployments are delivered %s", mode), func(ctx context.Context) error {
		for _, member := range w.Members {
			var list fleet.BundleDeploymentList
			if err := w.Client.List(ctx, &list, client.InNamespace(member.Namespace), client.MatchingLabels{fleet.RepoLabel: w.name}); err != nil {
				return err
			}
			if all := len(merge.ExplodeAll(list.Items)); len(list.Items) != want || all != deployments {
				return fmt.Errorf("%s has %d deployments in %d objects", member.Name, all, len(list.Items))
			}
		}
		return nil
	})
}

// gone waits until a ConfigMap of a member is gone.
func (w *world) gone(member *stack.Member, name string) {
	w.t.Helper()
	kubetest.Eventually(w.t, fmt.Sprintf("%s has no %s", member.Name, name), func(ctx context.Context) error {
		err := member.Client.Get(ctx, client.ObjectKey{Namespace: "default", Name: name}, &corev1.ConfigMap{})
		if err == nil {
			err = errors.New("it is there")
		}
		return client.IgnoreNotFound(err)
	})
}
