package content

import (
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/util/validation"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestTrim(t *testing.T) {
	original := fleet.Bundle{Spec: fleet.BundleSpec{
		Resources: []fleet.BundleResource{{Name: "a.yaml", Content: "a: 1\n"}},
		Paused:    true,
	}}
	full, err := Summarize(original.Spec)
	if err != nil {
		t.Fatal(err)
	}
	trimmed := original.DeepCopy()
	trimmed.Annotations = map[string]string{"keep": "me"}
	shared := trimmed.Annotations
	if err := Trim(trimmed); err != nil {
		t.Fatal(err)
	}
	got, ok := SummaryOf(trimmed)
	if !ok || got != full {
		t.Errorf("summary of the trimmed bundle %+v, %v; want %+v", got, ok, full)
	}
	if trimmed.Spec.Resources != nil || trimmed.Annotations["keep"] != "me" || len(shared) != 1 {
		t.Errorf("trimmed bundle keeps %v, annotations %v, shared map %v", trimmed.Spec.Resources, trimmed.Annotations, shared)
	}
	again := trimmed.DeepCopy()
	if err := Trim(again); err != nil || !reflect.DeepEqual(again, trimmed) {
		t.Errorf("trimmed twice: %v, %v; want %v", again, err, trimmed)
	}
	for key := range trimmed.Annotations {
		if problems := validation.IsQualifiedName(key); key != "keep" && len(problems) == 0 {
			t.Errorf("anybody can give a bundle the annotation %q", key)
		}
	}
	if _, ok := SummaryOf(&original); ok {
		t.Error("a whole bundle claims to be trimmed")
	}
}

func TestSummaryFollowsEveryChange(t *testing.T) {
	base := fleet.BundleSpec{Resources: []fleet.BundleResource{{Name: "a.yaml", Content: "a: 1\n"}}}
	want, err := Summarize(base)
	if err != nil {
		t.Fatal(err)
	}
	defaulted := base
	defaulted.TargetCustomizationMode = fleet.FirstMatch
	if got, _ := Summarize(defaulted); got != want {
		t.Error("the API server's default changes the summary")
	}
	for name, change := range map[string]func(*fleet.BundleSpec){
		"file":    func(s *fleet.BundleSpec) { s.Resources = []fleet.BundleResource{{Name: "a.yaml", Content: "a: 2\n"}} },
		"option":  func(s *fleet.BundleSpec) { s.DefaultNamespace = "x" },
		"targets": func(s *fleet.BundleSpec) { s.Targets = []fleet.BundleTarget{{}} },
	} {
		changed := base
		change(&changed)
		if got, _ := Summarize(changed); got.SpecDigest == want.SpecDigest {
			t.Errorf("changing the %s leaves the digest", name)
		}
	}
}
