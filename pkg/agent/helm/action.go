package helm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/storage"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/kubeclient"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

const (
	// defaultMaxHistory bounds the kept revisions where a bundle does not say.
	defaultMaxHistory = 2
	// defaultTimeout bounds hooks where a bundle sets no timeout.
	defaultTimeout = 5 * time.Minute
)

// operation is an install or upgrade that is about to begin.
type operation struct {
	identity *access.Identity
	writer   *kubeclient.Client
	stored   *storage.Storage
	built    *render.Release
	input    render.Input
}

func (d *Deployer) run(ctx context.Context, do operation, install bool) (*release.Release, error) {
	if err := do.writer.ApplyDefinitions(do.built.Chart); err != nil {
		return nil, err
	}
	capabilities, err := d.member.Capabilities(asksForCapabilities(do.built.Chart))
	if err != nil {
		return nil, err
	}
	config := d.configuration(do.identity, do.stored, do.writer)
	config.Capabilities = capabilities
	// Helm must not be told that the context ended: it would record a failure while its own goroutine
	// goes on. Requests end with the context, and Helm with them.
	whole := context.WithoutCancel(ctx)
	if install {
		return d.install(whole, config, do.built, do.input)
	}
	return d.upgrade(whole, config, do.built, do.input)
}

// configuration is what Helm's actions work with.
func (d *Deployer) configuration(identity *access.Identity, stored *storage.Storage, writer *kubeclient.Client) *action.Configuration {
	return &action.Configuration{
		RESTClientGetter: identity, Releases: stored, KubeClient: writer,
		Log: func(format string, args ...any) {
			d.options.Log.V(2).Info("helm", "message", fmt.Sprintf(format, args...))
		},
	}
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
	install.Labels = d.releases.Labels(input.BundleID)
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
	upgrade.Labels = d.releases.Labels(input.BundleID)
	return upgrade.RunWithContext(ctx, built.Name, built.Chart, built.Values)
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

// isFromServer says whether an API server, or the way to it, caused the error.
func isFromServer(err error) bool {
	var status apierrors.APIStatus
	var network net.Error
	return errors.As(err, &status) || errors.As(err, &network) ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

// asksForCapabilities says whether what a chart renders may depend on the member's kinds.
func asksForCapabilities(root *chart.Chart) bool {
	return slices.ContainsFunc(root.Templates, func(file *chart.File) bool {
		return bytes.Contains(file.Data, []byte("Capabilities"))
	}) || slices.ContainsFunc(root.Dependencies(), asksForCapabilities)
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
