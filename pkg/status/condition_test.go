package status

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func TestConditionTimes(t *testing.T) {
	var list []fleet.Condition
	at := func(minutes int) time.Time { return noon.Add(time.Duration(minutes) * time.Minute) }
	stamp := func(minutes int) string { return at(minutes).Format(time.RFC3339) }
	for i, step := range []struct {
		set                        fleet.Condition
		wantChange                 bool
		wantTransition, wantUpdate int
	}{
		{fleet.Condition{Type: "Ready", Status: "False", Message: "a"}, true, 0, 0},
		{fleet.Condition{Type: "Ready", Status: "False", Message: "a"}, false, 0, 0},
		{fleet.Condition{Type: "Ready", Status: "False", Message: "b"}, true, 0, 2},
		{fleet.Condition{Type: "Ready", Status: "True", Reason: "Error"}, true, 3, 3},
		{fleet.Condition{Type: "Ready", Status: "True"}, false, 3, 3},
		{fleet.Condition{Type: "Ready", Status: "Unknown", Message: "c"}, true, 5, 5},
	} {
		if changed := Set(&list, step.set, at(i)); changed != step.wantChange {
			t.Errorf("step %d: changed %v", i, changed)
		}
		got := Find(list, "Ready")
		if got.LastTransitionTime != stamp(step.wantTransition) || got.LastUpdateTime != stamp(step.wantUpdate) {
			t.Errorf("step %d: %+v", i, got)
		}
	}
	if got := list[0]; len(list) != 1 || got.Status != corev1.ConditionFalse {
		t.Errorf("Ready may not be Unknown: %+v", list)
	}
	if !Remove(&list, "Ready") || len(list) != 0 || Remove(&list, "Ready") {
		t.Error("removing")
	}
}

func TestMessagesAreCutBetweenCharacters(t *testing.T) {
	for limit := 3; limit < 12; limit++ {
		got := Cut("äöüßäöüß", limit)
		if len(got) > limit || strings.ContainsRune(got, '\uFFFD') {
			t.Errorf("limit %d: %q", limit, got)
		}
	}
	if got := Cut("short", 5); got != "short" {
		t.Errorf("%q", got)
	}
}

func TestCut(t *testing.T) {
	for name, test := range map[string]struct {
		text  string
		limit int
		want  string
	}{
		"short":             {"abc", 3, "abc"},
		"long":              {"abcdef", 5, "ab…"},
		"between letters":   {"aüüü", 6, "aü…"},
		"escaped":           {"<<<<", 24, "<<<<"},
		"escaped, too long": {"<<<<", 23, "<<<…"},
		"escape in two":     {"\n\n\n", 5, "\n…"},
		"broken":            {"a\xff\xff", 12, "a\xff…"},
		"a mark":            {"a\ufffdb", 4, "a…"},
		"nothing fits":      {"<<<", 4, "…"},
	} {
		got := Cut(test.text, test.limit)
		if got != test.want {
			t.Errorf("%s: %q", name, got)
		}
		text, err := json.Marshal(got)
		if err != nil || len(text)-2 > test.limit {
			t.Errorf("%s: %s, %v", name, text, err)
		}
		if again := Cut(got, test.limit); again != got {
			t.Errorf("%s: cut again it is %q", name, again)
		}
	}
}

func FuzzCost(f *testing.F) {
	f.Add("a<b>&\"\\\x00\x7f\u2028\xff\ufffd🚢\b\f\n")
	f.Fuzz(func(t *testing.T, text string) {
		written, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := Cost(text); got != len(written)-2 {
			t.Errorf("%q costs %d, and is written as %s", text, got, written)
		}
	})
}
