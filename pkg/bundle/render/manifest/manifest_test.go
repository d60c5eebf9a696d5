package manifest

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/google/go-cmp/cmp"
)

// wide returns the text in UTF-16, with the mark that Windows writes first.
func wide(text string, order binary.AppendByteOrder) string {
	out := order.AppendUint16(nil, 0xfeff)
	for _, unit := range utf16.Encode([]rune(text)) {
		out = order.AppendUint16(out, unit)
	}
	return string(out)
}

func TestParse(t *testing.T) {
	const one = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n"
	const two = "apiVersion: v1\nkind: Secret\nmetadata: {name: two, namespace: ns}\n"
	for name, test := range map[string]struct {
		data string
		// want holds "Kind namespace/name @document:line" of every object.
		want    []string
		wantErr string
	}{
		"empty":                   {"", nil, ""},
		"only comments":           {"# nothing\n---\n# here\n---\n\n", nil, ""},
		"null document":           {"null\n---\n~\n---\n{}\n", nil, ""},
		"one":                     {one, []string{"ConfigMap one @1:1"}, ""},
		"two":                     {one + "---\n" + two, []string{"ConfigMap one @1:1", "Secret ns/two @2:5"}, ""},
		"marker first":            {"---\n" + one, []string{"ConfigMap one @1:2"}, ""},
		"marker with a comment":   {one + "--- # next\n" + two, []string{"ConfigMap one @1:1", "Secret ns/two @2:5"}, ""},
		"marker with blanks":      {one + "---   \t\n" + two, []string{"ConfigMap one @1:1", "Secret ns/two @2:5"}, ""},
		"content after marker":    {"--- {apiVersion: v1, kind: A, metadata: {name: x}}\n--- {apiVersion: v1, kind: B, metadata: {name: z}}", []string{"A x @1:1", "B z @2:2"}, ""},
		"windows lines":           {strings.ReplaceAll(one+"---\n"+two, "\n", "\r\n"), []string{"ConfigMap one @1:1", "Secret ns/two @2:5"}, ""},
		"byte order mark":         {"\xef\xbb\xbf" + one, []string{"ConfigMap one @1:1"}, ""},
		"mark in each document":   {"\xef\xbb\xbf" + one + "---\n\xef\xbb\xbf" + two + "\xef\xbb\xbf---\n" + one, []string{"ConfigMap one @1:1", "Secret ns/two @2:5", "ConfigMap one @3:9"}, ""},
		"UTF-16":                  {wide(one+"---\n"+two, binary.LittleEndian), []string{"ConfigMap one @1:1", "Secret ns/two @2:5"}, ""},
		"UTF-16, big end first":   {wide(one+"---\n"+two, binary.BigEndian), []string{"ConfigMap one @1:1", "Secret ns/two @2:5"}, ""},
		"directive":               {"%YAML 1.1\n---\n" + one, []string{"ConfigMap one @1:3"}, ""},
		"end marker":              {one + "...\n# between\n---\n" + two, []string{"ConfigMap one @1:1", "Secret ns/two @2:7"}, ""},
		"dashes inside a text":    {"apiVersion: v1\nkind: C\nmetadata: {name: x}\ndata:\n  a: |\n    ---\n    -----BEGIN\n", []string{"C x @1:1"}, ""},
		"no line end":             {strings.TrimSuffix(one, "\n"), []string{"ConfigMap one @1:1"}, ""},
		"json":                    {`{"apiVersion": "v1", "kind": "A", "metadata": {"name": "x"}}`, []string{"A x @1:1"}, ""},
		"json with tabs":          {"{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"A\",\n\t\"metadata\": {\"name\": \"x\"}\n}\n", []string{"A x @1:1"}, ""},
		"json in a row":           {`{"apiVersion":"v1","kind":"A","metadata":{"name":"x"}} {"apiVersion":"v1","kind":"B","metadata":{"name":"z"}}`, []string{"A x @1:1", "B z @1:1"}, ""},
		"list":                    {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: A, metadata: {name: x}}\n- {apiVersion: v1, kind: B, metadata: {name: z}}\n", []string{"A x @1:1", "B z @1:1"}, ""},
		"list in a list":          {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: A, metadata: {name: x}}]}\n", []string{"A x @1:1"}, ""},
		"typed list":              {"apiVersion: v1\nkind: ConfigMapList\nitems:\n- metadata: {name: x}\n", []string{"ConfigMap x @1:1"}, ""},
		"empty list":              {"apiVersion: v1\nkind: List\nitems:\n", nil, ""},
		"custom kind called list": {"apiVersion: example.test/v1\nkind: AllowList\nmetadata: {name: x}\nitems: [a]\n", []string{"AllowList x @1:1"}, ""},
		"null metadata":           {"apiVersion: v1\nkind: A\nmetadata:\n", []string{"A  @1:1"}, ""},

		"no kind":              {one + "---\napiVersion: v1\nmetadata: {name: x}\n---\n" + two, nil, "f.yaml, document 2 (line 5): no Kubernetes object: it has no kind"},
		"no apiVersion":        {one + "---\n# note\nkind: A\n", nil, "f.yaml, document 2 (line 6): no Kubernetes object: it has no apiVersion"},
		"kind is a number":     {"apiVersion: v1\nkind: 3\n", nil, "it has no kind"},
		"a list":               {"- a\n", nil, "f.yaml, document 1 (line 1): want an object, not a list"},
		"a text":               {"hello\n", nil, "want an object, not a text"},
		"metadata is a list":   {"apiVersion: v1\nkind: A\nmetadata: []\n", nil, "metadata is a list, want an object"},
		"item without kind":    {"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1}\n", nil, "item 1 of List: no Kubernetes object: it has no kind"},
		"items is a text":      {"apiVersion: v1\nkind: List\nitems: x\n", nil, "items of List is a text, want a list"},
		"broken, right line":   {one + "---\n# c\na: b\n  c: [d\n", nil, "f.yaml, document 2 (line 6): not YAML: line 7"},
		"unknown anchor":       {"a: *x\n", nil, "document 1 (line 1): not YAML"},
		"tab as indentation":   {"a:\n\tb: c\n", nil, "not YAML: line 2: found character that cannot start any token; indent with spaces"},
		"template, not filled": {"a: {{ .Values.x }}\n", nil, "not YAML: a mapping is used as a key; quote texts"},
	} {
		t.Run(name, func(t *testing.T) {
			objects, err := Parse("f.yaml", []byte(test.data))
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Fatalf("error %v, want one with %q", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, object := range objects {
				got = append(got, Name(object)+" @"+where(object.Origin))
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("objects (-want +got):\n%s", diff)
			}
		})
	}
}

func where(origin Origin) string {
	text := strings.NewReplacer("f.yaml, document ", "", " (line ", ":", ")", "")
	return text.Replace(origin.String())
}

func TestNumbersAndWordsKeepTheirTypes(t *testing.T) {
	objects, err := Parse("f.yaml", []byte("apiVersion: v1\nkind: A\nmetadata: {name: x}\ndata: {int: 3, big: 9007199254740993, float: 1.5, yes: yes, text: \"0042\"}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"int": int64(3), "big": int64(9007199254740993), "float": 1.5, "true": true, "text": "0042"}
	if diff := cmp.Diff(want, objects[0].Object["data"]); diff != "" {
		t.Errorf("data (-want +got):\n%s", diff)
	}
}

func TestSourceComment(t *testing.T) {
	objects, err := ParseRendered("templates", []byte("---\n# Source: c/templates/a.yaml\napiVersion: v1\nkind: A\nmetadata: {name: x}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if got := objects[0].Origin.String(); got != "c/templates/a.yaml" {
		t.Errorf("origin %q", got)
	}
	_, err = ParseRendered("templates", []byte("---\n# Source: c/templates/a.yaml\napiVersion: v1\n"))
	if err == nil || !strings.HasPrefix(err.Error(), "c/templates/a.yaml: ") {
		t.Errorf("error %v does not start with the source", err)
	}
	// In a file of the repository it is a comment like any other.
	objects, err = Parse("f.yaml", []byte("# Source: c/templates/a.yaml\napiVersion: v1\nkind: A\nmetadata: {name: x}\n"))
	if err != nil || objects[0].Origin.String() != "f.yaml, document 1 (line 2)" {
		t.Errorf("origin %v, %v", objects, err)
	}
}

func TestErrorsHoldNoText(t *testing.T) {
	for _, data := range []string{"a: hunter2\nhunter2\n", "hunter2\n", "a: !!int hunter2\n", "apiVersion: v1\nkind: A\nmetadata: hunter2\n", "a: \"hunter2\n"} {
		_, err := Parse("f.yaml", []byte(data))
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: error %v, want one without the text", data, err)
		}
	}
}

// What is read, written and read again is the same, and no document is lost between others.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		"apiVersion: v1\nkind: A\nmetadata: {name: x}\n---\nkind: B\napiVersion: v1\n",
		"%YAML 1.1\n--- # c\n{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": []}\n...\n",
		"apiVersion: v1\nkind: ConfigMapList\nitems: [{data: {a: |-\n  ---\n  b}}]\n",
		"a: &a [*a]\n", "? {}\n: x\n", "\xef\xbb\xbf{}", "--- |\n x\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		objects, err := Parse("f.yaml", data)
		if err != nil {
			return
		}
		text, err := Encode(objects)
		if err != nil {
			t.Fatalf("write: %v", err)
		}
		again, err := Parse("f.yaml", text)
		if err != nil {
			t.Fatalf("read back: %v\n%s", err, text)
		}
		if len(again) != len(objects) {
			t.Fatalf("%d objects, read back %d", len(objects), len(again))
		}
		for i := range objects {
			if diff := cmp.Diff(objects[i].Object, again[i].Object); diff != "" {
				t.Errorf("object %d changed:\n%s", i, diff)
			}
		}
		const neighbour = "apiVersion: v1\nkind: Neighbour\nmetadata: {name: n}\n"
		surrounded := neighbour + "---\n" + string(data) + "\n---\n" + neighbour
		both, err := Parse("f.yaml", []byte(surrounded))
		if err == nil && len(both) != len(objects)+2 {
			t.Errorf("%d objects between two neighbours, want %d", len(both), len(objects)+2)
		}
	})
}
