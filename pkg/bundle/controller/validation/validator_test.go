package validation

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/judge"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

var app = types.NamespacedName{Namespace: "ws", Name: "app"}

// chart is a bundle with one template.
func chart(template string) content.Manifest {
	return content.Manifest{Resources: []fleet.BundleResource{
		{Name: "Chart.yaml", Content: "apiVersion: v2\nname: app\nversion: 1.0.0\n"},
		{Name: "templates/a.yaml", Content: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {x: " + template + "}\n"},
	}}
}

// running is a validator with the clock and the files in the test's hands.
type running struct {
	*Validator
	now     atomic.Int64
	renders atomic.Int32
	reads   atomic.Int32
	counts  chan judge.Result
}

func start(t *testing.T, files content.Manifest, options Options) *running {
	t.Helper()
	r := &running{counts: make(chan judge.Result, 1000)}
	options.Files = func(context.Context, types.NamespacedName, string) (content.Manifest, error) {
		r.reads.Add(1)
		if files.Resources == nil {
			return files, errors.New("the bundle changed")
		}
		return files, nil
	}
	options.Count = func(result judge.Result) {
		r.renders.Add(1)
		r.counts <- result
	}
	options.Now = func() time.Time { return time.Unix(0, r.now.Load()) }
	if options.Render == nil {
		options.Render = judge.Judge
	}
	options.Log = logr.Discard()
	r.Validator = New(options)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = r.Start(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return r
}

func check(id, version string, change func(*fleet.BundleDeploymentOptions)) target.Check {
	c := target.Check{ID: target.CheckID{DeploymentID: id, KubernetesVersion: version}}
	if change != nil {
		change(&c.Options)
	}
	return c
}

func values(data map[string]any) func(*fleet.BundleDeploymentOptions) {
	return func(o *fleet.BundleDeploymentOptions) {
		o.Helm = &fleet.HelmOptions{Values: &fleet.GenericMap{Data: data}}
	}
}

// answers asks until everything is known, and writes verdicts as "id@version: message".
func (r *running) answers(t *testing.T, checks ...target.Check) string {
	t.Helper()
	for r.Ask(app, "s-1", checks); len(r.Known(app)) < len(checks); {
		select {
		case <-r.events:
		case <-time.After(time.Minute):
			t.Fatal("no answer")
		}
	}
	known := r.Known(app)
	var lines []string
	for _, check := range checks {
		verdict := known[check.ID]
		text := "ok"
		if verdict.Err != nil {
			text = verdict.Err.Error()
		}
		lines = append(lines, check.ID.DeploymentID+"@"+check.ID.KubernetesVersion+": "+text)
	}
	return strings.Join(lines, "\n")
}

func TestVerdicts(t *testing.T) {
	newer := `{{ if semverCompare "<1.30-0" .Capabilities.KubeVersion.Version }}{{ fail "too old" }}{{ end }}`
	for name, test := range map[string]struct {
		template string
		checks   []target.Check
		want     []string // parts of the lines
		results  string
	}{
		"renders": {"1", []target.Check{check("a", "v1.30.0", nil)}, []string{"a@v1.30.0: ok"}, "passed"},
		"a value for one": {`{{ required "no tier" .Values.tier | quote }}`, []target.Check{check("a", "", values(map[string]any{"tier": "x"})), check("b", "", nil)},
			[]string{"a@: ok", "b@: render bundle app: "}, "passed failed"},
		"by version": {newer, []target.Check{check("a", "v1.31.0", nil), check("a", "v1.29.0", nil), check("a", "", nil), check("a", "nonsense", nil)},
			[]string{"v1.31.0: ok", "v1.29.0: render bundle app: ", "@: ok", "nonsense: ok"}, "passed failed passed"},
		"unknown version": {`{{ if semverCompare ">1.0-0" .Capabilities.KubeVersion.Version }}{{ fail "too new" }}{{ end }}`, []target.Check{check("a", "", nil), check("a", "v1.31.0", nil)},
			[]string{"a@: ok", "too new"}, "member_decides failed"},
		"lookup":           {`{{ if not (lookup "v1" "Secret" "a" "b") }}{{ fail "no secret" }}{{ end }}`, []target.Check{check("a", "", nil)}, []string{"ok"}, "member_decides"},
		"lookup of a list": {`{{ if not (lookup "v1" "Secret" "" "") }}{{ fail "none" }}{{ end }}`, []target.Check{check("a", "", nil)}, []string{"ok"}, "member_decides"},
		"values of the member": {`{{ required "no tier" .Values.tier }}`, []target.Check{check("a", "", func(o *fleet.BundleDeploymentOptions) {
			o.Helm = &fleet.HelmOptions{ValuesFrom: []fleet.ValuesFrom{{}}}
		})}, []string{"ok"}, "member_decides"},
		"a secret in the message": {`{{ fail .Values.password }}`, []target.Check{check("a", "", values(map[string]any{"password": "correct horse"}))}, []string{"***"}, "failed"},
		"options that make no difference": {"1", []target.Check{check("a", "v1.30.0", nil), check("b", "v1.31.0", func(o *fleet.BundleDeploymentOptions) {
			o.ForceSyncGeneration, o.KeepResources, o.ServiceAccount = 4, true, "x"
			o.Helm = nil
		})}, []string{"a@v1.30.0: ok", "b@v1.31.0: ok"}, "passed"},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, chart(test.template), Options{})
			got := r.answers(t, test.checks...)
			for i, line := range strings.Split(got, "\n") {
				if !strings.Contains(line, test.want[i]) || strings.Contains(line, "horse") {
					t.Errorf("%q, want %q", line, test.want[i])
				}
			}
			counts := map[string]int{}
			for range len(r.counts) {
				counts[string(<-r.counts)]++
			}
			want := map[string]int{}
			for result := range strings.FieldsSeq(test.results) {
				want[result]++
			}
			if fmt.Sprint(counts) != fmt.Sprint(want) {
				t.Errorf("renderings: %v, want %v", counts, want)
			}
		})
	}
}

// Two hundred clusters with equal options and one version are one rendering, and what is known is known at
// once, in another order, and after the bundle asked for something else.
func TestOneRendering(t *testing.T) {
	r := start(t, chart("1"), Options{})
	r.answers(t, check("a", "v1.30.0", nil))
	r.Ask(app, "s-1", nil)
	if known := r.Known(app); known != nil {
		t.Errorf("not forgotten: %v", known)
	}
	if !r.Ask(app, "s-1", []target.Check{check("a", "v1.30.0", nil)}) || len(r.Known(app)) != 1 {
		t.Error("not remembered")
	}
	if n := r.renders.Load(); n != 1 || r.reads.Load() != 1 {
		t.Errorf("%d renderings, files read %d times", n, r.reads.Load())
	}
}

// Bundles that take longer than their limit are let through, and asked about again another time.
func TestNoEnd(t *testing.T) {
	r := start(t, chart("1"), Options{Limit: time.Millisecond, Render: func(ctx context.Context, _ judge.Job) judge.Finding {
		<-ctx.Done()
		return judge.Finding{Result: judge.GaveUp}
	}})
	if got := r.answers(t, check("a", "", nil)); got != "a@: ok" {
		t.Errorf("verdict %s", got)
	}
	r.Forget(app)
	r.answers(t, check("a", "", nil))
	if n := r.renders.Load(); n != 2 {
		t.Errorf("%d renderings: what is not known was remembered", n)
	}
}

// Nobody is waited for longer than patience, whatever stands in the queue before it.
func TestPatience(t *testing.T) {
	v := New(Options{Now: func() time.Time { return time.Unix(0, 0) }})
	v.Ask(app, "s-1", []target.Check{check("a", "", nil)})
	if len(v.Known(app)) != 0 {
		t.Error("known without rendering")
	}
	v.options.Now = func() time.Time { return time.Unix(0, 0).Add(Patience) }
	if verdict, ok := v.Known(app)[target.CheckID{DeploymentID: "a"}]; !ok || verdict.Err != nil {
		t.Errorf("verdict %v, %v", verdict, ok)
	}
}

// Files that cannot be read, or are those of another version, are not asked for again and again, and hold the
// bundle up no longer than patience.
func TestFilesThatChanged(t *testing.T) {
	r := start(t, content.Manifest{}, Options{})
	asked := check("a", "", nil)
	r.Ask(app, "s-1", []target.Check{asked})
	for deadline := time.After(time.Minute); r.reads.Load() == 0; {
		select {
		case <-r.events:
			t.Fatal("told of nothing")
		case <-deadline:
			t.Fatal("nobody read the files")
		default:
			runtime.Gosched()
		}
	}
	if len(r.Known(app)) != 0 {
		t.Error("verdicts about files that are not there")
	}
	r.now.Add(int64(Patience))
	if verdict, known := r.Known(app)[asked.ID]; !known || verdict.Err != nil || r.reads.Load() != 1 || r.renders.Load() != 0 {
		t.Errorf("verdict %v, %v; %d reads", verdict, known, r.reads.Load())
	}
}

// Every option that rendering looks at is part of the key: it changes what Check finds or gives.
func TestKeys(t *testing.T) {
	plain, err := keyOf("app", "s-1", fleet.BundleDeploymentOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*fleet.BundleDeploymentOptions){
		"defaultNamespace": func(o *fleet.BundleDeploymentOptions) { o.DefaultNamespace = "x" },
		"targetNamespace":  func(o *fleet.BundleDeploymentOptions) { o.TargetNamespace = "x" },
		"kustomize":        func(o *fleet.BundleDeploymentOptions) { o.Kustomize = &fleet.KustomizeOptions{Dir: "x"} },
		"overlays":         func(o *fleet.BundleDeploymentOptions) { o.YAML = &fleet.YAMLOptions{Overlays: []string{"x"}} },
		"chart":            func(o *fleet.BundleDeploymentOptions) { o.Helm = &fleet.HelmOptions{Chart: "x"} },
		"release":          func(o *fleet.BundleDeploymentOptions) { o.Helm = &fleet.HelmOptions{ReleaseName: "x"} },
		"values":           values(map[string]any{"a": 1}),
		"schema":           func(o *fleet.BundleDeploymentOptions) { o.Helm = &fleet.HelmOptions{SkipSchemaValidation: true} },
	} {
		var options fleet.BundleDeploymentOptions
		change(&options)
		if got, _ := keyOf("app", "s-1", options); got == plain {
			t.Errorf("%s makes no difference", name)
		}
	}
	for _, other := range [][2]string{{"other", "s-1"}, {"app", "s-2"}} {
		if got, _ := keyOf(other[0], other[1], fleet.BundleDeploymentOptions{}); got == plain {
			t.Errorf("%v makes no difference", other)
		}
	}
}

func BenchmarkJudge(b *testing.B) {
	job := judge.Job{Input: render.Input{BundleID: "app", ManifestID: "s-1", Manifest: chart("1")}, KubernetesVersion: "v1.30.0"}
	for b.Loop() {
		if judge.Judge(b.Context(), job).Result != judge.Passed {
			b.Fatal("does not render")
		}
	}
}
