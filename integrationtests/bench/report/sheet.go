package report

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
)

// Machine is where figures were measured.
type Machine struct {
	OS   string `json:"os"`
	Arch string `json:"arch"`
	// CPUs are the logical ones this process may use.
	CPUs int `json:"cpus"`
	// MemoryBytes is 0 where the system does not tell.
	MemoryBytes int64  `json:"memoryBytes,omitempty"`
	Go          string `json:"go"`
}

// Sheet collects figures. Its methods may be called from several goroutines.
type Sheet struct {
	Machine Machine

	mu      sync.Mutex
	figures []Figure
}

// Add adds figures.
func (s *Sheet) Add(figures ...Figure) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.figures = append(s.figures, figures...)
}

// Figures returns what was added, chapter by chapter, in the order in which the chapters came first.
func (s *Sheet) Figures() []Figure {
	s.mu.Lock()
	defer s.mu.Unlock()
	var chapters []string
	for _, figure := range s.figures {
		if !slices.Contains(chapters, figure.Chapter) {
			chapters = append(chapters, figure.Chapter)
		}
	}
	sorted := slices.Clone(s.figures)
	slices.SortStableFunc(sorted, func(a, b Figure) int {
		return slices.Index(chapters, a.Chapter) - slices.Index(chapters, b.Chapter)
	})
	return sorted
}

// WriteTable writes the figures as plain text.
func (s *Sheet) WriteTable(to io.Writer) error {
	var out strings.Builder
	fmt.Fprintf(&out, "%s/%s, %d CPUs, %s", s.Machine.OS, s.Machine.Arch, s.Machine.CPUs, s.Machine.Go)
	if s.Machine.MemoryBytes > 0 {
		fmt.Fprintf(&out, ", %.0f GB", float64(s.Machine.MemoryBytes)/1e9)
	}
	out.WriteByte('\n')
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	chapter := ""
	for _, f := range s.Figures() {
		if f.Chapter != chapter {
			chapter = f.Chapter
			fmt.Fprintf(table, "\n%s\tvalue\tfloor\tratio\tlimit\t\n", chapter)
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\t%s\t%s\n", f.Name, strings.TrimSpace(f.text(f.Value)+" "+f.Unit), f.optional(f.Floor), f.ratioText(), f.optional(f.Limit), f.verdict())
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(out.String()) {
		if _, err := fmt.Fprintln(to, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

func (f Figure) optional(number *float64) string {
	if number == nil {
		return "-"
	}
	return f.text(*number)
}

func (f Figure) ratioText() string {
	ratio, ok := f.Ratio()
	if !ok {
		return "-"
	}
	return fmt.Sprintf("%.2f", ratio)
}

func (f Figure) verdict() string {
	switch {
	case f.Limit == nil:
		return ""
	case f.Holds():
		return "holds"
	}
	return "EXCEEDED"
}

// figureJSON is a figure with what follows from it.
type figureJSON struct {
	Chapter string   `json:"chapter"`
	Name    string   `json:"name"`
	Value   float64  `json:"value"`
	Unit    string   `json:"unit,omitempty"`
	Floor   *float64 `json:"floor,omitempty"`
	Ratio   *float64 `json:"ratio,omitempty"`
	Limit   *float64 `json:"limit,omitempty"`
	Holds   *bool    `json:"holds,omitempty"`
}

// WriteJSON writes one object: {"machine": {...}, "figures": [...]}. A figure has "ratio" when it has a
// floor, and "holds" when it has a limit.
func (s *Sheet) WriteJSON(to io.Writer) error {
	document := struct {
		Machine Machine      `json:"machine"`
		Figures []figureJSON `json:"figures"`
	}{s.Machine, []figureJSON{}}
	for _, f := range s.Figures() {
		line := figureJSON{Chapter: f.Chapter, Name: f.Name, Value: f.Value, Unit: f.Unit, Floor: f.Floor, Limit: f.Limit}
		if ratio, ok := f.Ratio(); ok {
			line.Ratio = &ratio
		}
		if f.Limit != nil {
			line.Holds = new(f.Holds())
		}
		document.Figures = append(document.Figures, line)
	}
	encoder := json.NewEncoder(to)
	encoder.SetIndent("", "  ")
	return encoder.Encode(document)
}
