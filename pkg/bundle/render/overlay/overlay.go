package overlay

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/pkg/bundle/render/manifest"
)

// Folder holds the overlays of a bundle, a folder each.
const Folder = "overlays/"

const patchMark = "_patch."

// Apply returns the tree with the named overlays laid over it and the folder of overlays left out. The
// tree itself is not changed.
func Apply(tree map[string][]byte, overlays []string) (map[string][]byte, error) {
	result := map[string][]byte{}
	for name, data := range tree {
		if !strings.HasPrefix(name, Folder) {
			result[name] = data
		}
	}
	for _, overlay := range overlays {
		if err := applyOne(tree, result, overlay); err != nil {
			return nil, err
		}
	}
	return result, nil
}

func applyOne(tree, result map[string][]byte, overlay string) error {
	prefix := Folder + strings.Trim(path.Clean(overlay), "/") + "/"
	var patches []string
	found := false
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		relative, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		found = true
		if isPatch(name) {
			patches = append(patches, relative)
			continue
		}
		result[relative] = tree[name]
	}
	if !found {
		return fmt.Errorf("yaml.overlays names %q, but there is no file below %s", overlay, prefix)
	}
	for _, relative := range patches {
		target := patchTarget(relative)
		base, ok := result[target]
		if !ok {
			return fmt.Errorf("%s%s: there is no %s to patch", prefix, relative, target)
		}
		patched, err := patchFile(target, base, tree[prefix+relative])
		if err != nil {
			return fmt.Errorf("%s%s: %w", prefix, relative, err)
		}
		result[target] = patched
	}
	return nil
}

// isPatch says whether a file patches another, by its name.
func isPatch(name string) bool {
	return strings.Contains(path.Base(name), patchMark) && manifest.IsFile(name)
}

func patchTarget(name string) string {
	dir, base := path.Split(name)
	return dir + strings.Replace(base, patchMark, ".", 1)
}
