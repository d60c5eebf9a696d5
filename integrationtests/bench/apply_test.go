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

// measureApply prints the bundles of many folders with `fleet apply -o -`, as a program of its own that
// knows no cluster, next to a plain read of the same files.
func measureApply(b *testing.B, folders, runs int) {
	b.Helper()
	fleet := filepath.Join(b.TempDir(), "fleet")
	build := exec.CommandContext(b.Context(), "go", "build", "-o", fleet, "github.com/fairlead-dev/fairlead/cmd/fleet")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("build fleet: %v\n%s", err, out)
	}
	root := b.TempDir()
	writeFolders(b, root, folders)
	var applies, reads, starts []time.Duration
	for range runs {
		began := time.Now()
		readAll(b, root)
		reads = append(reads, time.Since(began))

		began = time.Now()
		runFleet(b, fleet, root, "version", "--client")
		starts = append(starts, time.Since(began))

		began = time.Now()
		out := runFleet(b, fleet, root, "apply", "shop", "-o", "-")
		applies = append(applies, time.Since(began))
		if got := bytes.Count(out, []byte("kind: Bundle\n")); got != folders {
			b.Fatalf("%d bundles of %d folders", got, folders)
		}
	}
	median, longest := report.Spread(applies)
	read, _ := report.Spread(reads)
	start, _ := report.Spread(starts)
	const chapter = "fleet apply -o -, offline"
	name := fmt.Sprintf("%d folders of a chart each", folders)
	sheet.Add(
		report.Figure{Chapter: chapter, Name: name + ", median", Value: median, Unit: report.Seconds, Floor: &read},
		report.Figure{Chapter: chapter, Name: fmt.Sprintf("%s, longest of %d", name, runs), Value: longest, Unit: report.Seconds, Floor: &read},
		report.Figure{Chapter: chapter, Name: "of it the start of the program", Value: start, Unit: report.Seconds},
	)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(median, "s-median")
	b.ReportMetric(median/read, "×floor")
}

// writeFolders makes folders that each hold a chart with values for some clusters.
func writeFolders(b *testing.B, root string, folders int) {
	b.Helper()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}-%d\ndata:\n  a: {{ .Values.a | quote }}\n---\n"
	var template strings.Builder
	for i := range 40 {
		fmt.Fprintf(&template, object, i)
	}
	for i := range folders {
		folder := filepath.Join(root, fmt.Sprintf("app-%03d", i))
		for name, content := range map[string]string{
			"fleet.yaml": "defaultNamespace: x\nhelm: {values: {a: 1}}\n" +
				"targetCustomizations: [{name: dev, clusterSelector: {matchLabels: {env: dev}}, helm: {values: {a: 2}}}]\n",
			"Chart.yaml":             "apiVersion: v2\nname: app\nversion: 1.0.0\n",
			"values.yaml":            "a: 0\n",
			"templates/objects.yaml": template.String(),
			"templates/NOTES.txt":    "Installed.\n",
		} {
			path := filepath.Join(folder, filepath.FromSlash(name))
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				b.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
				b.Fatal(err)
			}
		}
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
