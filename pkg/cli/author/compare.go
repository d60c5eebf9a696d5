package author

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pmezard/go-difflib/difflib"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/fairlead-dev/fairlead/pkg/cli/project"
)

// change is what happens to one bundle on clusters with the same change.
type change struct {
	Bundle   string         `json:"bundle"`
	Clusters []string       `json:"clusters"`
	What     string         `json:"what"`
	Objects  []objectChange `json:"objects"`
}

// objectChange is a difference of one object.
type objectChange struct {
	Object string `json:"object"`
	// What is added, removed or changed.
	What string `json:"what"`
	// Diff is in the unified format.
	Diff string `json:"diff"`
}

type pairKey struct{ bundle, cluster string }

func byKey(pairs []project.Pair) map[pairKey]project.Pair {
	result := make(map[pairKey]project.Pair, len(pairs))
	for _, pair := range pairs {
		result[pairKey{pair.Bundle.Object.Name, pair.Cluster.Key()}] = pair
	}
	return result
}

// comparison compares what two trees give.
type comparison struct {
	ctx           context.Context
	before, after *project.Renderer
	from, to      map[pairKey]project.Pair
	// complete says that everything could be read now. Else the hub would remove nothing.
	complete bool
	// warn tells what keeps no change from being shown.
	warn func(format string, args ...any)
}

// changes returns the changes, clusters with the same one together. The error is about pairs that do not
// render; they are left out.
func (c *comparison) changes() ([]change, error) {
	keys := map[pairKey]bool{}
	for key := range c.from {
		keys[key] = true
	}
	for key := range c.to {
		keys[key] = true
	}
	groups := map[string]*change{}
	var problems []error
	for _, key := range slices.SortedFunc(maps.Keys(keys), func(a, b pairKey) int {
		return cmp.Or(strings.Compare(a.bundle, b.bundle), strings.Compare(a.cluster, b.cluster))
	}) {
		found, err := c.compare(key)
		if err != nil {
			problems = append(problems, fmt.Errorf("bundle %s on cluster %s: %w", key.bundle, key.cluster, err))
			continue
		}
		if found == nil {
			continue
		}
		id := identity(found)
		if groups[id] == nil {
			groups[id] = found
		}
		groups[id].Clusters = append(groups[id].Clusters, key.cluster)
	}
	list := []change{}
	for _, group := range groups {
		list = append(list, *group)
	}
	slices.SortFunc(list, func(a, b change) int {
		return cmp.Or(strings.Compare(a.Bundle, b.Bundle), strings.Compare(a.Clusters[0], b.Clusters[0]))
	})
	return list, errors.Join(problems...)
}

// identity stands for a change whatever the cluster.
func identity(c *change) string {
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Sprint(*c)
	}
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}

// compare returns what changes for a pair, or nil.
func (c *comparison) compare(key pairKey) (*change, error) {
	before, was := c.from[key]
	after, is := c.to[key]
	if same(before, was, after, is) || !is && !c.complete {
		return nil, nil
	}
	old, oldErr := objectsOf(c.ctx, c.before, before, was)
	now, err := objectsOf(c.ctx, c.after, after, is)
	switch {
	case err != nil && oldErr != nil && err.Error() == oldErr.Error():
		c.warn("bundle %s on cluster %s does not render, before as after: %v", key.bundle, key.cluster, err)
		return nil, nil
	case err != nil:
		return nil, err
	}
	objects, err := compareObjects(old, now)
	if err != nil {
		return nil, err
	}
	found := &change{Bundle: key.bundle, Objects: objects, What: "changes"}
	switch {
	case !was:
		found.What = "is deployed"
	case !is:
		found.What = "is removed"
	case oldErr != nil:
		found.What = "renders now, and did not before"
	case len(objects) == 0:
		// The options differ in what shows in no object, and count for the deployment all the same.
		found.What = "is deployed again with the same objects"
	}
	return found, nil
}

// same says that a pair was and is there with one deployment id.
func same(before project.Pair, was bool, after project.Pair, is bool) bool {
	return was && is && before.Err == nil && after.Err == nil && before.DeploymentID == after.DeploymentID
}

// objectsOf renders a pair; one that does not exist has no objects.
func objectsOf(ctx context.Context, renderer *project.Renderer, pair project.Pair, exists bool) ([]*unstructured.Unstructured, error) {
	if !exists {
		return nil, nil
	}
	return renderer.Objects(ctx, pair)
}

func compareObjects(old, now []*unstructured.Unstructured) ([]objectChange, error) {
	before, after := byName(old), byName(now)
	names := map[string]bool{}
	for name := range before {
		names[name] = true
	}
	for name := range after {
		names[name] = true
	}
	changes := []objectChange{}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		a, b := masked(before[name], after[name])
		text, err := unified(name, a, b)
		if err != nil {
			return nil, err
		}
		if text == "" {
			continue
		}
		what := "changed"
		switch {
		case a == nil:
			what = "added"
		case b == nil:
			what = "removed"
		}
		changes = append(changes, objectChange{Object: name, What: what, Diff: text})
	}
	return changes, nil
}

func byName(objects []*unstructured.Unstructured) map[string]*unstructured.Unstructured {
	result := make(map[string]*unstructured.Unstructured, len(objects))
	for _, object := range objects {
		kind := object.GroupVersionKind().GroupKind()
		name := object.GetName()
		if object.GetNamespace() != "" {
			name = object.GetNamespace() + "/" + name
		}
		result[kind.String()+" "+name] = object
	}
	return result
}

func unified(name string, before, after map[string]any) (string, error) {
	a, err := lines(before)
	if err != nil {
		return "", fmt.Errorf("compare %s: %w", name, err)
	}
	b, err := lines(after)
	if err != nil {
		return "", fmt.Errorf("compare %s: %w", name, err)
	}
	fromName, toName := name, name
	if before == nil {
		fromName = "/dev/null"
	}
	if after == nil {
		toName = "/dev/null"
	}
	return difflib.GetUnifiedDiffString(difflib.UnifiedDiff{A: a, B: b, FromFile: fromName, ToFile: toName, Context: 3})
}

func lines(object map[string]any) ([]string, error) {
	if object == nil {
		return nil, nil
	}
	text, err := yaml.Marshal(object)
	if err != nil {
		return nil, err
	}
	return slices.Collect(strings.Lines(string(text))), nil
}

// masked returns the contents of two versions of an object, without the values of a Secret: of those only
// shows whether they differ.
func masked(before, after *unstructured.Unstructured) (a, b map[string]any) {
	if before != nil {
		a = before.Object
	}
	if after != nil {
		b = after.Object
	}
	if !isSecret(before) && !isSecret(after) {
		return a, b
	}
	return maskSecret(a, b, "before"), maskSecret(b, a, "after")
}

func isSecret(object *unstructured.Unstructured) bool {
	return object != nil && object.GetKind() == "Secret" && object.GroupVersionKind().Group == ""
}

// lastApplied is an annotation that repeats the whole object.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

func maskSecret(object, other map[string]any, which string) map[string]any {
	if object == nil {
		return nil
	}
	result := maps.Clone(object)
	for _, field := range []string{"data", "stringData"} {
		values, ok := object[field].(map[string]any)
		if !ok {
			continue
		}
		others, _ := other[field].(map[string]any)
		shown := map[string]any{}
		for key, value := range values {
			shown[key] = "(masked)"
			if there, ok := others[key]; ok && there != value {
				shown[key] = "(masked, " + which + ")"
			}
		}
		result[field] = shown
	}
	metadata, _ := object["metadata"].(map[string]any)
	if annotations, ok := metadata["annotations"].(map[string]any); ok && annotations[lastApplied] != nil {
		metadata, annotations = maps.Clone(metadata), maps.Clone(annotations)
		annotations[lastApplied] = "(masked)"
		metadata["annotations"] = annotations
		result["metadata"] = metadata
	}
	return result
}
