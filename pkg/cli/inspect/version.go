package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/report"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/version"
)

const (
	systemNamespace = "cattle-fleet-system"
	// hubConfig is the ConfigMap that carries the hub's version.
	hubConfig         = "fleet-controller"
	versionAnnotation = fleet.ReservedPrefix + "version"
)

type versionReport struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Client     string `json:"client"`
	Protocol   int    `json:"protocol"`
	Hub        string `json:"hub,omitempty"`
	// Agents counts clusters by the version of their agent.
	Agents map[string]int `json:"agents,omitempty"`
}

// Version returns `fleet version`.
func Version(s *session.Session) *cobra.Command {
	var format string
	var clientOnly bool
	command := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of this program, the hub and the agents",
		Args:  cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			shown := versionReport{APIVersion: report.Version, Kind: "Version", Client: version.Version, Protocol: version.Protocol}
			if !clientOnly {
				if err := shown.ask(command.Context(), s); err != nil {
					s.Say("The hub's version is not known: %v", err)
				}
			}
			return report.Print(s, format, shown, shown.text)
		},
	}
	command.Flags().StringVarP(&format, "output", "o", "", "json or yaml")
	command.Flags().BoolVar(&clientOnly, "client", false, "print this program's version only, and ask no cluster")
	return command
}

// ask fills in what the hub knows; what could be read stays when the rest fails.
func (r *versionReport) ask(ctx context.Context, s *session.Session) error {
	hub, err := s.Client()
	if err != nil {
		return err
	}
	var config corev1.ConfigMap
	configErr := hub.Get(ctx, types.NamespacedName{Namespace: systemNamespace, Name: hubConfig}, &config)
	r.Hub = config.Annotations[versionAnnotation]
	var clusters fleet.ClusterList
	clustersErr := hub.List(ctx, &clusters, client.InNamespace(""))
	for i := range clusters.Items {
		if agent := versions(&clusters.Items[i]).Agent; agent != "" {
			if r.Agents == nil {
				r.Agents = map[string]int{}
			}
			r.Agents[agent]++
		}
	}
	return errors.Join(configErr, clustersErr)
}

func (r *versionReport) text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "Client: %s\n", r.Client)
	if r.Hub != "" {
		fmt.Fprintf(&out, "Hub: %s\n", r.Hub)
	}
	for _, agent := range slices.Sorted(maps.Keys(r.Agents)) {
		fmt.Fprintf(&out, "Agents: %s (%d)\n", agent, r.Agents[agent])
	}
	return out.String()
}
