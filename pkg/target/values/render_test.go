package values

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

var north = Cluster{
	Namespace:   "ws",
	Name:        "north",
	Labels:      map[string]string{"env": "prod", "version": "1.10", "octal": "0123", "rank": "3", "on": "yes", "truth": "true", "management.cattle.io/cluster-name": "c-1", "objectset.rio.cattle.io/hash": "x"},
	Annotations: map[string]string{"owner": "crew", "kubectl.kubernetes.io/last": "x"},
	TemplateValues: &fleet.GenericMap{Data: map[string]any{
		"zones": []any{"a", "b"}, "memory": 5000000.0, "big": "9007199254740993", "text": "it's: # fine",
	}},
}

func helm(t testing.TB, text string) *fleet.HelmOptions {
	t.Helper()
	options := &fleet.HelmOptions{}
	if err := yaml.UnmarshalStrict([]byte(text), options); err != nil {
		t.Fatal(err)
	}
	return options
}

var renderCases = map[string]renderCase{
	"plain values stay":                {helm: "values: {a: '1.10', b: 3, c: null, d: 'yes', e: {}, f: [], g: 1.5}", want: `{"a":"1.10","b":3,"c":null,"d":"yes","e":{},"f":[],"g":1.5}`},
	"names":                            {helm: "values: {a: '${ .ClusterName }.${ .ClusterNamespace }'}", want: `{"a":"north.ws"}`},
	"number":                           {helm: "values: {a: '${ .ClusterLabels.rank }'}", want: `{"a":3}`, wantRetyped: []string{"a"}},
	"boolean":                          {helm: "values: {a: '${ .ClusterLabels.truth }'}", want: `{"a":true}`, wantRetyped: []string{"a"}},
	"number that loses digits":         {helm: "values: {a: '${ .ClusterLabels.version }'}", want: `{"a":"1.10"}`},
	"quote":                            {helm: "values: {a: '${ .ClusterLabels.version | quote }', b: '${ .ClusterLabels.rank | squote }', c: '${ .ClusterLabels.truth | quote }'}", want: `{"a":"1.10","b":"3","c":"true"}`},
	"quotes of the author's":           {helm: "values: {a: '\"${ .ClusterLabels.version }\"'}", want: `{"a":"\"1.10\""}`},
	"quotes inside":                    {helm: "values: {a: '${ .ClusterName | quote } x ${ .ClusterName | quote }'}", want: `{"a":"\"north\" x \"north\""}`},
	"large number":                     {helm: "values: {a: '${ .ClusterValues.memory }', b: '${ \"1e3\" }'}", want: `{"a":5000000,"b":"1e3"}`, wantRetyped: []string{"a"}},
	"text of a shell":                  {helm: "values: {a: 'echo ${HOME}'}", wantErr: "a: template: value:1: function \"HOME\" not defined; ${ } encloses a template: where the text is meant, write ${ \"${\" } for ${ or set helm.disablePreProcess"},
	"octal":                            {helm: "values: {a: '${ .ClusterLabels.octal }'}", want: `{"a":"0123"}`},
	"yes":                              {helm: "values: {a: '${ .ClusterLabels.on }'}", want: `{"a":"yes"}`},
	"big number":                       {helm: "values: {a: '${ .ClusterValues.big }'}", want: `{"a":"9007199254740993"}`},
	"empty is null":                    {helm: "values: {a: '${ \"\" }'}", want: `{"a":null}`, wantRetyped: []string{"a"}},
	"list from JSON":                   {helm: "values: {a: '${ toJson .ClusterValues.zones }'}", want: `{"a":["a","b"]}`},
	"text with marks of YAML":          {helm: "values: {a: '${ .ClusterValues.text }'}", want: `{"a":"it's: # fine"}`},
	"quotes around":                    {helm: "values: {a: 'x: ${ .ClusterValues.text }'}", want: `{"a":"x: it's: # fine"}`},
	"several lines":                    {helm: "values: {a: \"one\\n${ .ClusterName }\\n\"}", want: `{"a":"one\nnorth\n"}`},
	"keys":                             {helm: "values: {'${ .ClusterName }': {x: 1}}", want: `{"north":{"x":1}}`},
	"two keys of one name":             {helm: "values: {'${ .ClusterName }': 1, north: 2}", wantErr: "two keys render to the same name"},
	"in lists":                         {helm: "values: {a: [{b: '${ .ClusterName }'}, '${ .ClusterName }']}", want: `{"a":[{"b":"north"},"north"]}`},
	"default":                          {helm: "values: {a: '${ get .ClusterLabels \"none\" | default \"plain\" }'}", want: `{"a":"plain"}`},
	"escaped":                          {helm: "values: {a: '${ \"${\" }HOME}'}", want: `{"a":"${HOME}"}`},
	"rancher's label is kept":          {helm: "values: {a: '${ index .ClusterLabels \"management.cattle.io/cluster-name\" }'}", want: `{"a":"c-1"}`},
	"other internal label is not":      {helm: "values: {a: '${ index .ClusterLabels \"objectset.rio.cattle.io/hash\" | default \"none\" }'}", want: `{"a":"none"}`},
	"missing key":                      {helm: "values: {a: {b: '${ .ClusterLabels.none }'}}", wantErr: "render values: a.b: "},
	"one template over two strings":    {helm: "values: {a: '${ if true }1', b: '2${ end }'}", want: `{"a":1,"b":2}`},
	"broken template":                  {helm: "values: {a: ok, b: ['${ .ClusterName ']}", wantErr: "render values: b[0]: "},
	"cluster labels":                   {helm: "values: {a: global.fleet.clusterLabels.env, b: global.fleet.clusterLabels.none, c: [global.fleet.clusterLabels.rank], d: see global.fleet.clusterLabels.env}", want: `{"a":"prod","b":"","c":["3"],"d":"see global.fleet.clusterLabels.env"}`},
	"pre-processing off":               {helm: "{disablePreProcess: true, templateValues: {x: y}, values: {a: '${ nope', b: global.fleet.clusterLabels.env}}", want: `{"a":"${ nope","b":"prod"}`},
	"template values win":              {helm: "{templateValues: {a: \"${ range .ClusterValues.zones }\\n- ${ . }\\n${ end }\", b: '\"${ .ClusterLabels.version }\"'}, values: {a: {x: 1}}}", want: `{"a":["a","b"],"b":"1.10"}`},
	"template values that are no YAML": {helm: "{templateValues: {a: '{'}}", wantErr: "templateValues.a: the rendered text is not YAML"},
	"cluster without labels":           {helm: "{templateValues: {b: '${ .ClusterName }'}, values: {a: '${ .ClusterName }'}}", cluster: &Cluster{Name: "bare"}, want: `{"a":"bare","b":"bare"}`},
	"environment":                      {helm: "values: {a: '${ env \"HOME\" }'}", wantErr: "function \"env\" not defined"},
	"clock":                            {helm: "values: {a: '${ now }'}", wantErr: "now gives something else each time"},
	"random":                           {helm: "values: {a: '${ genPrivateKey \"rsa\" }'}", wantErr: "genPrivateKey gives something else"},
	"repeat":                           {helm: "values: {a: '${ repeat 3 \"ab\" }'}", want: `{"a":"ababab"}`},
	"repeat too much":                  {helm: "values: {a: '${ repeat 1000000000 \"ab\" }'}", wantErr: "larger than"},
	"until too much":                   {helm: "values: {a: '${ until 1000000000 | len }'}", wantErr: "larger than"},
	"seq too much":                     {helm: "values: {a: '${ seq 1 1000000000 | len }'}", wantErr: "larger than"},
	"endless range":                    {helm: "values: {a: '${ range 1000000000 }${ end }'}", wantErr: "the template does too much"},
	"endless recursion":                {helm: "values: {a: '${ define \"x\" }${ template \"x\" }${ template \"x\" }${ end }${ template \"x\" }'}", wantErr: "a: template"},
	"doubling":                         {helm: "values: {a: '${ $x := \"xx\" }${ range until 40 }${ $x = print $x $x }${ end }'}", wantErr: "larger than"},
	"list doubling":                    {helm: "values: {a: '${ $x := list 1 2 }${ range until 40 }${ $x = concat $x $x }${ end }'}", wantErr: "larger than"},
	"contains itself":                  {helm: "values: {a: '${ $x := dict }${ $_ := set $x \"a\" (list $x) }${ $x }'}", wantErr: "contains itself"},
	"merged into itself":               {helm: "values: {a: '${ $x := dict }${ $_ := merge $x (dict \"a\" $x) }${ $x }'}", wantErr: "contains itself"},
	"doubling by sharing":              {helm: "values: {a: '${ $x := dict \"k\" 1 }${ range until 40 }${ $x = dict \"a\" $x \"b\" $x }${ end }${ $x }'}", wantErr: "larger than"},
	"grown after sharing":              {helm: "values: {a: '${ $c := dict }${ $p := list $c $c $c $c }${ range $i := until 4 }${ $_ := set $c (print $i) (repeat 200000 \"x\") }${ end }${ $p }'}", wantErr: "larger than"},
	"nothing printed":                  {helm: "values: {a: '${ get .ClusterValues \"none\" }b'}", want: `{"a":"b"}`},
	"replace":                          {helm: "values: {a: '${ replace \".\" \"-\" \"a.b.c\" }'}", want: `{"a":"a-b-c"}`},
	"replace too much":                 {helm: "values: {a: '${ replace \"\" (repeat 9999 \"x\") (repeat 9999 \"y\") }'}", wantErr: "larger than"},
	"regex":                            {helm: "values: {a: '${ regexReplaceAll \"[0-9]+\" \"a1b22\" \"x\" }'}", want: `{"a":"axbx"}`},
	"regex too much":                   {helm: "values: {a: '${ regexMatch (repeat 9999 \"x?\") (repeat 99999 \"x\") }'}", wantErr: "larger than"},
	"uniq":                             {helm: "values: {a: '${ list 1 1 2 | uniq | toJson }'}", want: `{"a":[1,2]}`},
	"uniq too much":                    {helm: "values: {a: '${ until 99999 | uniq | len }'}", wantErr: "larger than"},
	"long output":                      {helm: "values: {a: '${ range until 3000 }${ repeat 1000 \"x\" }${ end }'}", wantErr: "the output is longer than"},
	"keys sorted":                      {helm: "values: {a: '${ keys .ClusterLabels | first }'}", want: `{"a":"env"}`},
	"arithmetic and types":             {helm: "values: {a: '${ add 1 2 }', b: '${ round 3.14159 2 }', c: '${ ternary \"x\" \"y\" true }', d: '${ trunc 2 \"abc\" }', e: '${ list 1 2 | join \",\" }'}", want: `{"a":3,"b":3.14,"c":"x","d":"ab","e":"1,2"}`, wantRetyped: []string{"a", "b"}},
}

type renderCase struct {
	helm        string
	cluster     *Cluster
	want        string
	wantRetyped []string
	wantErr     string
}

func TestRender(t *testing.T) {
	for name, test := range renderCases {
		t.Run(name, func(t *testing.T) {
			cluster := north
			if test.cluster != nil {
				cluster = *test.cluster
			}
			template := Compile(helm(t, test.helm))
			var got Result
			for range 2 { // The second rendering uses what the first compiled, and gives the same.
				var err error
				got, err = template.Render(cluster)
				if test.wantErr != "" {
					if err == nil || !strings.Contains(err.Error(), test.wantErr) {
						t.Fatalf("got error %v, want one with %q", err, test.wantErr)
					}
					continue
				}
				if err != nil {
					t.Fatal(err)
				}
				if data, _ := json.Marshal(got.Helm.Values); string(data) != test.want {
					t.Errorf("got %s, want %s", data, test.want)
				}
				if diff := cmp.Diff(test.wantRetyped, got.Retyped); diff != "" {
					t.Errorf("retyped keys: %s", diff)
				}
			}
		})
	}
}

// What is nil and what is empty decides ids.
func TestRenderKeepsWhatIDsCount(t *testing.T) {
	labelled := Cluster{Name: "c", Labels: map[string]string{"a": "b"}}
	bare := Cluster{Name: "c", Labels: map[string]string{"x.cattle.io/y": "hidden"}}
	for name, test := range map[string]struct {
		helm    *fleet.HelmOptions
		cluster Cluster
		want    string
	}{
		"nothing, labels":    {nil, labelled, "{}"},
		"nothing, no labels": {nil, bare, "null"},
		"empty, labels":      {&fleet.HelmOptions{}, labelled, `{"values":{}}`},
		"empty, no labels":   {&fleet.HelmOptions{}, bare, "{}"},
	} {
		got, err := Compile(test.helm).Render(test.cluster)
		if err != nil {
			t.Fatal(err)
		}
		if data, _ := json.Marshal(got.Helm); string(data) != test.want {
			t.Errorf("%s: got %s, want %s", name, data, test.want)
		}
	}
}

func FuzzRender(f *testing.F) {
	for _, seed := range []string{"a", "${ .ClusterName }", "${ range 10 }${ . }${ end }", "${ toJson . }", "a: ${ printf \"%9d\" 3 }", "${ $x := dict }${ set $x \"a\" $x | len }"} {
		f.Add(seed, seed)
	}
	f.Fuzz(func(t *testing.T, text, entry string) {
		options := &fleet.HelmOptions{
			Values:         &fleet.GenericMap{Data: map[string]any{"a": text, "b": []any{map[string]any{"c": text}}}},
			TemplateValues: map[string]string{"d": entry},
		}
		first, err := Compile(options).Render(north)
		second, again := Compile(options).Render(north)
		if (err == nil) != (again == nil) {
			t.Fatalf("first %v, then %v", err, again)
		}
		if err != nil {
			if !strings.HasPrefix(err.Error(), "render values: ") {
				t.Errorf("error names no key: %v", err)
			}
			return
		}
		one, err := json.Marshal(first.Helm)
		if err != nil {
			t.Fatal(err)
		}
		if two, _ := json.Marshal(second.Helm); string(one) != string(two) {
			t.Errorf("two renderings differ:\n%s\n%s", one, two)
		}
	})
}
