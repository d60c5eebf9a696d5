package bench

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/bench/report"
	"github.com/fairlead-dev/fairlead/integrationtests/stack"
)

// What the programs may hold, in MB.
const (
	controllerLimit = 200.0
	agentLimit      = 120.0
)

func (w *world) programs() []*stack.Program {
	all := []*stack.Program{w.Controller}
	for _, member := range w.Members {
		all = append(all, member.Agent)
	}
	return all
}

// addMemory adds what the controller and the largest agent hold now, and held at most since their start.
func (w *world) addMemory(b *testing.B, when string) {
	b.Helper()
	var controller, agent stack.Memory
	for i, program := range w.programs() {
		memory, err := program.Memory()
		if err != nil {
			b.Fatal(err)
		}
		if i == 0 {
			controller = memory
			continue
		}
		agent.Resident, agent.Peak = max(agent.Resident, memory.Resident), max(agent.Peak, memory.Peak)
	}
	for _, of := range []struct {
		name   string
		memory stack.Memory
		limit  float64
	}{
		{"fleet-controller", controller, controllerLimit},
		{fmt.Sprintf("largest of %d fleet-agents", len(w.Members)), agent, agentLimit},
	} {
		const chapter = "resident memory"
		sheet.Add(
			report.Figure{Chapter: chapter, Name: of.name + ", " + when, Value: float64(of.memory.Resident) / 1e6, Unit: report.Megabytes, Limit: &of.limit},
			report.Figure{Chapter: chapter, Name: of.name + ", " + when + ", peak so far", Value: float64(of.memory.Peak) / 1e6, Unit: report.Megabytes, Limit: &of.limit},
		)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(controller.Resident)/1e6, "MB-controller")
	b.ReportMetric(float64(agent.Resident)/1e6, "MB-agent")
}

// tick is the unit of processor time in /proc, which is the same on all machines Linux runs on.
const tick = 10 * time.Millisecond

// processorTime returns how long each program has computed since its start, by name. Only Linux tells.
func (w *world) processorTime(t testing.TB) map[string]time.Duration {
	t.Helper()
	used := map[string]time.Duration{}
	for _, program := range w.programs() {
		content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", program.Pid()))
		if err != nil {
			t.Fatal(err)
		}
		if used[program.Name()], err = parseStat(string(content)); err != nil {
			t.Fatalf("read processor time of %s: %v", program.Name(), err)
		}
	}
	return used
}

// parseStat returns the user and system time of a /proc/PID/stat, whose second field is in parentheses and
// may hold anything.
func parseStat(stat string) (time.Duration, error) {
	const user, system = 11, 12 // after the parentheses
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	if len(fields) <= system {
		return 0, fmt.Errorf("%d fields in %q", len(fields), stat)
	}
	var used time.Duration
	for _, field := range fields[user : system+1] {
		ticks, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, err
		}
		used += time.Duration(ticks) * tick
	}
	return used, nil
}

func TestParseStat(t *testing.T) {
	for name, test := range map[string]struct {
		stat string
		want time.Duration
		bad  bool
	}{
		"plain":     {stat: "7 (agent) S 1 7 7 0 -1 4194304 9 0 0 0 150 25 0 0 20 0 9", want: 1750 * time.Millisecond},
		"odd name":  {stat: "7 (a) R (b) S 1 7 7 0 -1 4194304 9 0 0 0 1 0 0 0 20", want: 10 * time.Millisecond},
		"cut short": {stat: "7 (agent) S 1 7", bad: true},
		"no number": {stat: "7 (agent) S 1 7 7 0 -1 4194304 9 0 0 0 x 25 0 0", bad: true},
		"empty":     {stat: "", bad: true},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseStat(test.stat)
			if got != test.want || (err != nil) != test.bad {
				t.Errorf("got %s, %v", got, err)
			}
		})
	}
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
