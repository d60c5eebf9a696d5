package stack

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Memory is what a process holds, in bytes.
type Memory struct {
	// Resident is held now, Peak at most since the process was started, or ResetPeak was called.
	Resident, Peak int64
}

// Memory returns what the program holds now. Only Linux tells.
func (p *Program) Memory() (Memory, error) { return MemoryOf(p.Pid()) }

// MemoryOf returns what a process holds now. Only Linux tells.
func MemoryOf(pid int) (Memory, error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Memory{}, fmt.Errorf("read memory of process %d: %w", pid, err)
	}
	defer file.Close()
	var memory Memory
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		key, value, _ := strings.Cut(lines.Text(), ":")
		var field *int64
		switch key {
		case "VmRSS":
			field = &memory.Resident
		case "VmHWM":
			field = &memory.Peak
		default:
			continue
		}
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			return Memory{}, fmt.Errorf("read memory of process %d: %w", pid, err)
		}
		*field = kilobytes << 10
	}
	return memory, lines.Err()
}

// ResetPeak lets the peak of a process's memory begin at what it holds now.
func ResetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak of process %d: %w", pid, err)
	}
	return nil
}
