package preview

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	agent "github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/synced"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/cli/stream"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

// systemNamespace is where agents usually run; service accounts are looked up there.
const systemNamespace = "cattle-fleet-system"

type deployFlags struct {
	input, agentNamespace, kubeVersion string
	dryRun                             bool
}

// Deploy returns `fleet deploy`.
func Deploy(s *session.Session) *cobra.Command {
	f := &deployFlags{}
	command := &cobra.Command{
		Use:   "deploy -i FILE",
		Short: "Deploy one BundleDeployment to the cluster of the kubeconfig, or print its objects",
		Long: `Deploy one BundleDeployment with its Content, as "fleet target" prints them, to the cluster of the kubeconfig, and
print its objects. With --dry-run nothing but the objects is printed, hooks included, and no cluster is asked.
The namespace (-n) is where objects go that name none, unless the options say something else.
Values from Secrets and ConfigMaps of the member (valuesFrom) are left out then.`,
		Example: `  # What would the cluster get?
  fleet target -b bundle.yaml --clusters one-cluster.yaml > deploy.yaml
  fleet deploy -i deploy.yaml --dry-run`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			if f.input == "" {
				return session.Usage("deploy needs --input-file FILE, or - for standard input")
			}
			return f.run(command.Context(), s)
		},
	}
	set := command.Flags()
	set.StringVarP(&f.input, "input-file", "i", "", "file with a Content and a BundleDeployment (- is standard input)")
	set.BoolVarP(&f.dryRun, "dry-run", "d", false, "print the objects and change nothing")
	set.StringVarP(&f.agentNamespace, "agent-namespace", "a", "", "namespace of the agent that takes the release over; without it no agent removes the release")
	set.StringVar(&f.kubeVersion, "kube-version", "", "Kubernetes version that charts see in a dry run (default "+render.DefaultKubeVersion+")")
	return command
}

func (f *deployFlags) run(ctx context.Context, s *session.Session) error {
	deployment, input, err := f.read(s)
	if err != nil {
		return err
	}
	if input.Options.DefaultNamespace == "" {
		input.Options.DefaultNamespace = s.Namespace("")
	}
	if f.dryRun {
		objects, err := render.Objects(ctx, input, render.Capabilities{KubeVersion: f.kubeVersion}, nil)
		if err != nil {
			return err
		}
		return printObjects(s, objects)
	}
	objects, err := f.deploy(ctx, s, deployment, input)
	if err != nil {
		return err
	}
	return printObjects(s, objects)
}

// read returns what the file holds; of several BundleDeployments the last one counts.
func (f *deployFlags) read(s *session.Session) (*fleet.BundleDeployment, render.Input, error) {
	data, err := s.ReadFile(f.input)
	if err != nil {
		return nil, render.Input{}, fmt.Errorf("read deployment: %w", err)
	}
	objects, err := stream.Decode(f.input, data)
	if err != nil {
		return nil, render.Input{}, fmt.Errorf("read deployment: %w", err)
	}
	s.WarnAll(objects.Warnings)
	if len(objects.Bundles) > 0 && len(objects.Deployments) == 0 {
		return nil, render.Input{}, fmt.Errorf("read deployment: %s holds a Bundle, not what it gives on a cluster; `fleet target -b %s` makes that of it", f.input, f.input)
	}
	if len(objects.Deployments) == 0 || len(objects.Contents) == 0 {
		return nil, render.Input{}, fmt.Errorf("read deployment: %s needs a Content and a BundleDeployment, and has %d and %d; is the bundle targeted at any cluster?",
			f.input, len(objects.Contents), len(objects.Deployments))
	}
	deployment := objects.Deployments[len(objects.Deployments)-1]
	input, err := inputOf(deployment, objects.Contents)
	return deployment, input, err
}

// inputOf returns what to render for a deployment. A paused one has nothing but staged options.
func inputOf(deployment *fleet.BundleDeployment, contents []*fleet.Content) (render.Input, error) {
	id, options := deployment.Spec.DeploymentID, deployment.Spec.Options
	if id == "" {
		id, options = deployment.Spec.StagedDeploymentID, deployment.Spec.StagedOptions
	}
	manifestID, _, _ := strings.Cut(id, ":")
	for _, stored := range slices.Backward(contents) {
		if stored.Labels[fleet.ChunkOfLabel] != "" || manifestID != "" && stored.Name != manifestID {
			continue
		}
		manifest, err := content.Load(stored, func(name string) (*fleet.Content, error) {
			for _, chunk := range contents {
				if chunk.Name == name {
					return chunk, nil
				}
			}
			return nil, fmt.Errorf("read deployment: the file lacks the content %s", name)
		})
		if err != nil {
			return render.Input{}, err
		}
		return render.Input{
			BundleID: deployment.Name, ManifestID: stored.Name,
			Commit: deployment.Labels[fleet.CommitLabel], Manifest: manifest, Options: options,
		}, nil
	}
	return render.Input{}, fmt.Errorf("read deployment: BundleDeployment %s wants the content %s, which the file does not hold", deployment.Name, manifestID)
}

// deploy does what an agent does with the deployment, once.
func (f *deployFlags) deploy(ctx context.Context, s *session.Session, deployment *fleet.BundleDeployment, input render.Input) ([]*unstructured.Unstructured, error) {
	config, err := s.RESTConfig()
	if err != nil {
		return nil, err
	}
	accounts := f.agentNamespace
	if accounts == "" {
		accounts = systemNamespace
	}
	member, err := access.NewMember(config, accounts, synced.New())
	if err != nil {
		return nil, err
	}
	id := deployment.Spec.DeploymentID
	if id == "" {
		id = deployment.Spec.StagedDeploymentID
	}
	deployer := agent.NewDeployer(member, agent.Options{AgentNamespace: f.agentNamespace})
	outcome, err := deployer.Deploy(ctx, agent.Request{DeploymentID: id, Input: input})
	for _, note := range outcome.Notes {
		s.Warn("%s", note)
	}
	if err != nil {
		return nil, err
	}
	return outcome.Record.Objects, nil
}

// printObjects prints a YAML list.
func printObjects(s *session.Session, objects []*unstructured.Unstructured) error {
	list := make([]map[string]any, 0, len(objects))
	for _, object := range objects {
		list = append(list, object.Object)
	}
	text, err := yaml.Marshal(list)
	if err != nil {
		return errors.New("the objects cannot be written as YAML")
	}
	_, err = s.Out.Write(text)
	return err
}
