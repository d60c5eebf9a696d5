package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// interrupted is the exit code after Ctrl-C, by the convention of shells.
const interrupted = 130

// Run runs the program with its arguments (without the program's name) and returns the exit code. Errors
// are printed.
func Run(ctx context.Context, args []string, streams genericiooptions.IOStreams, env session.Environment) int {
	s := session.New(streams, env)
	root := newRoot(s)
	root.SetArgs(args)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return session.ExitOK
	}
	code := session.CodeOf(err)
	// Whatever failed after the interruption failed because of it.
	if errors.Is(ctx.Err(), context.Canceled) {
		code, err = interrupted, errors.New("interrupted")
	}
	report(s, ran, err)
	return code
}

// report prints an error: one line, and for a wrong command line where to find the right one.
func report(s *session.Session, ran *cobra.Command, err error) {
	var exit *session.ExitError
	isExit := errors.As(err, &exit)
	if isExit && exit.Err == nil {
		return
	}
	message := explain(err)
	if s.Env.JSONErrors {
		line, _ := json.Marshal(map[string]string{
			"level": "error", "msg": "fleet failed", "fleetErrorMessage": message, "time": s.Now().UTC().Format(time.RFC3339),
		})
		s.Say("%s", line)
		return
	}
	s.Say("error: %s", message)
	if isExit && exit.Usage && ran != nil {
		s.Say("See '%s --help'.", ran.CommandPath())
	}
}

// explain returns the message of an error, with a hint where the error alone helps nobody.
func explain(err error) string {
	message := err.Error()
	switch {
	case meta.IsNoMatchError(err):
		return message + " (is this cluster a Fleet hub? its CRDs are not installed)"
	case strings.Contains(message, "connect: connection refused"):
		return message + " (is the API server running, and is this the right kubeconfig?)"
	}
	return message
}

// flagError turns a wrong flag into a usage error, with the flag that was probably meant.
func flagError(command *cobra.Command, err error) error {
	if errors.Is(err, pflag.ErrHelp) {
		return err
	}
	message := err.Error()
	if name, found := strings.CutPrefix(message, "unknown flag: --"); found {
		if near := nearestFlag(command, name); near != "" {
			message += "; did you mean --" + near + "?"
		}
	}
	return session.Usage("%s", message)
}

func nearestFlag(command *cobra.Command, name string) string {
	best, distance := "", 3
	command.Flags().VisitAll(func(flag *pflag.Flag) {
		if d := names.Distance(name, flag.Name); d < distance && !flag.Hidden {
			best, distance = flag.Name, d
		}
	})
	return best
}

// EnvironmentFrom returns the settings that environment variables hold; lookup is os.Getenv in the program.
func EnvironmentFrom(lookup func(name string) string) session.Environment {
	switchedOn := func(name string) bool {
		value := strings.ToLower(lookup(name))
		return value == "true" || value == "1"
	}
	switchedOff := func(name string) bool {
		value := strings.ToLower(lookup(name))
		return value == "false" || value == "0"
	}
	return session.Environment{
		Namespace:       lookup("NAMESPACE"),
		Commit:          lookup("COMMIT"),
		HelmUsername:    lookup("HELM_USERNAME"),
		KnownHosts:      lookup("FLEET_KNOWN_HOSTS"),
		ConflictRetries: lookup("FLEET_APPLY_CONFLICT_RETRIES"),
		Concurrency:     lookup("FLEET_BUNDLE_CREATION_MAX_CONCURRENCY"),
		NoRegistries:    switchedOff("OCI_STORAGE"),
		JSONErrors:      switchedOn("FLEET_JSON_OUTPUT"),
	}
}
