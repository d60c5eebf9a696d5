package rollout

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// One resume does for what is paused and halted: the failures are accepted before anybody can end the pause.
func TestResumeOfWhatIsPausedAndHalted(t *testing.T) {
	breached := fleet.RolloutStatus{Phase: fleet.RolloutHalted, Failed: 2, ToApply: 4, Breached: true}
	paused := func(b *fleet.Bundle) { b.Spec.Paused = true }
	inRepo := func(b *fleet.Bundle) { b.Labels = map[string]string{fleet.RepoLabel: "shop"} }
	for name, test := range map[string]struct {
		repo        *fleet.GitRepo
		bundle      *fleet.Bundle
		wantPatched []string
		want        string
	}{
		"GitRepo": {
			repo:        &fleet.GitRepo{ObjectMeta: metav1.ObjectMeta{Namespace: "ws", Name: "shop"}, Spec: fleet.GitRepoSpec{Paused: true}},
			bundle:      changed(changed(bundle("a", breached), paused), inRepo),
			wantPatched: []string{"a", "shop"}, want: "3:2",
		},
		"bundle":      {bundle: changed(bundle("a", breached), paused), wantPatched: []string{"a", "a"}, want: "3:2"},
		"not planned": {bundle: changed(changed(bundle("a", breached), paused), func(b *fleet.Bundle) { b.Generation = 4 }), wantPatched: []string{"a"}},
	} {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := fleet.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			seen := viewOf(test.repo, test.bundle)
			builder := fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.bundle)
			if test.repo != nil {
				builder = builder.WithObjects(test.repo)
			}
			var patched []string
			hub := builder.WithInterceptorFuncs(interceptor.Funcs{
				Patch: func(ctx context.Context, hub client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
					patched = append(patched, object.GetName())
					return hub.Patch(ctx, object, patch, options...)
				},
			}).Build()
			if _, err := resume(t.Context(), hub, seen); err != nil || !slices.Equal(patched, test.wantPatched) {
				t.Errorf("writes %v (%v), want %v", patched, err, test.wantPatched)
			}
			var now fleet.Bundle
			if err := hub.Get(t.Context(), client.ObjectKeyFromObject(test.bundle), &now); err != nil {
				t.Fatal(err)
			}
			if got := now.Annotations[fleet.AcceptedFailuresAnnotation]; got != test.want {
				t.Errorf("accepted %q, want %q", got, test.want)
			}
		})
	}
}
