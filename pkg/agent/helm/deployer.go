package helm

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/copies"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/kubeclient"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/releases"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/values"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/namespace"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	"github.com/fairlead-dev/fairlead/pkg/agent/records"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// Options of a deployer.
type Options struct {
	// AgentNamespace and AgentScope tell this agent's releases from those of others.
	AgentNamespace, AgentScope string
	Log                        logr.Logger
}

// Deployer deploys bundles as Helm releases. Its methods may be called from several goroutines, for one
// bundle by one at a time.
type Deployer struct {
	member   *access.Member
	options  Options
	releases *releases.Reader
}

// NewDeployer returns a deployer for a member.
func NewDeployer(member *access.Member, options Options) *Deployer {
	agent := releases.Agent{Namespace: options.AgentNamespace, Scope: options.AgentScope}
	return &Deployer{member: member, options: options, releases: releases.NewReader(member, agent)}
}

// Releases returns what reads the releases of the member.
func (d *Deployer) Releases() *releases.Reader { return d.releases }

// Request is one deployment of a bundle.
type Request struct {
	// DeploymentID is recorded with the release: a release that carries it is not deployed again.
	DeploymentID string
	// Input is the bundle; values from the member (valuesFrom) are still missing.
	Input render.Input
	// Copies are Secrets and ConfigMaps from the hub that go to the release namespace, by kind and name.
	Copies []*unstructured.Unstructured
	// CopiedBefore says that an earlier deployment may have left copies that are not wanted now.
	CopiedBefore bool
	// Yields says whether another set lets go of an object (ownership.Claim).
	Yields func(setHash string, key manifest.Key) bool
	// Leaves says whether another bundle is gone or going, so that its release may be continued. Nil means no.
	Leaves func(bundleID string) bool
	// Spares says whether an object that left the manifest has to stay for now, because somebody else may
	// take it over; it is returned in Outcome.Spared. Nil means that none has to.
	Spares func(manifest.Key) bool
	// Known saves looks at objects of which enough is known (apply.Knowledge); nil knows nothing.
	Known apply.Knowledge
}

// Outcome is what a deployment left on the member.
type Outcome struct {
	Record releases.Record
	// Live are the objects as the API server answered, by key.
	Live map[manifest.Key]*unstructured.Unstructured
	// Spared are objects that left the manifest and were not deleted because of Request.Spares.
	Spared []*unstructured.Unstructured
	// Notes are worth telling a person: objects that had to be merged.
	Notes []string
}

// Claim returns in whose name the objects of a bundle are written.
func (d *Deployer) Claim(bundleID string, options fleet.BundleDeploymentOptions) ownership.Claim {
	set := names.ObjectSet(bundleID, d.options.AgentScope)
	return ownership.Claim{
		SetID: set, SetHash: names.ObjectSetHash(set),
		Release: render.ReleaseName(bundleID, options), ReleaseNamespace: render.ReleaseNamespace(options),
		TakeOwnership: options.Helm != nil && options.Helm.TakeOwnership,
		Recorded:      map[manifest.Key]bool{},
	}
}

// Deploy installs or upgrades the bundle's release and returns what is there now. It waits only if the
// options set a timeout. On an error the previous objects stay; those that were written stay too, unless
// the options ask for atomic.
func (d *Deployer) Deploy(ctx context.Context, request Request) (Outcome, error) {
	bundleID, options := request.Input.BundleID, request.Input.Options
	outcome, err := d.deploy(ctx, request)
	if err != nil {
		name := render.ReleaseNamespace(options) + "/" + render.ReleaseName(bundleID, options)
		return outcome, fmt.Errorf("deploy release %s: %w", name, err)
	}
	return outcome, nil
}

func (d *Deployer) deploy(ctx context.Context, request Request) (Outcome, error) {
	input := request.Input
	identity, err := d.member.As(ctx, input.Options.ServiceAccount)
	if err != nil {
		return Outcome{}, err
	}
	claim := d.Claim(input.BundleID, input.Options)
	claim.Yields, claim.Abandoned = request.Yields, d.abandoned(ctx)
	if err := namespace.Ensure(ctx, identity, input.Options, claim); err != nil {
		return Outcome{}, err
	}
	copied := copies.Set{Identity: identity, Claim: claim, BundleID: input.BundleID, Namespace: render.ReleaseNamespace(input.Options)}
	if err := copied.Write(ctx, request.Copies, request.CopiedBefore); err != nil {
		return Outcome{}, err
	}
	if input.Options, err = values.Merge(ctx, identity, input.Options); err != nil {
		return Outcome{}, err
	}
	marks := render.Marks{AgentNamespace: d.options.AgentNamespace, AgentScope: d.options.AgentScope}
	built, err := render.Build(ctx, input, marks, scoper{d.member})
	if err != nil {
		return Outcome{}, err
	}
	releases.Note(built.Chart.Metadata.Annotations, request.DeploymentID, input.Options)
	stored := records.For(identity.Clients.CoreV1().Secrets(built.Namespace), built.Place)
	revisions, err := records.History(stored, built.Name)
	if err != nil {
		return Outcome{}, err
	}
	if err := foreignRelease(revisions, request, claim.TakeOwnership); err != nil {
		return Outcome{}, err
	}
	left, err := d.resume(stored, revisions)
	if err != nil {
		return Outcome{}, err
	}
	claim.Recorded = left.recorded
	writer := kubeclient.New(ctx, identity, claim, kubeclient.Options{
		Namespace: built.Namespace, Force: input.Options.Helm != nil && input.Options.Helm.Force, Leftovers: left.unsettled,
		Spares: request.Spares, Known: request.Known, DeleteDefinitions: input.Options.DeleteCRDResources,
	})
	deployed, err := d.run(ctx, operation{identity, writer, stored, built, input}, left.install)
	if err != nil {
		// Helm's own rollback of an atomic upgrade knows no bound.
		trimErr := records.Trim(stored, built.Name, settingsOf(input.Options).maxHistory)
		return Outcome{}, errors.Join(explain(err), trimErr)
	}
	return d.outcome(deployed, claim, writer)
}

// foreignRelease refuses a release of the same name that another bundle, agent or person made. A person's is taken
// with ownership; another bundle's is continued when that bundle leaves, as one does that is renamed.
func foreignRelease(revisions []*release.Release, request Request, takeOwnership bool) error {
	if len(revisions) == 0 {
		return nil
	}
	last := revisions[len(revisions)-1]
	owner := ""
	if last.Chart != nil && last.Chart.Metadata != nil {
		owner = last.Chart.Metadata.Annotations[fleet.ReleaseBundleIDAnnotation]
	}
	switch {
	case owner == request.Input.BundleID:
		return nil
	case owner == "" && takeOwnership:
		return nil
	case owner == "":
		return fault.New(fault.Stalled, ownership.ReasonNotOwned,
			"release %s/%s exists and was not made by a bundle; set helm.takeOwnership to adopt it", last.Namespace, last.Name)
	case request.Leaves != nil && request.Leaves(owner):
		return nil
	}
	return fault.New(fault.Stalled, ownership.ReasonOwnedByOther, "release %s/%s belongs to bundle %s", last.Namespace, last.Name, owner)
}

// remains are what earlier attempts left of a release.
type remains struct {
	// install says that nothing was ever installed completely, so that there is nothing to upgrade.
	install bool
	// recorded are the objects that are the bundle's because a revision holds them.
	recorded map[manifest.Key]bool
	// unsettled are the objects of revisions that are newer than the last complete one.
	unsettled []*unstructured.Unstructured
}

// resume looks at what earlier attempts left. A revision that was under way when its agent died is
// marked as failed, so that Helm goes on from there; objects that only failed revisions hold are
// noted, because Helm would forget them.
func (d *Deployer) resume(stored *storage.Storage, revisions []*release.Release) (remains, error) {
	left := remains{install: true, recorded: map[manifest.Key]bool{}}
	settled := -1
	for i, revision := range revisions {
		switch revision.Info.Status {
		case release.StatusDeployed, release.StatusSuperseded:
			left.install, settled = false, i
		}
	}
	for i, revision := range revisions {
		objects, err := d.releases.Objects(revision)
		if err != nil {
			return left, err
		}
		maps.Copy(left.recorded, manifest.Claimed(objects))
		if i > settled {
			left.unsettled = append(left.unsettled, objects...)
		}
	}
	if len(revisions) == 0 {
		return left, nil
	}
	last := revisions[len(revisions)-1]
	if last.Info.Status.IsPending() || last.Info.Status == release.StatusUninstalling || last.Info.Status == release.StatusUnknown {
		last.SetStatus(release.StatusFailed, "Interrupted; resumed by the next revision")
		if err := stored.Update(last); err != nil {
			return left, fmt.Errorf("resume release %s/%s: %w", last.Namespace, last.Name, err)
		}
	}
	return left, nil
}

func (d *Deployer) outcome(deployed *release.Release, claim ownership.Claim, writer *kubeclient.Client) (Outcome, error) {
	record, err := d.releases.Record(deployed)
	outcome := Outcome{Record: record, Spared: writer.Spared(), Live: map[manifest.Key]*unstructured.Unstructured{}}
	wanted := manifest.Keys(record.Objects)
	d.member.Memory().Retain(claim.SetHash, wanted)
	for key, result := range writer.Results() {
		if !wanted[key] || result.Object == nil {
			continue
		}
		outcome.Live[key] = result.Object
		if result.Merged {
			outcome.Notes = append(outcome.Notes, key.String()+": "+result.Note)
		}
	}
	return outcome, err
}

// abandoned returns whether a bundle's release is gone. Its records are looked for as the agent, which tells no
// more of them than that.
func (d *Deployer) abandoned(ctx context.Context) func(namespace, release string) bool {
	return func(namespace, release string) bool {
		self, err := d.member.Self()
		if err != nil {
			return false
		}
		records, err := self.Clients.CoreV1().Secrets(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: labels.Set{"owner": "helm", "name": release}.String(), Limit: 1,
		})
		return err == nil && len(records.Items) == 0
	}
}
