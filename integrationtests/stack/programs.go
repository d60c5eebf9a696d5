package stack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// The programs of a stack, by the names their folder has them under.
const (
	controllerProgram = "fleet-controller"
	agentProgram      = "fleet-agent"
)

// programSources are their packages below the module's root.
var programSources = map[string]string{
	controllerProgram: "./cmd/fleetcontroller",
	agentProgram:      "./cmd/fleetagent",
}

// Programs is a folder that holds fleet-controller and fleet-agent.
type Programs struct{ dir string }

// FindPrograms returns the programs in a folder, as `make build` leaves them.
func FindPrograms(dir string) (Programs, error) {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return Programs{}, err
	}
	p := Programs{dir: absolute}
	for name := range programSources {
		if _, err := exec.LookPath(p.path(name)); err != nil {
			return Programs{}, fmt.Errorf("find %s: %w", name, err)
		}
	}
	return p, nil
}

// BuildPrograms builds the programs into .demo/bin of the checkout, where a second build of the same
// sources finds them linked. What the compiler says goes to output.
func BuildPrograms(ctx context.Context, output io.Writer) (Programs, error) {
	root, err := ModuleRoot()
	if err != nil {
		return Programs{}, err
	}
	p := Programs{dir: filepath.Join(root, ".demo", "bin")}
	for name, source := range programSources {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", p.path(name), source)
		cmd.Dir, cmd.Stdout, cmd.Stderr = root, output, output
		if err := cmd.Run(); err != nil {
			return Programs{}, fmt.Errorf("build %s: %w", name, errors.Join(err, ctx.Err()))
		}
	}
	return p, nil
}

func (p Programs) path(name string) string { return filepath.Join(p.dir, name) }

// ModuleRoot returns the folder of this checkout, found from the working directory upwards.
func ModuleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "charts", "fleet", "Chart.yaml")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the module: neither %s nor a folder above it holds this repository", start)
		}
	}
}
