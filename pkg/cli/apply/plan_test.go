package apply

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func stored(change func(*fleet.Bundle)) *fleet.Bundle {
	b := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{
		Namespace: "ws", Name: "b", Labels: map[string]string{fleet.RepoLabel: "shop", fleet.CommitLabel: "one"}}}
	b.Spec.Resources = []fleet.BundleResource{{Name: "a.yaml", Content: "a: 1\n"}}
	if change != nil {
		change(b)
	}
	return b
}

func TestDecide(t *testing.T) {
	for name, test := range map[string]struct {
		wanted, current *fleet.Bundle
		want            action
		wantErr         string
	}{
		"new":  {wanted: stored(nil), want: create},
		"same": {wanted: stored(nil), current: stored(nil), want: unchanged},
		"what the server adds": {
			wanted: stored(nil), want: unchanged,
			current: stored(func(b *fleet.Bundle) {
				b.Spec.TargetCustomizationMode = fleet.FirstMatch
				b.Annotations = map[string]string{"other": "x"}
				b.Finalizers = []string{"f"}
			}),
		},
		"another commit": {wanted: stored(func(b *fleet.Bundle) { b.Labels[fleet.CommitLabel] = "two" }), current: stored(nil), want: unchanged},
		"file":           {wanted: stored(func(b *fleet.Bundle) { b.Spec.Resources[0].Content = "a: 2\n" }), current: stored(nil), want: update},
		"option":         {wanted: stored(func(b *fleet.Bundle) { b.Spec.Paused = true }), current: stored(nil), want: update},
		"label":          {wanted: stored(func(b *fleet.Bundle) { b.Labels["a"] = "b" }), current: stored(nil), want: update},
		"label gone":     {wanted: stored(nil), current: stored(func(b *fleet.Bundle) { b.Labels["a"] = "b" }), want: update},
		"annotation":     {wanted: stored(func(b *fleet.Bundle) { b.Annotations = map[string]string{"a": "b"} }), current: stored(nil), want: update},
		"another repo's": {
			wanted:  stored(nil),
			current: stored(func(b *fleet.Bundle) { b.Labels[fleet.RepoLabel] = "other" }),
			wantErr: "belongs to the GitRepo other",
		},
		"a HelmOp's": {
			wanted:  stored(func(b *fleet.Bundle) { b.Labels = nil }),
			current: stored(func(b *fleet.Bundle) { b.Labels = map[string]string{fleet.HelmOpLabel: "op"} }),
			wantErr: "belongs to the HelmOp op",
		},
		"somebody's": {
			wanted:  stored(nil),
			current: stored(func(b *fleet.Bundle) { b.Labels = nil }),
			wantErr: "made by hand",
		},
		"being deleted": {
			wanted:  stored(nil),
			current: stored(func(b *fleet.Bundle) { b.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }),
			wantErr: "still being deleted",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decide(test.wanted, test.current)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want %q", err, test.wantErr)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("%s, %v, want %s", got, err, test.want)
			}
		})
	}
}
