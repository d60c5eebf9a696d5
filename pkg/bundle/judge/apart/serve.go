package apart

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime/debug"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/judge"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

// copies is how often the files of a bundle may be in memory, beside what rendering takes: as they came, unpacked,
// as a chart, and on the way.
const copies = 4

// Serve judges bundles until the input ends, also in the middle of one. It is all that its process does, because
// it limits the memory of the process.
func Serve(in io.Reader, out io.Writer) error {
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	var opened greeting
	if err := from.Decode(&opened); err != nil {
		return fmt.Errorf("read the greeting: %w", err)
	}
	if err := to.Encode(greeting{Version: version}); err != nil {
		return fmt.Errorf("answer the greeting: %w", err)
	}
	// What a process has from the start is none of a template's.
	base, err := dataSize()
	if err != nil {
		return err
	}
	jobs, ended := make(chan judge.Job), make(chan error, 1)
	go func() { ended <- receive(from, jobs, base, opened.Memory) }()
	answers := make(chan judge.Finding, 1)
	for {
		select {
		case job := <-jobs:
			go func() { answers <- judge.Judge(context.Background(), job) }()
		case found := <-answers:
			if err := to.Encode(found); err != nil {
				return fmt.Errorf("answer a request: %w", err)
			}
		case err := <-ended:
			return err
		}
	}
}

// receive reads requests until the input ends. Before the files of one come there is room for them.
func receive(from *json.Decoder, jobs chan<- judge.Job, base, memory int64) error {
	var files []fleet.BundleResource
	var size int64
	for {
		var asked request
		switch err := from.Decode(&asked); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("read a request: %w", err)
		}
		if !asked.Same {
			files, size = nil, asked.Size
		}
		if err := limit(base, memory+copies*size); err != nil {
			return err
		}
		for range asked.Files {
			var file fleet.BundleResource
			if err := from.Decode(&file); err != nil {
				return fmt.Errorf("read a file: %w", err)
			}
			files = append(files, file)
		}
		asked.Job.Input.Manifest = content.Manifest{Resources: files}
		jobs <- asked.Job
	}
}

// limit bounds what the process may take beyond what it began with.
func limit(base, memory int64) error {
	if memory <= 0 {
		return nil
	}
	// Garbage is collected before it costs a bundle its verdict.
	debug.SetMemoryLimit(memory / 4 * 3)
	if err := limitData(base + memory); err != nil {
		return fmt.Errorf("limit the memory of the process: %w", err)
	}
	return nil
}
