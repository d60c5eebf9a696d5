package report

import (
	"encoding/json"
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/cli/session"
)

// Version is the version of the documents that reports print with -o json and yaml. Fields are only
// ever added to a version.
const Version = "cli.fairlead.dev/v1"

// Print prints a report as text, JSON or YAML.
func Print(s *session.Session, format string, report any, text func() string) error {
	switch format {
	case "":
		_, err := fmt.Fprint(s.Out, text())
		return err
	case "json":
		data, err := json.MarshalIndent(report, "", "  ")
		if err != nil {
			return fmt.Errorf("print report: %w", err)
		}
		_, err = fmt.Fprintf(s.Out, "%s\n", data)
		return err
	case "yaml":
		data, err := yaml.Marshal(report)
		if err != nil {
			return fmt.Errorf("print report: %w", err)
		}
		_, err = s.Out.Write(data)
		return err
	}
	return session.Usage("--output %q is none of json and yaml", format)
}
