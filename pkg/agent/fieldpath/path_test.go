package fieldpath

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func decode(t *testing.T, text string) map[string]any {
	t.Helper()
	if text == "" {
		return nil
	}
	var object map[string]any
	if err := yaml.Unmarshal([]byte(text), &object); err != nil {
		t.Fatal(err)
	}
	return object
}

func parse(text string) (Path, error) {
	if text[0] == '/' {
		return ParsePointer(text)
	}
	return ParsePath(text)
}

func TestCarry(t *testing.T) {
	for name, test := range map[string]struct {
		path, to, from, before, want string
		unchanged                    bool
	}{
		"a field":                        {path: "/a/b", to: "{a: {b: 1, c: 1}}", from: "{a: {b: 2, c: 2}}", want: "{a: {b: 2, c: 1}}"},
		"a field, by JSONPath":           {path: ".a.b", to: "{a: {b: 1, c: 1}}", from: "{a: {b: 2, c: 2}}", want: "{a: {b: 2, c: 1}}"},
		"a field the member lacks":       {path: "/a/b", to: "{a: {b: 1, c: 1}}", from: "{a: {}}", want: "{a: {c: 1}}"},
		"a field that git lacks":         {path: "/a/b", to: "{a: {c: 1}}", from: "{a: {b: 2}}", want: "{a: {c: 1}}"},
		"a parent that git lacks":        {path: "/a/b", to: "{c: 1}", from: "{a: {b: 2}}", want: "{c: 1}"},
		"a parent the member lacks":      {path: "/a/b", to: "{a: {b: 1}}", from: "{}", want: "{a: {}}"},
		"an escaped name":                {path: "/a/x~1y", to: "{a: {x/y: 1}}", from: "{a: {x/y: 2}}", want: "{a: {x/y: 2}}"},
		"a quoted name":                  {path: "$.a['x.y']", to: "{a: {x.y: 1}}", from: "{a: {x.y: 2}}", want: "{a: {x.y: 2}}"},
		"a number that is a name":        {path: "/a/0", to: "{a: {'0': 1}}", from: "{a: {'0': 2}}", want: "{a: {'0': 2}}"},
		"a position":                     {path: "/a/1", to: "{a: [1, 2]}", from: "{a: [3, 4]}", want: "{a: [1, 4]}"},
		"a position in a list of names":  {path: "/a/0/v", to: "{a: [{name: x, v: 1}]}", from: "{a: [{name: y, v: 2}, {name: x, v: 3}]}", want: "{a: [{name: x, v: 3}]}"},
		"one by name":                    {path: `.a[?(@.name=="x")].v`, to: "{a: [{name: y, v: 1}, {name: x, v: 1}]}", from: "{a: [{name: x, v: 3}, {name: y, v: 2}]}", want: "{a: [{name: y, v: 1}, {name: x, v: 3}]}"},
		"all":                            {path: "{.a[*].v}", to: "{a: [{name: y, v: 1}, {name: x, v: 1}]}", from: "{a: [{name: x, v: 3}, {name: y, v: 2}]}", want: "{a: [{name: y, v: 2}, {name: x, v: 3}]}"},
		"a member that is not there":     {path: ".a[*].v", to: "{a: [{name: y, v: 1}]}", from: "{a: [{name: x, v: 3}]}", want: "{a: [{name: y}]}"},
		"text where a map was expected":  {path: "/a/b/c", to: "{a: {b: text}}", from: "{a: {b: {c: 1}}}", want: "{a: {b: text}}"},
		"unchanged in git":               {path: "/a", to: "{a: 1}", from: "{a: 2}", before: "{a: 1}", unchanged: true, want: "{a: 2}"},
		"changed in git":                 {path: "/a", to: "{a: 1}", from: "{a: 2}", before: "{a: 0}", unchanged: true, want: "{a: 1}"},
		"new in git":                     {path: "/a", to: "{a: 1}", from: "{a: 2}", before: "{}", unchanged: true, want: "{a: 1}"},
		"nothing was there before":       {path: "/a", to: "{a: 1}", from: "{a: 2}", unchanged: true, want: "{a: 1}"},
		"unchanged member of a list":     {path: "/a/0/v", to: "{a: [{name: x, v: 1}]}", from: "{a: [{name: x, v: 2}]}", before: "{a: [{name: y, v: 5}, {name: x, v: 1}]}", unchanged: true, want: "{a: [{name: x, v: 2}]}"},
		"a whole member, changed in git": {path: "/a/0", to: "{a: [{name: x, v: 1}]}", from: "{a: [{name: x, v: 2}]}", before: "{a: [{name: x, v: 5}]}", unchanged: true, want: "{a: [{name: x, v: 1}]}"},
	} {
		t.Run(name, func(t *testing.T) {
			path, err := parse(test.path)
			if err != nil {
				t.Fatal(err)
			}
			to, from, before := decode(t, test.to), decode(t, test.from), decode(t, test.before)
			var unless *Unless
			if test.unchanged {
				unless = ChangedSince(before)
			}
			path.Carry(to, from, unless)
			if diff := cmp.Diff(decode(t, test.want), to); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(decode(t, test.from), from); diff != "" {
				t.Errorf("the member's object was changed: %s", diff)
			}
		})
	}
}

func TestParseRefuses(t *testing.T) {
	for _, text := range []string{"a.b", ".", ".a..b", ".a[?(@.n>1)]", ".a[1:2]", ".a[", "..a", "$", ".a[-1]", ".a[(@.length-1)]"} {
		if path, err := ParsePath(text); err == nil {
			t.Errorf("JSONPath %q was read as %+v", text, path)
		}
	}
	for _, text := range []string{"", "a/b"} {
		if path, err := ParsePointer(text); err == nil {
			t.Errorf("pointer %q was read as %+v", text, path)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{".a.b[0][*]['x'][?(@.name==\"y\")]", "/a/~1/0", "{.a}"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, read := range []func(string) (Path, error){ParsePath, ParsePointer} {
			path, err := read(text)
			if err == nil && len(path) == 0 {
				t.Errorf("%q leads nowhere and is no error", text)
			}
			if err == nil {
				path.Carry(map[string]any{"a": []any{map[string]any{"name": "y"}}}, map[string]any{"a": []any{nil}}, nil)
			}
		}
	})
}
