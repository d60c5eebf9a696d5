package columns

import (
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
)

const (
	inline   = "custom-columns"
	fromFile = "custom-columns-file"

	// absent stands where an object has nothing at the path.
	absent = "<none>"
)

// Printer prints objects, headings first.
type Printer struct {
	columns   []column
	noHeaders bool
	begun     bool
}

type column struct {
	heading string
	path    *jsonpath.JSONPath
}

var _ printers.ResourcePrinter = (*Printer)(nil)

// Parse returns the printer for an output format, or false for a format that is none of this package's. The
// columns may be given apart, in template, as kubectl's --template.
func Parse(format, template string, noHeaders bool) (*Printer, bool, error) {
	kind, spec, _ := strings.Cut(format, "=")
	if spec == "" {
		spec = template
	}
	var headings, paths []string
	switch kind {
	case inline:
		for part := range strings.SplitSeq(spec, ",") {
			heading, path, found := strings.Cut(part, ":")
			if !found {
				return nil, true, fmt.Errorf("column %q has no path; want HEADING:PATH, separated by commas", part)
			}
			headings, paths = append(headings, heading), append(paths, path)
		}
	case fromFile:
		data, err := os.ReadFile(spec)
		if err != nil {
			return nil, true, fmt.Errorf("read columns: %w", err)
		}
		first, second, _ := strings.Cut(string(data), "\n")
		second, _, _ = strings.Cut(second, "\n")
		headings, paths = strings.Fields(first), strings.Fields(second)
		if len(headings) == 0 || len(headings) != len(paths) {
			return nil, true, fmt.Errorf("%s has %d headings and %d paths; want a line of each, as many", spec, len(headings), len(paths))
		}
	default:
		return nil, false, nil
	}
	printer := &Printer{noHeaders: noHeaders}
	for i, heading := range headings {
		path, err := parsePath(paths[i])
		if err != nil {
			return nil, true, fmt.Errorf("column %s: %w", heading, err)
		}
		printer.columns = append(printer.columns, column{heading, path})
	}
	return printer, true, nil
}

// anyPath is a path with or without braces and the first dot.
var anyPath = regexp.MustCompile(`^(?:\{\.?([^{}]+)\}|\.?([^{}]+))$`)

func parsePath(text string) (*jsonpath.JSONPath, error) {
	parts := anyPath.FindStringSubmatch(text)
	if parts == nil {
		return nil, fmt.Errorf("%q is no path; want .a.b or {.a.b}", text)
	}
	path := jsonpath.New("column").AllowMissingKeys(true)
	if err := path.Parse("{." + parts[1] + parts[2] + "}"); err != nil {
		return nil, fmt.Errorf("%q is no path: %w", text, err)
	}
	return path, nil
}

// PrintObj prints an object, or each of a list.
func (p *Printer) PrintObj(object runtime.Object, out io.Writer) error {
	aligned := printers.GetNewTabWriter(out)
	if !p.noHeaders && !p.begun {
		var headings []string
		for _, column := range p.columns {
			headings = append(headings, column.heading)
		}
		if _, err := fmt.Fprintln(aligned, strings.Join(headings, "\t")); err != nil {
			return err
		}
	}
	p.begun = true
	var err error
	if meta.IsListType(object) {
		err = meta.EachListItem(object, func(item runtime.Object) error { return p.row(item, aligned) })
	} else {
		err = p.row(object, aligned)
	}
	if err != nil {
		return err
	}
	return aligned.Flush()
}

func (p *Printer) row(object runtime.Object, out io.Writer) error {
	var data any = object
	if plain, ok := object.(*unstructured.Unstructured); ok {
		data = plain.Object
	}
	var cells []string
	for _, column := range p.columns {
		results, err := column.path.FindResults(data)
		if err != nil {
			return fmt.Errorf("column %s: %w", column.heading, err)
		}
		var values []string
		for _, result := range results {
			for _, value := range result {
				values = append(values, fmt.Sprint(value.Interface()))
			}
		}
		if len(values) == 0 {
			values = []string{absent}
		}
		cells = append(cells, strings.Join(values, ","))
	}
	_, err := fmt.Fprintln(out, strings.Join(cells, "\t"))
	return err
}
