package stream

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func bundle() *fleet.Bundle {
	b := &fleet.Bundle{}
	b.SetGroupVersionKind(fleet.GroupVersion.WithKind("Bundle"))
	b.Name = "b"
	b.Spec.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: map[string]any{
		"big": int64(123456789012), "text": "1.10", "none": nil, "list": []any{int64(1), "---"},
	}}}
	b.Spec.Resources = []fleet.BundleResource{{Name: "a.yaml", Content: "a: 1\n---\nb: |\n  ---\n"}}
	b.Status.ObservedGeneration = 3
	return b
}

// What is written is read back the same: numbers keep their digits, texts stay texts.
func TestRoundTrip(t *testing.T) {
	text, err := Encode(bundle(), bundle())
	if err != nil {
		t.Fatal(err)
	}
	for _, forbidden := range []string{"status", "creationTimestamp"} {
		if strings.Contains(string(text), forbidden) {
			t.Errorf("the stream holds %s:\n%s", forbidden, text)
		}
	}
	objects, err := Decode("stream", text)
	if err != nil {
		t.Fatal(err)
	}
	if len(objects.Bundles) != 2 {
		t.Fatalf("%d bundles, want 2", len(objects.Bundles))
	}
	again, err := Encode(objects.Bundles[0], objects.Bundles[1])
	if err != nil {
		t.Fatal(err)
	}
	if string(again) != string(text) {
		t.Errorf("written again:\n%s\nwant\n%s", again, text)
	}
	if !strings.Contains(string(text), "big: 123456789012\n") || !strings.Contains(string(text), `text: "1.10"`) {
		t.Errorf("values changed:\n%s", text)
	}
}

// The short way to YAML writes what the usual one does.
func TestEncodeIsUsual(t *testing.T) {
	texts := []string{"", "~", "null", "yes", "on", "1.10", "0x1f", "1e3", "1_000", "2020-01-01", "=", "<<", "-", "- a", "a: b", "a #b", " a", "a ", "a\n", "a\n\n", "\ta", "\x01", "\u2028", "é", "\U0001F600", "'", "\"", "{a}", "[", "&a", "*a", "!a", "%a", "@a", "`a", "a\r\nb", "---", "...", strings.Repeat("long text ", 30), ".inf", ".nan", "0b1", "0o7", "12:30:45", "<&>"}
	object := map[string]any{"ints": []any{0, -1, int64(1) << 62}, "floats": []any{0.0, 1.5, -2.25, 1e6, 1e20, 1e21, 1e-7, 123456789.125}, "others": []any{nil, true, []any{}, map[string]any{}}}
	for i, text := range texts {
		object[text] = text
		object[fmt.Sprint("list", i)] = []any{text, map[string]any{text: text}}
	}
	tree, err := Tree(object)
	if err != nil {
		t.Fatal(err)
	}
	want, err := yaml.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Encode(object)
	if err != nil || string(got) != "---\n"+string(want) {
		t.Errorf("got\n%s\n%v, want\n%s", got, err, want)
	}
}

func TestDecodeSaysWhere(t *testing.T) {
	for name, test := range map[string]struct{ text, want string }{
		"not YAML":   {"a: b\n---\n{", "f.yaml, document 1 (line 1)"},
		"wrong type": {"\napiVersion: fleet.cattle.io/v1alpha1\nkind: Bundle\nspec: 4\n", "f.yaml, document 1 (line 2): Bundle: "},
	} {
		if _, err := Decode("f.yaml", []byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	unknown, err := Decode("f.yaml", []byte("apiVersion: fleet.cattle.io/v1alpha1\nkind: GitRepo\nmetadata: {name: a}\nspec: {pathes: [a], Paths: [b], branch: main}\n"))
	if err != nil || len(unknown.GitRepos) != 1 || unknown.GitRepos[0].Spec.Branch != "main" || unknown.GitRepos[0].Spec.Paths != nil {
		t.Fatalf("unknown fields: %+v, %v", unknown.GitRepos, err)
	}
	want := []string{`f.yaml, document 1 (line 1): GitRepo: unknown field "spec.Paths" is ignored`, `f.yaml, document 1 (line 1): GitRepo: unknown field "spec.pathes" is ignored`}
	if slices.Sort(unknown.Warnings); !slices.Equal(unknown.Warnings, want) {
		t.Errorf("warnings %q, want %q", unknown.Warnings, want)
	}
	objects, err := Decode("f.yaml", []byte("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"))
	if err != nil || len(objects.Others) != 1 || objects.Others[0] != "Pod" {
		t.Errorf("objects %+v, %v", objects, err)
	}
}
