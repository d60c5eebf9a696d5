package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/fairlead-dev/fairlead/pkg/bundle/judge/apart"
)

// renderName is the command by which the hub has bundles rendered in another process.
const renderName = "render-bundles"

// renderBundles is that command. It talks to the hub only, and sees nothing of its environment.
func renderBundles() *cobra.Command {
	return &cobra.Command{
		Use: renderName, Hidden: true, Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error {
			err := apart.Serve(os.Stdin, os.Stdout)
			if err != nil {
				fmt.Fprintln(os.Stderr, "fleet-controller:", err)
			}
			return err
		},
	}
}

// renderCommand starts this program, also when another version has taken its place on the disk.
func renderCommand() *exec.Cmd {
	self := "/proc/self/exe"
	if runtime.GOOS != "linux" {
		self = os.Args[0]
	}
	command := exec.Command(self, renderName)
	command.Env = []string{}
	return command
}
