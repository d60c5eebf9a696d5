package bench

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/bench/report"
)

// layouts are the folders that are read, by what they are called in the figures.
var layouts = []struct {
	name  string
	write func(b *testing.B, root string, folders int)
}{
	{"a chart each", writeCharts},
	{"mixed kinds", writeMixed},
}

// measureApply prints the bundles of many folders with `fleet apply -o -`, as a program of its own that
// knows no cluster, next to a plain read of the same files.
func measureApply(b *testing.B, folders, runs int) {
	b.Helper()
	fleet := filepath.Join(b.TempDir(), "fleet")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", fleet, "github.com/fairlead-dev/fairlead/cmd/fleet")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build fleet: %v\n%s", err, out)
	}
	for _, layout := range layouts {
		root := b.TempDir()
		layout.write(b, root, folders)
		measureLayout(b, fleet, root, fmt.Sprintf("%d folders of %s", folders, layout.name), folders, runs)
	}
}

func measureLayout(b *testing.B, fleet, root, name string, folders, runs int) {
	b.Helper()
	var applies, reads, starts []time.Duration
	for range runs {
		began := time.Now()
		readAll(b, root)
		reads = append(reads, time.Since(began))

		began = time.Now()
		runFleet(b, fleet, root, "version", "--client")
		starts = append(starts, time.Since(began))

		began = time.Now()
		out := runFleet(b, fleet, root, "apply", "shop", "apps", "-o", "-")
		applies = append(applies, time.Since(began))
		if got := bytes.Count(out, []byte("kind: Bundle\n")); got != folders {
			b.Fatalf("%d bundles of %d folders", got, folders)
		}
	}
	median, longest := report.Spread(applies)
	read, _ := report.Spread(reads)
	start, _ := report.Spread(starts)
	const chapter = "fleet apply -o -, offline"
	sheet.Add(
		report.Figure{Chapter: chapter, Name: name + ", median", Value: median, Unit: report.Seconds, Floor: &read},
		report.Figure{Chapter: chapter, Name: fmt.Sprintf("%s, longest of %d", name, runs), Value: longest, Unit: report.Seconds, Floor: &read},
		report.Figure{Chapter: chapter, Name: name + ", of it the start of the program", Value: start, Unit: report.Seconds},
	)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median, "s-median")
	b.ReportMetric(median/read, "×floor")
}

// writeFiles writes files below a folder.
func writeFiles(b *testing.B, folder string, files map[string]string) {
	b.Helper()
	for name, content := range files {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			b.Fatal(err)
		}
	}
}

// writeMixed makes a third each of charts, Kustomize overlays that share a base, and manifests with overlays.
func writeMixed(b *testing.B, root string, folders int) {
	b.Helper()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a%d}\ndata: {a: b}\n"
	const dev = "{name: dev, clusterSelector: {matchLabels: {env: dev}}, %s}"
	writeFiles(b, root, map[string]string{"base/kustomization.yaml": "resources: [a.yaml]\n", "base/a.yaml": fmt.Sprintf(object, 0)})
	writeCharts(b, root, folders/3)
	for i := folders / 3; i < folders; i++ {
		folder := filepath.Join(root, "apps", fmt.Sprintf("app-%03d", i))
		if i%2 == 0 {
			overlay := "resources: [../../../base, own.yaml]\nnamePrefix: p-\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]\n"
			patch := "[{op: replace, path: /data/a, value: c}]\n"
			writeFiles(b, folder, map[string]string{
				"fleet.yaml":              "kustomize: {dir: prod}\ntargetCustomizations: [" + fmt.Sprintf(dev, "kustomize: {dir: dev}") + "]\n",
				"own.yaml":                fmt.Sprintf(object, 1),
				"prod/kustomization.yaml": overlay, "prod/p.yaml": patch, "prod/own.yaml": fmt.Sprintf(object, 2),
				"dev/kustomization.yaml": overlay, "dev/p.yaml": patch, "dev/own.yaml": fmt.Sprintf(object, 3),
			})
			continue
		}
		files := map[string]string{
			"fleet.yaml":           "defaultNamespace: x\ntargetCustomizations: [" + fmt.Sprintf(dev, "yaml: {overlays: [dev]}") + "]\n",
			"overlays/dev/f0.yaml": fmt.Sprintf(object, 9), "overlays/dev/f1_patch.yaml": "data: {c: d}\n",
		}
		for j := range 6 {
			files[fmt.Sprintf("f%d.yaml", j)] = fmt.Sprintf(object, j)
		}
		writeFiles(b, folder, files)
	}
}

// writeCharts makes folders that each hold a chart with values for some clusters.
func writeCharts(b *testing.B, root string, folders int) {
	b.Helper()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-%d\ndata:\n  a: {{ .Values.a | quote }}\n---\n"
	var template strings.Builder
	for i := range 40 {
		fmt.Fprintf(&template, object, i)
	}
	for i := range folders {
		writeFiles(b, filepath.Join(root, "apps", fmt.Sprintf("app-%03d", i)), map[string]string{
			"fleet.yaml": "defaultNamespace: x\nhelm: {values: {a: 1}}\n" +
				"targetCustomizations: [{name: dev, clusterSelector: {matchLabels: {env: dev}}, helm: {values: {a: 2}}}]\n",
			"Chart.yaml":             "apiVersion: v2\nname: app\nversion: 1.0.0\n",
			"values.yaml":            "a: 0\n",
			"templates/objects.yaml": template.String(),
			"templates/NOTES.txt":    "Installed.\n",
		})
	}
}

// readAll reads every file below a folder.
func readAll(b *testing.B, root string) {
	b.Helper()
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		_, err = os.ReadFile(path)
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
}

// runFleet runs the command line without anything of this process's surroundings, and returns what it
// printed.
func runFleet(b *testing.B, fleet, dir string, args ...string) []byte {
	b.Helper()
	cmd := exec.CommandContext(b.Context(), fleet, args...)
	cmd.Dir, cmd.Env = dir, []string{"HOME=" + dir, "PATH=/usr/bin:/bin"}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		b.Fatalf("fleet %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return stdout.Bytes()
}
