package removal

import (
	"context"
	"slices"
	"strings"

	"github.com/go-logr/logr"

	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/releases"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// selfPrefix starts the names of bundles that hold the agent itself.
const selfPrefix = "fleet-agent-"

// Remover takes releases away.
type Remover struct {
	deployer       *helm.Deployer
	agentNamespace string
	log            logr.Logger
}

// NewRemover returns a remover for an agent that runs in the namespace.
func NewRemover(deployer *helm.Deployer, agentNamespace string, log logr.Logger) *Remover {
	return &Remover{deployer: deployer, agentNamespace: agentNamespace, log: log}
}

// Bundle is what is known of a bundle whose releases go.
type Bundle struct {
	Name string
	// Record is its release; nil when that has to be looked for.
	Record *releases.Record
	// Options say how it goes; nil leaves it to what the release itself says.
	Options *fleet.BundleDeploymentOptions
	// Copied says that it was last deployed with copies from the hub.
	Copied bool
	// Known saves looks at objects (apply.Knowledge).
	Known apply.Knowledge
}

// Remove removes all releases of a bundle.
func (r *Remover) Remove(ctx context.Context, bundle Bundle) error {
	records, err := r.releasesOf(ctx, bundle)
	if err != nil {
		return err
	}
	for _, record := range records {
		if r.isSelf(record) {
			r.log.Info("the agent does not uninstall itself", "bundledeployment", bundle.Name)
			continue
		}
		removal := helm.Removal{Record: record, Copies: true, Known: bundle.Known}
		if bundle.Options != nil {
			policy := releases.PolicyOf(*bundle.Options)
			removal.Policy = &policy
			removal.Copies = len(bundle.Options.DownstreamResources) > 0 || bundle.Copied
		}
		if err := r.deployer.Uninstall(ctx, removal); err != nil {
			return err
		}
		r.log.Info("uninstalled", "bundledeployment", bundle.Name, "release", record.String())
	}
	return nil
}

// releasesOf returns the releases of a bundle: the one its options name, or whatever the member has.
func (r *Remover) releasesOf(ctx context.Context, bundle Bundle) ([]releases.Record, error) {
	if bundle.Record != nil {
		return []releases.Record{*bundle.Record}, nil
	}
	if bundle.Options != nil {
		record, found, err := r.deployer.Releases().Current(ctx, bundle.Name, *bundle.Options)
		if err != nil || found {
			return []releases.Record{record}, err
		}
	}
	all, err := r.deployer.Releases().List(ctx)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(record releases.Record) bool { return record.BundleID != bundle.Name }), nil
}

func (r *Remover) isSelf(record releases.Record) bool {
	return record.Namespace == r.agentNamespace && strings.HasPrefix(record.BundleID, selfPrefix)
}

// RemoveMoved removes a release that a bundle had under another name or in another namespace; what its present
// release holds stays. The options are those by which that was deployed.
func (r *Remover) RemoveMoved(ctx context.Context, former, present releases.Record, options fleet.BundleDeploymentOptions, known apply.Knowledge) error {
	removal := helm.Removal{
		Record: former, Keep: manifest.Keys(present.Objects), Known: known,
		Policy: &releases.Policy{KeepResources: options.KeepResources, DeleteCRDResources: options.DeleteCRDResources},
		Copies: former.Namespace != present.Namespace, // else the new release has them
	}
	if err := r.deployer.Uninstall(ctx, removal); err != nil {
		return err
	}
	r.log.Info("uninstalled", "bundledeployment", former.BundleID, "release", former.String(), "movedTo", present.String())
	return nil
}
