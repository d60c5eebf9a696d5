package helm

import (
	"context"
	"errors"
	"fmt"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/copies"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/kubeclient"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/releases"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/namespace"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	"github.com/fairlead-dev/fairlead/pkg/agent/records"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// Removal says how a release is taken away.
type Removal struct {
	// Record names the release.
	Record releases.Record
	// Policy is what the bundle's options say now; nil leaves it to what they said when it was deployed.
	Policy *releases.Policy
	// Copies says that there may be copies of Secrets and ConfigMaps from the hub.
	Copies bool
	// Keep are objects that stay because somebody else has them now.
	Keep map[manifest.Key]bool
	// Known saves looks at objects (apply.Knowledge); nil knows nothing.
	Known apply.Knowledge
}

// Uninstall removes a release. Only objects that carry the bundle's mark are deleted. It may be called
// again after it was interrupted, and for a release that is gone.
func (d *Deployer) Uninstall(ctx context.Context, removal Removal) error {
	if err := d.uninstall(ctx, removal); err != nil {
		return fmt.Errorf("uninstall release %s/%s: %w", removal.Record.Namespace, removal.Record.Name, err)
	}
	return nil
}

func (d *Deployer) uninstall(ctx context.Context, removal Removal) error {
	self, err := d.member.Self()
	if err != nil {
		return err
	}
	stored := records.For(self.Clients.CoreV1().Secrets(removal.Record.Namespace), nil)
	revisions, err := records.History(stored, removal.Record.Name)
	if err != nil {
		return err
	}
	last := removal.Record
	if len(revisions) > 0 {
		if last, err = d.releases.Record(revisions[len(revisions)-1]); err != nil {
			return err
		}
	}
	policy := last.Policy
	if removal.Policy != nil {
		policy = *removal.Policy
	}
	set := names.ObjectSet(removal.Record.BundleID, d.options.AgentScope)
	claim := ownership.Claim{
		SetID: set, SetHash: names.ObjectSetHash(set),
		Release: removal.Record.Name, ReleaseNamespace: removal.Record.Namespace,
	}
	if len(revisions) > 0 && last.BundleID == removal.Record.BundleID { // else somebody else's by now
		if err := d.uninstallRevisions(ctx, stored, revisions, last, removal, policy, claim); err != nil {
			return err
		}
	}
	d.member.Memory().Forget(claim.SetHash)
	if policy.KeepResources {
		return nil
	}
	return d.cleanUp(ctx, last, removal, policy, claim)
}

// cleanUp removes what is beside a release: copies from the hub and its namespace.
func (d *Deployer) cleanUp(ctx context.Context, last releases.Record, removal Removal, policy releases.Policy, claim ownership.Claim) error {
	if !removal.Copies && !policy.DeleteNamespace {
		return nil
	}
	// As it was last deployed; looking for its records is the agent's own business.
	identity, err := d.member.As(ctx, last.ServiceAccount)
	if err != nil {
		return err
	}
	if removal.Copies {
		copied := copies.Set{Identity: identity, Claim: claim, BundleID: removal.Record.BundleID, Namespace: removal.Record.Namespace}
		if err := copied.Remove(ctx); err != nil {
			return err
		}
	}
	if policy.DeleteNamespace {
		return namespace.Delete(ctx, identity, removal.Record.Namespace, claim)
	}
	return nil
}

func (d *Deployer) uninstallRevisions(ctx context.Context, stored *storage.Storage, revisions []*release.Release, last releases.Record, removal Removal, policy releases.Policy, claim ownership.Claim) error {
	if policy.KeepResources {
		return records.Forget(stored, revisions)
	}
	identity, err := d.member.As(ctx, last.ServiceAccount)
	if err != nil {
		return err
	}
	writer := kubeclient.New(ctx, identity, claim, kubeclient.Options{
		Namespace: last.Namespace, Keep: removal.Keep, Known: removal.Known, DeleteDefinitions: policy.DeleteCRDResources,
	})
	// Objects that only an unfinished older revision holds; the newest says what becomes of the others.
	// Helm deletes the others, between its hooks.
	former, err := d.releases.Former(revisions, last.Objects)
	if err != nil {
		return err
	}
	if err := writer.DeleteAll(former); err != nil {
		return err
	}
	if self, err := d.member.Self(); err != nil {
		return err
	} else if identity != self {
		stored = records.For(identity.Clients.CoreV1().Secrets(last.Namespace), nil)
	}
	uninstall := action.NewUninstall(d.configuration(identity, stored, writer))
	uninstall.Timeout = defaultTimeout
	uninstall.IgnoreNotFound = true
	_, err = uninstall.Run(last.Name)
	return errors.Join(err, writer.Failure())
}

// Pruning says which objects a bundle has dropped.
type Pruning struct {
	BundleID string
	Options  fleet.BundleDeploymentOptions
	Objects  []*unstructured.Unstructured
	// Known saves looks at objects (apply.Knowledge); nil knows nothing.
	Known apply.Knowledge
}

// Prune deletes dropped objects that still carry the bundle's mark and that nothing keeps.
func (d *Deployer) Prune(ctx context.Context, pruning Pruning) error {
	if len(pruning.Objects) == 0 {
		return nil
	}
	identity, err := d.member.As(ctx, pruning.Options.ServiceAccount)
	if err != nil {
		return err
	}
	return kubeclient.New(ctx, identity, d.Claim(pruning.BundleID, pruning.Options), kubeclient.Options{
		DeleteDefinitions: pruning.Options.DeleteCRDResources, Known: pruning.Known,
	}).DeleteAll(pruning.Objects)
}
