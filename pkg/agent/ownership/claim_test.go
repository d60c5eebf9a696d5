package ownership

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func live(labels, annotations map[string]string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion("v1")
	o.SetKind("ConfigMap")
	o.SetName("x")
	o.SetNamespace("n")
	o.SetLabels(labels)
	o.SetAnnotations(annotations)
	return o
}

func TestCheck(t *testing.T) {
	ours := Claim{SetID: "default-a", SetHash: "aaaa", Release: "a", ReleaseNamespace: "n"}
	hash := "objectset.rio.cattle.io/hash"
	helm := func(name string) map[string]string {
		return map[string]string{manifest.ReleaseNameAnnotation: name, manifest.ReleaseNamespaceAnnotation: "n"}
	}
	marked := func(set, release string) *unstructured.Unstructured {
		return live(map[string]string{hash: set}, helm(release))
	}
	taking, recorded, yielding, alone := ours, ours, ours, ours
	alone.Abandoned = func(namespace, release string) bool { return namespace == "n" && release == "gone" }
	ourMarks := helm("a")
	ourMarks["objectset.rio.cattle.io/id"] = "default-a"
	heir := alone
	heir.TakeOwnership = true
	taking.TakeOwnership = true
	recorded.Recorded = map[manifest.Key]bool{manifest.KeyOf(live(nil, nil)): true}
	yielding.Yields = func(set string, _ manifest.Key) bool { return set == "bbbb" }
	for name, test := range map[string]struct {
		claim      Claim
		live       *unstructured.Unstructured
		wantReason string
		wantText   string
	}{
		"our mark":                             {ours, live(map[string]string{hash: "aaaa"}, nil), "", ""},
		"another's mark":                       {ours, live(map[string]string{hash: "bbbb"}, map[string]string{"objectset.rio.cattle.io/id": "default-b"}), ReasonOwnedByOther, "default-b"},
		"another's mark, taking ownership":     {taking, live(map[string]string{hash: "bbbb"}, nil), ReasonOwnedByOther, "bbbb"},
		"another's mark that yields":           {yielding, live(map[string]string{hash: "bbbb"}, nil), "", ""},
		"a third's mark that does not":         {yielding, live(map[string]string{hash: "cccc"}, nil), ReasonOwnedByOther, "cccc"},
		"our Helm release":                     {ours, live(nil, helm("a")), "", ""},
		"another Helm release":                 {ours, live(nil, helm("b")), ReasonOwnedByOther, "n/b"},
		"another Helm release, taking":         {taking, live(nil, helm("b")), ReasonOwnedByOther, "n/b"},
		"nobody's":                             {ours, live(nil, nil), ReasonNotOwned, "takeOwnership"},
		"nobody's, taking ownership":           {taking, live(nil, nil), "", ""},
		"nobody's, but of an earlier revision": {recorded, live(nil, nil), "", ""},
		"left by who is gone":                  {alone, marked("bbbb", "gone"), ReasonNotOwned, "which is gone; set helm.takeOwnership"},
		"left by who is gone, taking":          {heir, marked("bbbb", "gone"), "", ""},
		"of who is there, taking":              {heir, marked("bbbb", "there"), ReasonOwnedByOther, "n/there"},
		"another's mark without a release":     {heir, live(map[string]string{hash: "bbbb"}, nil), ReasonOwnedByOther, "bbbb"},
		"our mark, changed":                    {ours, live(map[string]string{hash: "bbbb"}, ourMarks), "", ""},
		"made by us before":                    {ours, live(nil, map[string]string{"objectset.rio.cattle.io/id": "default-a"}), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := test.claim.Check(test.live)
			if test.wantReason == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if fault.ReasonOf(err) != test.wantReason || fault.ClassOf(err) != fault.Stalled || !strings.Contains(err.Error(), test.wantText) {
				t.Errorf("got %v, want reason %s with %q", err, test.wantReason, test.wantText)
			}
		})
	}
}

func TestCheckHook(t *testing.T) {
	claim := Claim{SetHash: "aaaa", Release: "a", ReleaseNamespace: "n"}
	if err := claim.CheckHook(live(nil, nil)); err != nil {
		t.Errorf("a hook without marks: %v", err)
	}
	if err := claim.CheckHook(live(map[string]string{"objectset.rio.cattle.io/hash": "bbbb"}, nil)); err == nil {
		t.Error("a hook may replace another bundle's object")
	}
}

func TestOwner(t *testing.T) {
	hash, id := "objectset.rio.cattle.io/hash", "objectset.rio.cattle.io/id"
	helm := map[string]string{manifest.ReleaseNameAnnotation: "a", manifest.ReleaseNamespaceAnnotation: "n"}
	both := map[string]string{id: "default-a", manifest.ReleaseNameAnnotation: "a", manifest.ReleaseNamespaceAnnotation: "n"}
	for name, test := range map[string]struct {
		live *unstructured.Unstructured
		want string
	}{
		"nobody":         {live(nil, nil), ""},
		"a release":      {live(nil, helm), "Helm release n/a"},
		"a set":          {live(map[string]string{hash: "aaaa"}, both), "bundle set default-a (release n/a)"},
		"a set, by hash": {live(map[string]string{hash: "aaaa"}, nil), "bundle set aaaa (release unknown)"},
		"an id alone":    {live(nil, map[string]string{id: "default-a"}), ""},
	} {
		if got := Owner(test.live); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
