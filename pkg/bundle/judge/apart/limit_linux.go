package apart

import (
	"fmt"
	"os"
	"strings"
	"syscall"
)

// limitData bounds what the process may write to. The runtime ends the process when it is refused more.
func limitData(most int64) error {
	var known syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_DATA, &known); err != nil {
		return err
	}
	known.Cur = min(uint64(most), known.Max)
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &known)
}

// dataSize is what the process may write to now, in bytes.
func dataSize() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("look at the memory of the process: %w", err)
	}
	_, after, _ := strings.Cut(string(status), "VmData:")
	var kib int64
	if _, err := fmt.Sscan(after, &kib); err != nil {
		return 0, fmt.Errorf("look at the memory of the process: %w", err)
	}
	return kib << 10, nil
}
