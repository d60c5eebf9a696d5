package render

import (
	"strings"
	"testing"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

func TestCheck(t *testing.T) {
	template := func(text string) map[string]string {
		return map[string]string{"templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: " + text + "}\n"}
	}
	with := func(in Input, change func(*fleet.HelmOptions)) Input {
		in.Options.Helm = &fleet.HelmOptions{}
		change(in.Options.Helm)
		return in
	}
	fromMember := func(h *fleet.HelmOptions) { h.ValuesFrom = []fleet.ValuesFrom{{}} }
	for name, test := range map[string]struct {
		in      Input
		version string
		wantErr string
		want    string // of v (by version), m (by member)
	}{
		"fine":                       {in: chartOf(template("1"))},
		"value is missing":           {in: chartOf(template(`{{ required "tier!" .Values.tier }}`)), wantErr: "tier!"},
		"value is given":             {in: with(chartOf(template(`{{ required "tier!" .Values.tier | quote }}`)), func(h *fleet.HelmOptions) { h.Values = &fleet.GenericMap{Data: map[string]any{"tier": "gold"}} })},
		"value may be the member's":  {in: with(chartOf(template(`{{ required "tier!" .Values.tier }}`)), fromMember), wantErr: "tier!", want: "m"},
		"file, whatever the values":  {in: with(raw("a: [\n"), fromMember), wantErr: "a.yaml"},
		"chart, whatever the values": {in: with(chartOf(map[string]string{"Chart.yaml": "name: [\n"}), fromMember), wantErr: "Chart.yaml"},
		"template of plain files":    {in: with(bundle(template(`{{ fail "no" }}`)), fromMember), wantErr: "no", want: "m"},
		"version, wanted":            {in: chartOf(map[string]string{"Chart.yaml": chartYAML + "kubeVersion: '<1.20.0'\n"}), wantErr: "wants Kubernetes", want: "v"},
		"version, right":             {in: chartOf(map[string]string{"Chart.yaml": chartYAML + "kubeVersion: '<1.20.0'\n"}), version: "v1.19.1", want: "v"},
		"version, in a template":     {in: chartOf(template(`{{ if semverCompare ">=1.20-0" .Capabilities.KubeVersion.Version }}{{ fail "new" }}{{ end }}`)), wantErr: "new", want: "v"},
		"version, by its old name":   {in: chartOf(template(`{{ .Capabilities.KubeVersion.GitVersion | quote }}`)), want: "v"},
		"kinds":                      {in: chartOf(template(`{{ if not (.Capabilities.APIVersions.Has "x.test/v1") }}{{ fail "kinds" }}{{ end }}`)), wantErr: "kinds", want: "m"},
		"kinds, not asked":           {in: chartOf(template(`{{ if false }}{{ .Capabilities.APIVersions.Has "x" }}{{ end }}{{ fail "before" }}`)), wantErr: "before"},
		"everything":                 {in: chartOf(template(`{{ .Capabilities | toJson | quote }}`)), want: "vm"},
		"Helm's version":             {in: chartOf(template(`{{ .Capabilities.HelmVersion.Version | quote }}`))},
		"first install only":         {in: chartOf(template(`{{ if .Release.IsInstall }}{{ fail "install" }}{{ end }}`)), wantErr: "install", want: "m"},
		"upgrade only":               {in: chartOf(template(`{{ if .Release.IsUpgrade }}{{ fail "upgrade" }}{{ end }}`))},
		"address":                    {in: chartOf(template(`{{ required "host" (getHostByName "x.test") }}`)), wantErr: "host", want: "m"},
		"address, switched off":      {in: with(chartOf(template(`{{ required "host" (getHostByName "x.test") }}`)), func(h *fleet.HelmOptions) { h.DisableDNS = true }), wantErr: "host"},
		"schema":                     {in: chartOf(map[string]string{"values.schema.json": `{"required": ["x"]}`}), wantErr: "x"},
		"cluster-scoped, forced":     {in: Input{BundleID: "b", Manifest: raw("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n").Manifest, Options: fleet.BundleDeploymentOptions{TargetNamespace: "x"}}, wantErr: "cluster-scoped"},
	} {
		t.Run(name, func(t *testing.T) {
			found := Check(t.Context(), test.in, Capabilities{KubeVersion: test.version}, nil)
			if (found.Err == nil) != (test.wantErr == "") || found.Err != nil && !strings.Contains(found.Err.Error(), test.wantErr) {
				t.Errorf("error %v, want %q", found.Err, test.wantErr)
			}
			got := ""
			if found.ByVersion {
				got += "v"
			}
			if found.ByMember {
				got += "m"
			}
			if got != test.want {
				t.Errorf("depends on %q, want %q", got, test.want)
			}
			_, plain := Objects(t.Context(), test.in, Capabilities{KubeVersion: test.version}, nil)
			if (plain == nil) != (found.Err == nil) || plain != nil && plain.Error() != found.Err.Error() {
				t.Errorf("Objects says %v, Check %v", plain, found.Err)
			}
		})
	}
}
