package main

import (
	"cmp"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/fairlead-dev/fairlead/integrationtests/stack"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// screen shows steps, a line when one begins and one when it is done.
type screen struct{ out io.Writer }

func newScreen(out io.Writer) screen { return screen{out} }

func (s screen) step(step stack.Step) {
	switch {
	case !step.Done:
		fmt.Fprintf(s.out, "  … %s\n", step.Name)
	case step.Err == nil:
		fmt.Fprintf(s.out, "  ✓ %s (%s)\n", step.Name, seconds(step.Took))
	default:
		fmt.Fprintf(s.out, "  ✗ %s (%s)\n", step.Name, seconds(step.Took))
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.2f s", d.Seconds()) }

// summary is a line about how far the GitRepo is: what is ready, and what else there is, by state.
func summary(progress *stack.Progress, clusters int) string {
	counts := map[fleet.BundleState]int{}
	for _, d := range progress.Deployments {
		counts[d.State]++
	}
	text := fmt.Sprintf("%d bundles, ready on clusters: %d of %d", len(progress.Bundles), counts[fleet.Ready], len(progress.Bundles)*clusters)
	for _, state := range []fleet.BundleState{fleet.ErrApplied, fleet.WaitApplied, fleet.Modified, fleet.OutOfSync, fleet.Pending, fleet.NotReady} {
		if counts[state] > 0 {
			text += fmt.Sprintf(", %s %d", state, counts[state])
		}
	}
	if len(progress.Bundles) == 0 && progress.Problem != "" {
		text += " (" + progress.Problem + ")"
	}
	return text
}

// table shows what runs where: a line for each bundle, a column for each member.
func (d *demo) table(progress *stack.Progress) {
	cells := map[[2]string]string{}
	for _, deployment := range progress.Deployments {
		cells[[2]string{deployment.Bundle, deployment.Cluster}] = fmt.Sprintf("%s, %s", deployment.State, objects(deployment.Resources))
	}
	table := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	head := []string{"BUNDLE"}
	for _, member := range d.stack.Members {
		head = append(head, fmt.Sprintf("%s (%s)", strings.ToUpper(member.Name), member.Labels["region"]))
	}
	fmt.Fprintln(table, strings.Join(head, "\t"))
	for _, bundle := range progress.Bundles {
		line := []string{bundle}
		for _, member := range d.stack.Members {
			line = append(line, cmp.Or(cells[[2]string{bundle, member.Name}], "-"))
		}
		fmt.Fprintln(table, strings.Join(line, "\t"))
	}
	_ = table.Flush() // as little can be done about it as about a failing Println
}

func objects(n int) string {
	if n == 1 {
		return "1 object"
	}
	return fmt.Sprintf("%d objects", n)
}

// memory shows what the programs hold.
func (d *demo) memory() {
	programs := []*stack.Program{d.stack.Controller}
	for _, member := range d.stack.Members {
		programs = append(programs, member.Agent)
	}
	for _, program := range programs {
		memory, err := program.Memory()
		if err != nil {
			fmt.Fprintf(d.out, "  %-20s unknown: %v\n", program.Name(), err)
			continue
		}
		fmt.Fprintf(d.out, "  %-20s %d MB resident, %d MB at most\n", program.Name(), memory.Resident>>20, memory.Peak>>20)
	}
}

// short returns a path as one would type it from here.
func short(path string) string {
	here, err := os.Getwd()
	if err != nil {
		return path
	}
	if rest, below := strings.CutPrefix(path, here+string(os.PathSeparator)); below {
		return rest
	}
	return path
}
