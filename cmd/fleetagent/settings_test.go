package main

import (
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// Every flag is in the document of settings, and none besides.
func TestFlagsAreDocumented(t *testing.T) {
	document, err := os.ReadFile("../../docs/operations/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(document), "\n## fleet-agent\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var told, flags []string
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` ").FindAllStringSubmatch(section, -1) {
		told = append(told, row[1])
	}
	command(func(string) string { return "" }, io.Discard).Flags().VisitAll(func(flag *pflag.Flag) { flags = append(flags, flag.Name) })
	slices.Sort(told)
	slices.Sort(flags)
	if diff := cmp.Diff(flags, told); diff != "" {
		t.Errorf("docs/operations/settings.md (-flags +document):\n%s", diff)
	}
}
