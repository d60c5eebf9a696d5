package diff

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// maxOperations bounds an exception: where more fields differ, what holds them is excepted.
const maxOperations = 12

// pointer leads to a field; an element of a list is never its last step, because to take one out moves
// those behind it.
type pointer []step

type step struct {
	name    string
	element bool
}

var escape = strings.NewReplacer("~", "~0", "/", "~1")

// String returns the pointer as in RFC 6901.
func (p pointer) String() string {
	var text strings.Builder
	for _, s := range p {
		text.WriteByte('/')
		text.WriteString(escape.Replace(s.name))
	}
	return text.String()
}

// holder returns the pointer to what holds the field; false when that would be the object or all of its
// metadata.
func (p pointer) holder() (pointer, bool) {
	shorter := p[:len(p)-1]
	for len(shorter) > 0 && shorter[len(shorter)-1].element {
		shorter = shorter[:len(shorter)-1]
	}
	if len(shorter) == 0 || len(shorter) == 1 && shorter[0].name == "metadata" {
		return p, false
	}
	return shorter, true
}

// exception returns the comparePatches entry that makes two forms of an object equal: what differs is
// taken out of both.
func exception(live, restored *unstructured.Unstructured) *fleet.ComparePatch {
	pointers := differences(nil, live.Object, restored.Object)
	for len(pointers) > maxOperations {
		shortened := shorten(pointers)
		if len(shortened) >= len(pointers) && slices.EqualFunc(shortened, pointers, slices.Equal[pointer]) {
			break
		}
		pointers = shortened
	}
	entry := exceptionFor(live)
	for _, p := range pointers {
		entry.Operations = append(entry.Operations, fleet.Operation{Op: "remove", Path: p.String()})
	}
	return entry
}

// absence returns the comparePatches entry by which a bundle does not mind that the object is missing.
func absence(object *unstructured.Unstructured) *fleet.ComparePatch {
	entry := exceptionFor(object)
	entry.Operations = []fleet.Operation{{Op: ignoreOperation}}
	return entry
}

func exceptionFor(object *unstructured.Unstructured) *fleet.ComparePatch {
	return &fleet.ComparePatch{
		APIVersion: object.GetAPIVersion(), Kind: object.GetKind(),
		Namespace: object.GetNamespace(), Name: object.GetName(),
	}
}

// differences returns where two values differ, in order, as deep as it can be told.
func differences(at pointer, a, b any) []pointer {
	if equality.Semantic.DeepEqual(a, b) {
		return nil
	}
	switch left := a.(type) {
	case map[string]any:
		right, ok := b.(map[string]any)
		if !ok {
			break
		}
		return fieldDifferences(at, left, right)
	case []any:
		right, ok := b.([]any)
		if !ok || len(left) != len(right) {
			break
		}
		if found, ok := elementDifferences(at, left, right); ok {
			return found
		}
	}
	return []pointer{at}
}

func fieldDifferences(at pointer, left, right map[string]any) []pointer {
	names := maps.Clone(left)
	maps.Copy(names, right)
	var found []pointer
	for _, name := range slices.Sorted(maps.Keys(names)) {
		field := append(slices.Clone(at), step{name: name})
		before, inLeft := left[name]
		after, inRight := right[name]
		if inLeft && inRight {
			found = append(found, differences(field, before, after)...)
		} else {
			found = append(found, field)
		}
	}
	return found
}

// elementDifferences looks into elements; false when one differs that has no fields.
func elementDifferences(at pointer, left, right []any) ([]pointer, bool) {
	var found []pointer
	for i := range left {
		if equality.Semantic.DeepEqual(left[i], right[i]) {
			continue
		}
		before, isMap := left[i].(map[string]any)
		after, alsoMap := right[i].(map[string]any)
		if !isMap || !alsoMap {
			return nil, false
		}
		element := append(slices.Clone(at), step{name: strconv.Itoa(i), element: true})
		found = append(found, fieldDifferences(element, before, after)...)
	}
	return found, true
}

// shorten replaces the longest pointers by what holds them, and drops what others cover.
func shorten(pointers []pointer) []pointer {
	longest := 0
	for _, p := range pointers {
		if _, shorter := p.holder(); shorter {
			longest = max(longest, len(p))
		}
	}
	var kept []pointer
	for _, p := range pointers {
		if len(p) == longest {
			p, _ = p.holder()
		}
		if !slices.ContainsFunc(kept, p.within) {
			kept = slices.DeleteFunc(kept, func(other pointer) bool { return other.within(p) })
			kept = append(kept, p)
		}
	}
	return kept
}

// within says whether the other pointer leads to this one or to something that holds it.
func (p pointer) within(other pointer) bool {
	return len(other) <= len(p) && slices.Equal(p[:len(other)], other)
}
