package check

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link        = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	makeCommand = regexp.MustCompile(`\bmake ((?:[a-z][a-z-]*)(?: [a-z][a-z-]*)*)`)
	makeTarget  = regexp.MustCompile(`(?m)^([a-z][a-z-]*):`)
)

// Links between documents lead somewhere, and every `make x` in a document is a target.
func TestDocumentsAreTrue(t *testing.T) {
	root := "../.."
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]bool{}
	for _, match := range makeTarget.FindAllStringSubmatch(string(makefile), -1) {
		targets[match[1]] = true
	}
	documents := 0
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// In .demo programs make and remove folders while this looks.
		if entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == ".git" || entry.Name() == ".demo") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		documents++
		checkDocument(t, path, targets)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if documents < 5 {
		t.Errorf("found %d documents", documents)
	}
}

func checkDocument(t *testing.T, path string, targets map[string]bool) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, match := range link.FindAllStringSubmatch(string(data), -1) {
		target, _, _ := strings.Cut(match[1], "#")
		if target == "" || strings.Contains(target, "://") {
			continue
		}
		if _, err := os.Stat(filepath.Join(filepath.Dir(path), target)); err != nil {
			t.Errorf("%s links to %s, which is not there", path, match[1])
		}
	}
	for _, code := range regexp.MustCompile("`[^`]*`|(?m)^    .*$").FindAllString(string(data), -1) {
		for _, match := range makeCommand.FindAllStringSubmatch(code, -1) {
			for target := range strings.FieldsSeq(match[1]) {
				if !targets[target] {
					t.Errorf("%s names `make %s`, which the Makefile does not have", path, target)
				}
			}
		}
	}
}
