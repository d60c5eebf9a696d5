package report

import (
	"fmt"
	"io"
	"os"
	"runtime"
)

// Publish shows the figures, if there are any, with this machine, and writes them to a file too, unless its
// path is empty.
func (s *Sheet) Publish(out io.Writer, path string) error {
	if len(s.Figures()) == 0 {
		return nil
	}
	s.Machine = Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), MemoryBytes: machineMemory(), Go: runtime.Version(),
	}
	fmt.Fprintln(out)
	if err := s.WriteTable(out); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if path == "" {
		return nil
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := s.WriteJSON(file); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// machineMemory returns the bytes of memory of this machine, 0 where it does not tell.
func machineMemory() int64 {
	content, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	var kilobytes int64
	if _, err := fmt.Sscanf(string(content), "MemTotal: %d kB", &kilobytes); err != nil {
		return 0
	}
	return kilobytes << 10
}
