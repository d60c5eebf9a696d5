package bench

import (
	"fmt"
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

// processorTime returns how long each program has computed since its start, by name. Only Linux tells.
func (w *world) processorTime(t testing.TB) map[string]time.Duration {
	t.Helper()
	used := map[string]time.Duration{}
	for _, program := range w.programs() {
		var err error
		if used[program.Name()], err = program.ProcessorTime(); err != nil {
			t.Fatal(err)
		}
	}
	return used
}
