// Command fleet-controller is the hub: it follows GitRepos, makes Bundles and BundleDeployments, lets
// members join, and rolls up what agents report. The parts live in packages; this one wires them.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/fairlead-dev/fairlead/pkg/version"
)

func main() {
	if os.Getenv("GOGC") == "" {
		paceGarbage()
	}
	if err := command().ExecuteContext(ctrl.SetupSignalHandler()); err != nil {
		os.Exit(1)
	}
}

func command() *cobra.Command {
	settings := defaults(os.Getenv)
	command := &cobra.Command{
		Use:           "fleet-controller",
		Short:         "Deploy what is in git to a fleet of clusters",
		Version:       version.Version,
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(command *cobra.Command, _ []string) error {
			err := run(command.Context(), settings)
			if err != nil {
				fmt.Fprintln(os.Stderr, "fleet-controller:", err)
			}
			return err
		},
	}
	settings.addFlags(command.Flags())
	command.AddCommand(renderBundles())
	return command
}

func run(ctx context.Context, settings *settings) error {
	hub, err := newHub(ctx, settings)
	if err != nil {
		return err
	}
	return hub.run(ctx)
}
