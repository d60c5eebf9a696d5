package author

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/cli/inventory"
	"github.com/fairlead-dev/fairlead/pkg/cli/project"
	"github.com/fairlead-dev/fairlead/pkg/cli/report"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/target"
	"github.com/fairlead-dev/fairlead/pkg/target/match"
)

type explainFlags struct {
	project project.Flags
	format  string
}

type explainReport struct {
	APIVersion string              `json:"apiVersion"`
	Kind       string              `json:"kind"`
	Items      []bundleExplanation `json:"items"`
}

type bundleExplanation struct {
	Bundle   string               `json:"bundle"`
	File     string               `json:"file,omitempty"`
	Clusters []clusterExplanation `json:"clusters"`
}

type clusterExplanation struct {
	Cluster  string   `json:"cluster"`
	Groups   []string `json:"groups,omitempty"`
	Deployed bool     `json:"deployed"`
	// Why says in a sentence why it is deployed or not.
	Why string `json:"why"`
	// Error is why its options cannot be made; then it is reached and keeps what it has.
	Error   string    `json:"error,omitempty"`
	Targets []verdict `json:"targets"`
	Options []origin  `json:"options,omitempty"`
}

type verdict struct {
	Role    match.Role `json:"role"`
	Name    string     `json:"name"`
	Matched bool       `json:"matched"`
	Used    bool       `json:"used"`
	Reason  string     `json:"reason,omitempty"`
}

// Explain returns `fleet explain`.
func Explain(s *session.Session) *cobra.Command {
	f := &explainFlags{}
	command := &cobra.Command{
		Use:   "explain [FOLDER]",
		Short: "Say for every cluster which targets matched, which did not and why, and where each option comes from",
		Example: `  fleet explain --clusters clusters.yaml
  fleet explain -g gitrepo.yaml --bundle shop-web --cluster prod`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			return f.run(command.Context(), s, folderOf(args))
		},
	}
	set := command.Flags()
	f.project.AddReading(set, s)
	f.project.AddTargeting(set)
	set.StringVarP(&f.format, "output", "o", "", "json or yaml")
	return command
}

func (f *explainFlags) run(ctx context.Context, s *session.Session, dir string) error {
	loaded, readErr := load(ctx, s, &f.project, dir)
	if loaded == nil {
		return readErr
	}
	shown := explainReport{APIVersion: report.Version, Kind: "Explain", Items: []bundleExplanation{}}
	for _, made := range loaded.result.Bundles {
		explained, err := explainBundle(made, loaded.known)
		if err != nil {
			return err
		}
		shown.Items = append(shown.Items, explained)
	}
	if err := report.Print(s, f.format, shown, shown.text); err != nil {
		return err
	}
	return readErr
}

func explainBundle(made bundle.Bundle, known inventory.Inventory) (bundleExplanation, error) {
	explained := bundleExplanation{Bundle: made.Object.Name, File: made.File, Clusters: []clusterExplanation{}}
	matcher, err := match.Compile(&made.Object.Spec)
	if err != nil {
		return explained, fmt.Errorf("explain bundle %s: %w", made.Object.Name, err)
	}
	snapshot, err := project.SnapshotOf(made.Object, known)
	if err != nil {
		return explained, err
	}
	targets, _, err := target.Targets(snapshot)
	if err != nil {
		return explained, err
	}
	reached := map[string]target.Targeted{}
	for _, targeted := range targets {
		reached[targeted.Cluster.Key()] = targeted
	}
	groups, _ := match.Groups(snapshot.Groups)
	for _, info := range snapshot.Clusters {
		cluster := match.Cluster{Namespace: info.Namespace, Name: info.Name, Labels: info.Labels}
		in := match.GroupsOf(cluster, groups)
		result, verdicts := matcher.Explain(cluster, in)
		one := clusterExplanation{Cluster: info.Key(), Deployed: result.Deploy, Why: why(&made.Object.Spec, result)}
		for _, group := range in {
			one.Groups = append(one.Groups, group.Name)
		}
		for _, v := range verdicts {
			one.Targets = append(one.Targets, verdict{Role: v.Role, Name: v.Name, Matched: v.Matched, Used: v.Used, Reason: v.Reason})
		}
		if targeted, ok := reached[info.Key()]; ok {
			one.Options = origins(&made.Object.Spec, targeted)
			if targeted.Err != nil {
				one.Deployed, one.Error = false, targeted.Err.Error()
			}
		}
		explained.Clusters = append(explained.Clusters, one)
	}
	return explained, nil
}

// why says in a sentence what a match means.
func why(spec *fleet.BundleSpec, result match.Result) string {
	switch {
	case result.Destination < 0:
		return "no target reaches it"
	case result.DoNotDeploy >= 0:
		return fmt.Sprintf("%s says doNotDeploy", quoted(spec, result.DoNotDeploy))
	case len(result.Customizations) == 0:
		return fmt.Sprintf("%s reaches it, and no customization applies", quoted(spec, result.Destination))
	}
	var names []string
	for _, index := range result.Customizations {
		names = append(names, quoted(spec, index))
	}
	return fmt.Sprintf("%s reaches it, with the customization %s", quoted(spec, result.Destination), strings.Join(names, ", "))
}

func quoted(spec *fleet.BundleSpec, index int) string {
	if name := spec.Targets[index].Name; name != "" {
		return fmt.Sprintf("%q", name)
	}
	return fmt.Sprintf("target number %d", index+1)
}

func (r explainReport) text() string {
	var out strings.Builder
	for _, item := range r.Items {
		fmt.Fprintf(&out, "Bundle %s", item.Bundle)
		if item.File != "" {
			fmt.Fprintf(&out, " (%s)", item.File)
		}
		out.WriteString("\n")
		for _, cluster := range item.Clusters {
			cluster.write(&out)
		}
	}
	return out.String()
}

func (c clusterExplanation) write(out *strings.Builder) {
	state := "not deployed"
	switch {
	case c.Deployed:
		state = "deployed"
	case c.Error != "":
		state = "held back by an error"
	}
	fmt.Fprintf(out, "  Cluster %s: %s, %s %s\n", c.Cluster, state, c.conjunction(), c.Why)
	if c.Error != "" {
		fmt.Fprintf(out, "    ERROR %s\n", c.Error)
	}
	for _, v := range c.Targets {
		fmt.Fprintf(out, "    %-13s %-20s %s\n", v.Role, v.Name, v.text())
	}
	for _, option := range c.Options {
		fmt.Fprintf(out, "    option        %s = %s  (%s)\n", option.Path, option.Value, option.From)
	}
}

// conjunction joins the state and the reason why the cluster is reached or not.
func (c clusterExplanation) conjunction() string {
	if c.Error != "" {
		return "although"
	}
	return "because"
}

func (v verdict) text() string {
	switch {
	case v.Used:
		return "matched, applies"
	case v.Matched:
		return "matched, not applied: " + v.Reason
	}
	return "not matched: " + v.Reason
}
