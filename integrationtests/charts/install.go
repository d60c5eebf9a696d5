package charts

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/release"
	"helm.sh/helm/v3/pkg/releaseutil"
	"helm.sh/helm/v3/pkg/storage/driver"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"
)

// historyKept of each release.
const historyKept = 3

// Dir returns the folder of one of the repository's charts, found from the working directory upwards.
func Dir(name string) (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find chart %s: %w", name, err)
	}
	for {
		path := filepath.Join(dir, "charts", name)
		if _, err := os.Stat(filepath.Join(path, "Chart.yaml")); err == nil {
			return path, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", fmt.Errorf("find chart %s: no folder above holds charts/%s", name, name)
		}
		dir = parent
	}
}

// InstallHub installs the charts of a hub in a namespace: the definitions, and the chart fleet with the values.
func InstallHub(ctx context.Context, config *rest.Config, namespace string, values map[string]any) error {
	for _, chart := range []struct {
		name   string
		values map[string]any
	}{{"fleet-crd", nil}, {"fleet", values}} {
		dir, err := Dir(chart.name)
		if err != nil {
			return err
		}
		if _, err := Install(ctx, config, dir, chart.name, namespace, chart.values); err != nil {
			return err
		}
	}
	return nil
}

// Install installs the chart in a folder as a release, or upgrades the release if it is there, and
// makes the namespace if it is not. It returns when the API server has all objects, and serves the kinds among them.
func Install(ctx context.Context, config *rest.Config, chartDir, releaseName, namespace string, values map[string]any) (*release.Release, error) {
	loaded, err := loader.LoadDir(chartDir)
	if err != nil {
		return nil, fmt.Errorf("load chart %s: %w", chartDir, err)
	}
	var helm action.Configuration
	if err := helm.Init(newGetter(config, namespace), namespace, "secret", func(string, ...any) {}); err != nil {
		return nil, fmt.Errorf("connect helm: %w", err)
	}
	installed, err := apply(ctx, &helm, loaded, releaseName, namespace, values)
	if err != nil {
		return nil, fmt.Errorf("install release %s/%s: %w", namespace, releaseName, err)
	}
	if err := awaitKinds(ctx, config, installed.Manifest); err != nil {
		return nil, fmt.Errorf("install release %s/%s: %w", namespace, releaseName, err)
	}
	return installed, nil
}

// awaitKinds waits until all kinds that a manifest defines are served: they come one after the other, and a program that
// starts in between ends because it lacks some.
func awaitKinds(ctx context.Context, config *rest.Config, manifest string) error {
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	for _, text := range releaseutil.SplitManifests(manifest) {
		var definition struct {
			Kind string
			Spec struct {
				Group    string
				Names    struct{ Plural string }
				Versions []struct{ Name string }
			}
		}
		if err := yaml.Unmarshal([]byte(text), &definition); err != nil {
			return err
		}
		if definition.Kind != "CustomResourceDefinition" {
			continue
		}
		for _, version := range definition.Spec.Versions {
			group := schema.GroupVersion{Group: definition.Spec.Group, Version: version.Name}
			err := wait.PollUntilContextTimeout(ctx, 50*time.Millisecond, 3*time.Minute, true, func(context.Context) (bool, error) {
				served, err := client.ServerResourcesForGroupVersion(group.String())
				return err == nil && slices.ContainsFunc(served.APIResources, func(r metav1.APIResource) bool { return r.Name == definition.Spec.Names.Plural }), nil
			})
			if err != nil {
				return fmt.Errorf("%s of %s are not served: %w", definition.Spec.Names.Plural, group, err)
			}
		}
	}
	return nil
}

func apply(ctx context.Context, helm *action.Configuration, loaded *chart.Chart, releaseName, namespace string, values map[string]any) (*release.Release, error) {
	_, err := helm.Releases.Last(releaseName)
	if errors.Is(err, driver.ErrReleaseNotFound) {
		install := action.NewInstall(helm)
		install.ReleaseName, install.Namespace, install.CreateNamespace = releaseName, namespace, true
		return install.RunWithContext(ctx, loaded, values)
	}
	if err != nil {
		return nil, err
	}
	upgrade := action.NewUpgrade(helm)
	upgrade.Namespace, upgrade.MaxHistory = namespace, historyKept
	return upgrade.RunWithContext(ctx, releaseName, loaded, values)
}

// Render returns the objects a chart makes as one YAML text, without a cluster.
func Render(chartDir, releaseName, namespace string, values map[string]any) (string, error) {
	loaded, err := loader.LoadDir(chartDir)
	if err != nil {
		return "", fmt.Errorf("load chart %s: %w", chartDir, err)
	}
	install := action.NewInstall(&action.Configuration{Log: func(string, ...any) {}})
	install.ReleaseName, install.Namespace = releaseName, namespace
	install.DryRun, install.ClientOnly, install.IncludeCRDs = true, true, true
	install.KubeVersion = &chartutil.KubeVersion{Version: "v1.37.2", Major: "1", Minor: "37"}
	rendered, err := install.Run(loaded, values)
	if err != nil {
		return "", fmt.Errorf("render chart %s: %w", chartDir, err)
	}
	return rendered.Manifest, nil
}

// getter tells Helm how to reach a cluster.
type getter struct {
	config    *rest.Config
	namespace string
}

func newGetter(config *rest.Config, namespace string) *getter {
	return &getter{config: rest.CopyConfig(config), namespace: namespace}
}

// ToRESTConfig returns the access to the cluster.
func (g *getter) ToRESTConfig() (*rest.Config, error) { return g.config, nil }

// ToDiscoveryClient returns a client that asks once for what the API server has.
func (g *getter) ToDiscoveryClient() (discovery.CachedDiscoveryInterface, error) {
	client, err := discovery.NewDiscoveryClientForConfig(g.config)
	if err != nil {
		return nil, err
	}
	return memory.NewMemCacheClient(client), nil
}

// ToRESTMapper returns the mapping of the cluster's kinds, short names included.
func (g *getter) ToRESTMapper() (meta.RESTMapper, error) {
	client, err := g.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return restmapper.NewShortcutExpander(restmapper.NewDeferredDiscoveryRESTMapper(client), client, func(string) {}), nil
}

// ToRawKubeConfigLoader returns a kubeconfig that only names the release's namespace.
func (g *getter) ToRawKubeConfigLoader() clientcmd.ClientConfig {
	overrides := &clientcmd.ConfigOverrides{Context: clientcmdapi.Context{Namespace: g.namespace}}
	return clientcmd.NewDefaultClientConfig(clientcmdapi.Config{}, overrides)
}
