package helm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/namespace"
	"github.com/fairlead-dev/fairlead/pkg/agent/records"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

const (
	// defaultMaxHistory bounds the kept revisions where a bundle does not say.
	defaultMaxHistory = 2
	// defaultTimeout bounds hooks where a bundle sets no timeout.
	defaultTimeout = 5 * time.Minute
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
	member  *access.Member
	options Options

	mu      sync.Mutex
	foreign map[types.UID]string // bundle of records without our labels; "" for releases of others
}

// NewDeployer returns a deployer for a member.
func NewDeployer(member *access.Member, options Options) *Deployer {
	return &Deployer{member: member, options: options, foreign: map[types.UID]string{}}
}

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
	// Yields says whether another set lets go of an object (apply.Claim).
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
	Record Record
	// Live are the objects as the API server answered, by key.
	Live map[manifest.Key]*unstructured.Unstructured
	// Spared are objects that left the manifest and were not deleted because of Request.Spares.
	Spared []*unstructured.Unstructured
	// Notes are worth telling a person: objects that had to be merged.
	Notes []string
}

// Claim returns in whose name the objects of a bundle are written.
func (d *Deployer) Claim(bundleID string, options fleet.BundleDeploymentOptions) apply.Claim {
	set := names.ObjectSet(bundleID, d.options.AgentScope)
	return apply.Claim{
		SetID: set, SetHash: names.ObjectSetHash(set),
		Release: render.ReleaseName(bundleID, options), ReleaseNamespace: render.ReleaseNamespace(options),
		TakeOwnership: options.Helm != nil && options.Helm.TakeOwnership,
		Recorded:      map[manifest.Key]bool{},
	}
}

// Current returns what is installed of a bundle, and false when there is nothing: the revision that was
// last installed completely, or the newest if none was. Its Deployed is false when a newer attempt
// failed or was cut off.
func (d *Deployer) Current(ctx context.Context, bundleID string, options fleet.BundleDeploymentOptions) (Record, bool, error) {
	identity, err := d.member.As(ctx, options.ServiceAccount)
	if err != nil {
		return Record{}, false, err
	}
	stored := records.For(identity.Clients.CoreV1().Secrets(render.ReleaseNamespace(options)), nil)
	revisions, err := records.History(stored, render.ReleaseName(bundleID, options))
	if err != nil || len(revisions) == 0 {
		return Record{}, false, err
	}
	newest := revisions[len(revisions)-1]
	installed := newest
	for _, revision := range slices.Backward(revisions) {
		if status := revision.Info.Status; status == release.StatusDeployed || status == release.StatusSuperseded {
			installed = revision
			break
		}
	}
	record, err := d.recordOf(installed)
	if err != nil || record.BundleID != bundleID {
		return Record{}, false, err
	}
	record.Deployed = newest.Info.Status == release.StatusDeployed
	record.Former, err = d.former(revisions, record.Objects)
	return record, true, err
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
	if err := d.copy(ctx, identity, request, claim); err != nil {
		return Outcome{}, err
	}
	if input.Options, err = withMemberValues(ctx, identity, input.Options); err != nil {
		return Outcome{}, err
	}
	marks := render.Marks{AgentNamespace: d.options.AgentNamespace, AgentScope: d.options.AgentScope}
	built, err := render.Build(ctx, input, marks, scoper{d.member})
	if err != nil {
		return Outcome{}, err
	}
	note(built.Chart.Metadata.Annotations, request.DeploymentID, input.Options)
	stored := records.For(identity.Clients.CoreV1().Secrets(built.Namespace), built.Place)
	revisions, err := records.History(stored, built.Name)
	if err != nil {
		return Outcome{}, err
	}
	if err := foreignRelease(revisions, request, claim.TakeOwnership); err != nil {
		return Outcome{}, err
	}
	writer := &client{
		ctx: ctx, identity: identity, claim: claim, namespace: built.Namespace,
		force: input.Options.Helm != nil && input.Options.Helm.Force, spares: request.Spares, known: request.Known,
		deleteDefinitions: input.Options.DeleteCRDResources,
		results:           map[manifest.Key]apply.Result{},
	}
	resume, err := d.resume(stored, revisions, writer)
	if err != nil {
		return Outcome{}, err
	}
	deployed, err := d.run(ctx, writer, stored, built, input, resume)
	if err != nil {
		// Helm's own rollback of an atomic upgrade knows no bound.
		trimErr := records.Trim(stored, built.Name, settingsOf(input.Options).maxHistory)
		return Outcome{}, errors.Join(explain(err), trimErr)
	}
	return d.outcome(deployed, writer)
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
		return fault.New(fault.Stalled, apply.ReasonNotOwned,
			"release %s/%s exists and was not made by a bundle; set helm.takeOwnership to adopt it", last.Namespace, last.Name)
	case request.Leaves != nil && request.Leaves(owner):
		return nil
	}
	return fault.New(fault.Stalled, apply.ReasonOwnedByOther, "release %s/%s belongs to bundle %s", last.Namespace, last.Name, owner)
}

// resume looks at what earlier attempts left. A revision that was under way when its agent died is
// marked as failed, so that Helm goes on from there; objects that only failed revisions hold are
// noted, because Helm would forget them. It says whether to install (again) rather than upgrade.
func (d *Deployer) resume(stored *storage.Storage, revisions []*release.Release, writer *client) (install bool, err error) {
	install = true
	settled := -1
	for i, revision := range revisions {
		switch revision.Info.Status {
		case release.StatusDeployed, release.StatusSuperseded:
			install, settled = false, i
		}
	}
	for i, revision := range revisions {
		objects, err := d.objectsIn(revision)
		if err != nil {
			return install, err
		}
		for _, object := range objects {
			if manifest.Claims(object) {
				writer.claim.Recorded[manifest.KeyOf(object)] = true
			}
		}
		if i > settled {
			writer.leftovers = append(writer.leftovers, objects...)
		}
	}
	if len(revisions) == 0 {
		return install, nil
	}
	last := revisions[len(revisions)-1]
	if last.Info.Status.IsPending() || last.Info.Status == release.StatusUninstalling || last.Info.Status == release.StatusUnknown {
		last.SetStatus(release.StatusFailed, "Interrupted; resumed by the next revision")
		if err := stored.Update(last); err != nil {
			return install, fmt.Errorf("resume release %s/%s: %w", last.Namespace, last.Name, err)
		}
	}
	return install, nil
}

func (d *Deployer) run(ctx context.Context, writer *client, stored *storage.Storage, built *render.Release, input render.Input, install bool) (*release.Release, error) {
	if err := writer.applyDefinitions(built.Chart); err != nil {
		return nil, err
	}
	capabilities, err := d.member.Capabilities(asksForCapabilities(built.Chart))
	if err != nil {
		return nil, err
	}
	config := &action.Configuration{
		RESTClientGetter: writer.identity, Releases: stored, KubeClient: writer, Capabilities: capabilities,
		Log: func(format string, args ...any) {
			d.options.Log.V(2).Info("helm", "message", fmt.Sprintf(format, args...))
		},
	}
	// Helm must not be told that the context ended: it would record a failure while its own goroutine
	// goes on. Requests end with the context, and Helm with them.
	whole := context.WithoutCancel(ctx)
	if install {
		return d.install(whole, config, built, input)
	}
	return d.upgrade(whole, config, built, input)
}

func (d *Deployer) install(ctx context.Context, config *action.Configuration, built *render.Release, input render.Input) (*release.Release, error) {
	settings := settingsOf(input.Options)
	config.Releases.MaxHistory = settings.maxHistory
	install := action.NewInstall(config)
	install.ReleaseName, install.Namespace = built.Name, built.Namespace
	install.Replace = true // of failed revisions
	install.SkipCRDs = true
	install.DisableOpenAPIValidation = true
	install.Timeout, install.Wait, install.WaitForJobs = settings.timeout, settings.wait, settings.waitForJobs
	install.Atomic = settings.atomic
	install.EnableDNS = !built.DisableDNS
	install.SkipSchemaValidation = built.SkipSchemaValidation
	install.PostRenderer = built.PostRenderer
	install.Labels = d.labelsFor(input.BundleID)
	return install.RunWithContext(ctx, built.Chart, built.Values)
}

func (d *Deployer) upgrade(ctx context.Context, config *action.Configuration, built *render.Release, input render.Input) (*release.Release, error) {
	settings := settingsOf(input.Options)
	upgrade := action.NewUpgrade(config)
	upgrade.Namespace = built.Namespace
	upgrade.SkipCRDs = true
	upgrade.DisableOpenAPIValidation = true
	upgrade.ResetValues = true
	upgrade.MaxHistory = settings.maxHistory
	upgrade.Timeout, upgrade.Wait, upgrade.WaitForJobs = settings.timeout, settings.wait, settings.waitForJobs
	upgrade.Atomic = settings.atomic
	upgrade.EnableDNS = !built.DisableDNS
	upgrade.SkipSchemaValidation = built.SkipSchemaValidation
	upgrade.PostRenderer = built.PostRenderer
	upgrade.Labels = d.labelsFor(input.BundleID)
	return upgrade.RunWithContext(ctx, built.Name, built.Chart, built.Values)
}

func (d *Deployer) outcome(deployed *release.Release, writer *client) (Outcome, error) {
	record, err := d.recordOf(deployed)
	outcome := Outcome{Record: record, Spared: writer.spared, Live: map[manifest.Key]*unstructured.Unstructured{}}
	wanted := map[manifest.Key]bool{}
	for _, object := range record.Objects {
		wanted[manifest.KeyOf(object)] = true
	}
	d.member.Memory().Retain(writer.claim.SetHash, wanted)
	for key, result := range writer.results {
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

type settings struct {
	timeout                   time.Duration
	wait, waitForJobs, atomic bool
	maxHistory                int
}

func settingsOf(options fleet.BundleDeploymentOptions) settings {
	s := settings{timeout: defaultTimeout, maxHistory: defaultMaxHistory}
	helm := options.Helm
	if helm == nil {
		return s
	}
	if helm.TimeoutSeconds > 0 {
		s.timeout, s.wait = time.Duration(helm.TimeoutSeconds)*time.Second, true
	}
	if helm.MaxHistory > 0 {
		s.maxHistory = helm.MaxHistory
	}
	s.waitForJobs, s.atomic = helm.WaitForJobs, helm.Atomic
	return s
}

// explain gives Helm's own errors a class: what a chart renders wrongly does so again. Errors that
// have a class, or come from an API server, keep theirs.
func explain(err error) error {
	var classified *fault.Error
	if errors.As(err, &classified) || isFromServer(err) {
		return err
	}
	return fault.Wrap(fault.Stalled, "HelmFailed", err)
}

// scoper tells the renderer the scope of the member's kinds.
type scoper struct{ member *access.Member }

// Namespaced implements render.Scoper.
func (s scoper) Namespaced(kind schema.GroupKind) (namespaced, known bool) {
	mapping, err := s.member.Mapper().RESTMapping(kind)
	if err != nil {
		return render.BuiltIn{}.Namespaced(kind)
	}
	return mapping.Scope.Name() == "namespace", true
}
