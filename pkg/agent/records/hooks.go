package records

import (
	"fmt"

	"helm.sh/helm/v3/pkg/release"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Placer puts objects where a bundle's options want them, or refuses them (render.Release.Place).
type Placer func(...*unstructured.Unstructured) error

// placeHooks puts all hooks of a revision in their place: also those that run when it is taken away, by when the
// options are gone. Helm passes hooks by its post-renderer.
func placeHooks(revision *release.Release, place Placer) error {
	if place == nil {
		return nil
	}
	for _, hook := range revision.Hooks {
		objects, err := manifest.Parse([]byte(hook.Manifest))
		if err != nil {
			return fault.Wrap(fault.Stalled, "InvalidManifest", fmt.Errorf("read hook %s: %w", hook.Path, err))
		}
		if len(objects) != 1 {
			continue // Helm makes one hook of each document
		}
		before := objects[0].GetNamespace()
		if err := place(objects...); err != nil {
			return err
		}
		if objects[0].GetNamespace() == before {
			continue
		}
		text, err := yaml.Marshal(objects[0].Object)
		if err != nil {
			return fmt.Errorf("write hook %s: %w", hook.Path, err)
		}
		hook.Manifest = string(text)
	}
	return nil
}
