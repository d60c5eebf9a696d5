package synced

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
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

func TestMemory(t *testing.T) {
	memory := New()
	desired, found := live(nil, nil), live(map[string]string{"a": "b"}, nil)
	if memory.Knows("s", desired, found) {
		t.Error("an empty memory knows something")
	}
	memory.Remember("s", desired, found, true)
	if !memory.Knows("s", desired, found) {
		t.Error("forgot at once")
	}
	if memory.Knows("s", desired, live(map[string]string{"a": "c"}, nil)) || memory.Knows("t", desired, found) {
		t.Error("knows what it was not told")
	}
	memory.Retain("s", map[manifest.Key]bool{})
	if memory.Knows("s", desired, found) {
		t.Error("kept what is not wanted any more")
	}
}

// What was in sync by rules alone is in sync for those who have the same rules, and for nobody else.
func TestExcepted(t *testing.T) {
	memory := New()
	desired, found := live(nil, nil), live(map[string]string{"a": "b"}, nil)
	memory.Except("s", desired, "rules")
	memory.Remember("s", desired, found, false)
	if !memory.Excepted("s", desired, found, "") || !memory.Excepted("s", desired, found, "rules") {
		t.Error("in sync without rules does not count")
	}
	memory.Except("s", desired, "rules")
	if !memory.Excepted("s", desired, found, "rules") || memory.Excepted("s", desired, found, "") || memory.Excepted("s", desired, found, "others") {
		t.Error("in sync by rules counts for others, or not for their own")
	}
	if memory.Excepted("s", desired, live(map[string]string{"a": "c"}, nil), "rules") {
		t.Error("another look is excepted")
	}
	memory.Drop("s", manifest.KeyOf(desired))
	if memory.Knows("s", desired, found) {
		t.Error("knows what was dropped")
	}
}

// That an object was applied stays known when it is seen in sync later, until its set is forgotten.
func TestApplied(t *testing.T) {
	memory := New()
	desired := live(nil, nil)
	memory.Remember("s", desired, desired, false)
	if memory.Applied("s", desired) {
		t.Error("what was only seen counts as applied")
	}
	memory.Remember("s", desired, desired, true)
	memory.Remember("s", desired, desired, false)
	if !memory.Applied("s", desired) || memory.Applied("t", desired) {
		t.Error("does not know what was applied, or of which set")
	}
	memory.Forget("s")
	if memory.Applied("s", desired) {
		t.Error("kept a set that was forgotten")
	}
}

func TestHasRun(t *testing.T) {
	job := func(ttl bool, image string) *unstructured.Unstructured {
		o := live(nil, nil)
		o.SetAPIVersion("batch/v1")
		o.SetKind("Job")
		spec := map[string]any{"image": image}
		if ttl {
			spec["ttlSecondsAfterFinished"] = int64(0)
		}
		o.Object["spec"] = spec
		return o
	}
	memory := New()
	for _, kept := range []bool{true, false} {
		memory.Remember("s", job(kept, "a"), job(kept, "a"), false)
		if memory.HasRun("s", job(kept, "a")) {
			t.Error("what was only seen has run")
		}
		memory.Remember("s", job(kept, "a"), job(kept, "a"), true)
		if got := memory.HasRun("s", job(kept, "a")); got != kept {
			t.Errorf("goes by itself: %v, has run: %v", kept, got)
		}
	}
	memory.Remember("s", job(true, "a"), job(true, "a"), true)
	if memory.HasRun("s", job(true, "b")) {
		t.Error("another Job has run")
	}
}
