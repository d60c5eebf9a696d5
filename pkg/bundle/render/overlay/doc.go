// Package overlay lays the folders of yaml.overlays over a tree of plain manifests. A file
// overlays/NAME/p/f.yaml replaces or adds p/f.yaml; overlays/NAME/p/f_patch.yaml patches p/f.yaml, by a
// JSON patch when it is a list, by a strategic merge when Kubernetes has a type for the object, else
// by a JSON merge patch.
//
// Overlays act in the order they are listed; inside one, files are replaced before files are patched, so
// that replacing and patching the same file always means the same. A patch that finds nothing to patch,
// and an overlay that has no files, are errors.
//
// Start reading with Apply.
package overlay
