package diff

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// ignoreOperation hides a missing object; all other operations are RFC 6902's.
const ignoreOperation = "ignore"

// Rules are the comparePatches of a bundle, ready for use. The zero value excepts nothing.
type Rules struct {
	patches []rule
}

// ID tells rules from others; "" for those that except nothing.
func (r Rules) ID() string {
	if len(r.patches) == 0 {
		return ""
	}
	var patches []fleet.ComparePatch
	for _, rule := range r.patches {
		patches = append(patches, rule.ComparePatch)
	}
	text, err := json.Marshal(patches)
	if err != nil {
		return "unreadable"
	}
	sum := sha256.Sum256(text)
	return string(sum[:])
}

type rule struct {
	fleet.ComparePatch
	name *regexp.Regexp
}

// NewRules checks comparePatches. A name that has to be a regular expression (with op ignore) and is
// none is an error.
func NewRules(options *fleet.DiffOptions) (Rules, error) {
	var rules Rules
	if options == nil {
		return rules, nil
	}
	for i, patch := range options.ComparePatches {
		entry := rule{ComparePatch: patch}
		if entry.ignores() && patch.Name != "" {
			name, err := regexp.Compile(patch.Name)
			if err != nil {
				return Rules{}, fmt.Errorf("diff.comparePatches[%d].name: %w", i, err)
			}
			entry.name = name
		}
		rules.patches = append(rules.patches, entry)
	}
	return rules, nil
}

// Hides says whether the bundle does not mind that the object is missing.
func (r Rules) Hides(object *unstructured.Unstructured) bool {
	for _, patch := range r.patches {
		if !patch.ignores() || patch.APIVersion != object.GetAPIVersion() ||
			patch.Kind != object.GetKind() || patch.Namespace != object.GetNamespace() {
			continue
		}
		if patch.Name == "" || patch.Name == object.GetName() || patch.name.MatchString(object.GetName()) {
			return true
		}
	}
	return false
}

// Normalize returns the object without what the rules except. Pointers match kinds by glob, and any
// name or namespace when theirs is empty; operations match exactly, and apply together or not at all.
func (r Rules) Normalize(object *unstructured.Unstructured) *unstructured.Unstructured {
	for _, patch := range r.patches {
		if patch.matchesLoosely(object) {
			for _, pointer := range patch.JsonPointers {
				remove(object.Object, pointer)
			}
		}
		if patch.matchesExactly(object) {
			object = patch.operate(object)
		}
	}
	return object
}

func (r rule) ignores() bool {
	for _, operation := range r.Operations {
		if operation.Op == ignoreOperation {
			return true
		}
	}
	return false
}

func (r rule) matchesLoosely(object *unstructured.Unstructured) bool {
	if len(r.JsonPointers) == 0 {
		return false
	}
	wanted := schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
	kind := object.GroupVersionKind()
	return glob(wanted.Group, kind.Group) && glob(wanted.Kind, kind.Kind) &&
		(r.Namespace == "" || r.Namespace == object.GetNamespace()) &&
		(r.Name == "" || r.Name == object.GetName())
}

func (r rule) matchesExactly(object *unstructured.Unstructured) bool {
	return len(r.Operations) > 0 && !r.ignores() &&
		r.APIVersion == object.GetAPIVersion() && r.Kind == object.GetKind() &&
		r.Namespace == object.GetNamespace() && r.Name == object.GetName()
}

func glob(pattern, text string) bool {
	matched, err := path.Match(pattern, text)
	return err == nil && matched
}

// operate applies the operations. One that removes what is not there has nothing to do; when another
// fails, the object stays as it was.
func (r rule) operate(object *unstructured.Unstructured) *unstructured.Unstructured {
	var operations []map[string]any
	for _, operation := range r.Operations {
		fields := map[string]any{"op": operation.Op, "path": operation.Path}
		if operation.Op != "remove" {
			fields["value"] = operationValue(operation.Value)
		}
		operations = append(operations, fields)
	}
	changed, err := applyOperations(object, operations)
	if err != nil {
		return object
	}
	return changed
}

func applyOperations(object *unstructured.Unstructured, operations []map[string]any) (*unstructured.Unstructured, error) {
	text, err := json.Marshal(operations)
	if err != nil {
		return nil, err
	}
	patch, err := jsonpatch.DecodePatch(text)
	if err != nil {
		return nil, err
	}
	before, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	options := jsonpatch.NewApplyOptions()
	options.AllowMissingPathOnRemove = true
	after, err := patch.ApplyWithOptions(before, options)
	if err != nil {
		return nil, err
	}
	changed := &unstructured.Unstructured{}
	return changed, changed.UnmarshalJSON(after)
}

// operationValue reads a value as JSON where it is some, else as the text it is.
func operationValue(text string) any {
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		return value
	}
	return text
}

// remove takes out what an RFC 6901 pointer leads to, if it is there.
func remove(root map[string]any, pointer string) {
	steps := strings.Split(pointer, "/")
	if len(steps) < 2 || steps[0] != "" {
		return
	}
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	var current any = root
	setParent := func(any) {}
	for i, step := range steps[1:] {
		step = unescape.Replace(step)
		last := i == len(steps)-2
		switch container := current.(type) {
		case map[string]any:
			if last {
				delete(container, step)
				return
			}
			setParent = func(value any) { container[step] = value }
			current = container[step]
		case []any:
			at, err := strconv.Atoi(step)
			if err != nil || at < 0 || at >= len(container) {
				return
			}
			if last {
				setParent(append(container[:at:at], container[at+1:]...))
				return
			}
			setParent = func(value any) { container[at] = value }
			current = container[at]
		default:
			return
		}
	}
}
