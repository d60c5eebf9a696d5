package kustomize

import (
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// InputFile is the name under which manifests that were rendered before reach the kustomization; it is
// the first of its resources.
const InputFile = "fleet-manifests.yaml"

// turn admits one build at a time: Kustomize keeps the OpenAPI schema of a build in variables of its own
// packages, which builds side by side would change under each other.
var turn = make(chan struct{}, 1)

// File returns the kustomization file of a folder, in any spelling Kustomize knows, or "" when there is none.
func File(tree map[string][]byte, dir string) string {
	for _, spelling := range konfig.RecognizedKustomizationFileNames() {
		if name := path.Join(dir, spelling); tree[name] != nil {
			return name
		}
	}
	return ""
}

// Build returns the YAML stream that the folder dir of the tree builds to. Names in the tree are
// relative slash paths; leading ".." reach folders beside the bundle. The input, when not empty, is added
// as the first resource. The context ends the wait for other builds, not a build that has begun.
func Build(ctx context.Context, tree map[string][]byte, dir string, input []byte) ([]byte, error) {
	select {
	case turn <- struct{}{}:
		defer func() { <-turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for kustomize: %w", ctx.Err())
	}
	dir = path.Clean(dir)
	if err := checkLocal(tree, dir); err != nil {
		return nil, err
	}
	files, err := withInput(tree, dir, input)
	if err != nil {
		return nil, err
	}
	root := mountPoint(files)
	memory := filesys.MakeFsInMemory()
	for name, data := range files {
		if err := memory.WriteFile(path.Join(root, name), data); err != nil {
			return nil, fmt.Errorf("read %s: %w", name, err)
		}
	}
	return run(memory, root, dir, orderOf(tree[File(tree, dir)]))
}

// orderOf leaves the order to a kustomization that says one; Kustomize logs when both do.
func orderOf(kustomization []byte) krusty.ReorderOption {
	var fields struct {
		SortOptions *struct{} `json:"sortOptions"`
	}
	if err := yaml.Unmarshal(kustomization, &fields); err == nil && fields.SortOptions != nil {
		return krusty.ReorderOptionUnspecified
	}
	return krusty.ReorderOptionNone
}

func run(memory filesys.FileSystem, root, dir string, order krusty.ReorderOption) (out []byte, err error) {
	// Some malformed input makes Kustomize panic; that must not end the program.
	defer func() {
		if cause := recover(); cause != nil {
			out, err = nil, fmt.Errorf("kustomize build of %s failed: %v", dir, cause)
		}
	}()
	options := krusty.MakeDefaultOptions()
	options.Reorder = order
	// The memory holds the bundle and nothing else, so a file beside the built folder is fine.
	options.LoadRestrictions = types.LoadRestrictionsNone
	options.PluginConfig = types.DisabledPluginConfig()
	objects, err := krusty.MakeKustomizer(options).Run(memory, path.Join(root, dir))
	if err != nil {
		return nil, errors.New(shorten(err.Error(), root))
	}
	out, err = objects.AsYaml()
	if err != nil {
		return nil, errors.New(shorten(err.Error(), root))
	}
	return out, nil
}

// mountPoint returns the folder of the memory file system for the bundle, deep enough that every ".."
// stays below the root.
func mountPoint(files map[string][]byte) string {
	depth := 1
	for name := range files {
		ups := 0
		for strings.HasPrefix(name, "../") {
			name = name[len("../"):]
			ups++
		}
		depth = max(depth, ups+1)
	}
	return "/" + strings.Repeat("bundle/", depth)[:depth*len("bundle/")-1]
}

// withInput returns the tree with the input as first resource of the kustomization in dir.
func withInput(tree map[string][]byte, dir string, input []byte) (map[string][]byte, error) {
	if len(input) == 0 {
		return tree, nil
	}
	name := File(tree, dir)
	if name == "" {
		return nil, fmt.Errorf("no kustomization file in %s", dir)
	}
	kustomization := map[string]any{}
	if err := yaml.Unmarshal(tree[name], &kustomization); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	field := "resources"
	for key := range kustomization {
		if strings.EqualFold(key, field) {
			field = key
		}
	}
	// That it is a list was checked before.
	resources, _ := kustomization[field].([]any)
	kustomization[field] = slices.Insert(resources, 0, any(InputFile))
	edited, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	files := make(map[string][]byte, len(tree)+1)
	for file, data := range tree {
		files[file] = data
	}
	files[name] = edited
	files[path.Join(dir, InputFile)] = input
	return files, nil
}

// Kustomize repeats a patch and a plugin's configuration that it cannot read, either of which may hold a secret.
var (
	quotedPatch  = regexp.MustCompile(`(?s)from \[.*\]`)
	quotedPlugin = regexp.MustCompile("(?s) with config: `.*`")
)

// shorten takes the mount point out of Kustomize's message and keeps it to a length that fits a condition.
func shorten(message, root string) string {
	const limit = 1000
	message = strings.ReplaceAll(message, root+"/", "")
	message = strings.ReplaceAll(message, root, ".")
	// Kustomize tries every resource as file, then as folder, and reports both; the first says enough.
	if cut := strings.Index(message, "accumulation err='"); cut >= 0 {
		message = message[:cut] + message[cut+len("accumulation err='"):]
	}
	message = quotedPatch.ReplaceAllString(message, "from the patch")
	message = quotedPlugin.ReplaceAllString(message, "")
	if len(message) > limit {
		message = message[:limit] + "…"
	}
	return message
}
