package fieldpath

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
)

// listNames are the fields by which members of lists are usually told apart, the first that a member has.
var listNames = []string{"name", "key", "id", "type", "mountPath", "containerPort", "port"}

// Carry makes the fields of to that the path leads to what they are in from; a field that from lacks is taken
// out of to. Fields that to does not have stay away: what an object does not set is none of its business. With
// unless, only fields that are equal in to and unless are carried. From and unless are not changed, and to
// shares nothing with them.
func (p Path) Carry(to, from map[string]any, unless *Unless) {
	var reference any
	if unless != nil {
		reference = unless.object
	}
	p.carry(to, from, reference, unless != nil)
}

// Unless is what a field must not differ from to be carried.
type Unless struct{ object map[string]any }

// ChangedSince makes Carry leave out fields whose value is not the one they have in the object; nil means that
// all have changed.
func ChangedSince(object map[string]any) *Unless { return &Unless{object: object} }

func (p Path) carry(to, from, reference any, compare bool) {
	switch container := to.(type) {
	case map[string]any:
		p.carryInMap(container, from, reference, compare)
	case []any:
		p.carryInList(container, from, reference, compare)
	}
}

func (p Path) carryInMap(to map[string]any, from, reference any, compare bool) {
	next := p[0]
	value, there := to[next.name]
	if !next.isName || !there {
		return
	}
	source, _ := from.(map[string]any)
	before, _ := reference.(map[string]any)
	if len(p) > 1 {
		p[1:].carry(value, source[next.name], before[next.name], compare)
		return
	}
	if old, known := before[next.name]; compare && (!known || !reflect.DeepEqual(old, value)) {
		return
	}
	if found, ok := source[next.name]; ok {
		to[next.name] = runtime.DeepCopyJSONValue(found)
		return
	}
	delete(to, next.name)
}

func (p Path) carryInList(to []any, from, reference any, compare bool) {
	next := p[0]
	source, _ := from.([]any)
	before, _ := reference.([]any)
	for i, member := range to {
		if !next.means(i, member) {
			continue
		}
		found, ok := counterpart(member, i, source)
		old, known := counterpart(member, i, before)
		switch {
		case len(p) > 1:
			p[1:].carry(member, found, old, compare)
		case compare && (!known || !reflect.DeepEqual(old, member)):
		case ok:
			to[i] = runtime.DeepCopyJSONValue(found)
		}
	}
}

// means says whether a step leads to a member of a list.
func (s step) means(position int, member any) bool {
	switch {
	case s.isAll && s.key == "":
		return true
	case s.isAll:
		fields, _ := member.(map[string]any)
		text, _ := fields[s.key].(string)
		return text == s.name
	}
	return s.isIndex && s.position == position
}

// counterpart finds the member of another list that is called the same, or, where members have no names, is at
// the same position.
func counterpart(member any, position int, list []any) (any, bool) {
	fields, _ := member.(map[string]any)
	for _, key := range listNames {
		name, named := fields[key]
		if !named {
			continue
		}
		for _, candidate := range list {
			other, _ := candidate.(map[string]any)
			if value, ok := other[key]; ok && reflect.DeepEqual(value, name) {
				return candidate, true
			}
		}
		return nil, false
	}
	if position < len(list) {
		return list[position], true
	}
	return nil, false
}
