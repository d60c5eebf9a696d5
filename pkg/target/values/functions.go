package values

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig/v3"
)

// Bounds of one rendering.
const (
	// maxText bounds the output of a template and everything made on the way, in bytes and entries.
	maxText = 1 << 20
	// maxNesting bounds the depth of lists and maps.
	maxNesting = 100
	// maxSteps bounds the repetitions of range and the calls of functions in one execution.
	maxSteps = 200_000
)

// removed functions reach out of the template: upstream does not offer them either.
var removed = []string{"env", "expandenv", "include", "tpl", "getHostByName"}

// changing functions give something else each time. With them the deployment id would move at every look
// and the clusters would be redeployed for ever, so their use is an error.
var changing = []string{
	"ago", "now", "randAlpha", "randAlphaNum", "randAscii", "randBytes", "randInt", "randNumeric", "shuffle", "uuidv4",
	"bcrypt", "buildCustomCert", "encryptAES", "genCA", "genCAWithKey", "genPrivateKey", "genSelfSignedCert",
	"genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey", "htpasswd",
}

// budget counts what one execution may still do.
type budget struct{ steps int }

func (b *budget) spend(steps int) error {
	b.steps -= steps
	if b.steps < 0 {
		return fmt.Errorf("the template does too much: more than %d repetitions and calls", maxSteps)
	}
	return nil
}

// carry refuses what is too large, and spends steps for the rest.
func (b *budget) carry(size int, values ...reflect.Value) error {
	if size > maxText {
		return errTooLarge
	}
	for _, value := range values {
		weight, err := weigh(value, 0, maxText)
		if err != nil {
			return err
		}
		size += weight
	}
	return b.spend(size / 64)
}

var errTooLarge = fmt.Errorf("a value is larger than %d bytes", maxText)

// functions returns the functions of templates, bound to the budget.
func functions(b *budget) template.FuncMap {
	funcs := sprig.TxtFuncMap()
	for _, name := range removed {
		delete(funcs, name)
	}
	for _, name := range changing {
		funcs[name] = func(...any) (any, error) {
			return nil, fmt.Errorf("%s gives something else each time and would redeploy for ever", name)
		}
	}
	funcs["keys"] = sortedKeysOf
	funcs["values"] = valuesByKey
	funcs["print"] = fmt.Sprint
	funcs["printf"] = fmt.Sprintf
	funcs["println"] = fmt.Sprintln
	funcs["html"] = template.HTMLEscaper
	funcs["js"] = template.JSEscaper
	funcs["urlquery"] = template.URLQueryEscaper
	for name, function := range funcs {
		funcs[name] = bounded(b, costs[name], function)
	}
	funcs[stepFunction] = func() (string, error) { return "", b.spend(1) }
	funcs[printFunction] = func(value any) (any, error) { return value, b.carry(0, reflect.ValueOf(value)) }
	return funcs
}

// cost returns what a call is going to make or do, in bytes, list entries or steps of that order, where that
// is not bounded by what goes in.
type cost func(args []reflect.Value) int

var costs = map[string]cost{
	"repeat":                     func(args []reflect.Value) int { return product(number(args, 0), length(args, 1)) },
	"until":                      func(args []reflect.Value) int { return max(number(args, 0), -number(args, 0)) },
	"untilStep":                  costOfSteps,
	"seq":                        costOfSeq,
	"indent":                     func(args []reflect.Value) int { return product(number(args, 0), lines(args, 1)) },
	"nindent":                    func(args []reflect.Value) int { return product(number(args, 0), lines(args, 1)) },
	"wrapWith":                   func(args []reflect.Value) int { return product(length(args, 1)+1, length(args, 2)) },
	"replace":                    costOfReplace,
	"join":                       func(args []reflect.Value) int { return product(length(args, 0), length(args, 1)) },
	"trimAll":                    costOfPairs,
	"trimall":                    costOfPairs,
	"regexMatch":                 costOfPairs,
	"mustRegexMatch":             costOfPairs,
	"regexFind":                  costOfPairs,
	"mustRegexFind":              costOfPairs,
	"regexFindAll":               costOfPairs,
	"mustRegexFindAll":           costOfPairs,
	"regexSplit":                 costOfPairs,
	"mustRegexSplit":             costOfPairs,
	"regexReplaceAll":            costOfRegexReplace,
	"mustRegexReplaceAll":        costOfRegexReplace,
	"regexReplaceAllLiteral":     costOfRegexReplace,
	"mustRegexReplaceAllLiteral": costOfRegexReplace,
	"uniq":                       costOfUniq,
	"mustUniq":                   costOfUniq,
	"without":                    func(args []reflect.Value) int { return product(length(args, 0), len(args)) / cheap },
	"mustWithout":                func(args []reflect.Value) int { return product(length(args, 0), len(args)) / cheap },
	"derivePassword":             func([]reflect.Value) int { return maxText },
}

// cheap is how many comparisons count as one step of a cost.
const cheap = 16

// costOfPairs is for functions that compare everything in their first argument with everything in the
// second.
func costOfPairs(args []reflect.Value) int {
	return product(length(args, 0), length(args, 1)/cheap+1)
}

func costOfUniq(args []reflect.Value) int {
	return product(length(args, 0), length(args, 0)/cheap+1)
}

func costOfRegexReplace(args []reflect.Value) int {
	return max(costOfPairs(args), product(length(args, 1), length(args, 2)/cheap+1))
}

func costOfReplace(args []reflect.Value) int {
	if len(args) < 3 || args[0].Kind() != reflect.String || args[2].Kind() != reflect.String {
		return 0
	}
	return product(strings.Count(args[2].String(), args[0].String()), length(args, 1))
}

func costOfSteps(args []reflect.Value) int {
	return steps(number(args, 0), number(args, 1), number(args, 2))
}

func costOfSeq(args []reflect.Value) int {
	switch len(args) {
	case 1:
		return max(number(args, 0), -number(args, 0))
	case 2:
		return steps(number(args, 0), number(args, 1), 1)
	case 3:
		return steps(number(args, 0), number(args, 2), number(args, 1))
	}
	return 0
}

// steps returns how many numbers lie between two numbers; the sign of step does not matter.
func steps(from, to, step int) int {
	distance := float64(to) - float64(from)
	if step == 0 {
		return 0
	}
	count := distance / float64(step)
	return int(min(max(count, -count), maxText+1))
}

// bounded wraps a function so that each call counts, does not start when it is going to make too much,
// and does not return more than a bound.
func bounded(b *budget, cost cost, function any) any {
	inner := reflect.ValueOf(function)
	kind := inner.Type()
	return func(args ...reflect.Value) (reflect.Value, error) {
		if err := b.spend(1); err != nil {
			return reflect.Value{}, err
		}
		converted, err := convert(kind, args)
		if err != nil {
			return reflect.Value{}, err
		}
		size := 0
		if cost != nil {
			size = cost(converted)
		}
		if err := b.carry(size, converted...); err != nil {
			return reflect.Value{}, err
		}
		results := inner.Call(converted)
		if len(results) == 2 && !results[1].IsNil() {
			return reflect.Value{}, results[1].Interface().(error)
		}
		return results[0], b.carry(0, results[0])
	}
}

// convert does for arguments what package text/template does when it calls a function itself.
func convert(kind reflect.Type, args []reflect.Value) ([]reflect.Value, error) {
	fixed := kind.NumIn()
	if kind.IsVariadic() {
		fixed--
	}
	if len(args) < fixed || (!kind.IsVariadic() && len(args) > fixed) {
		return nil, fmt.Errorf("wrong number of arguments: got %d, want %d", len(args), fixed)
	}
	converted := make([]reflect.Value, len(args))
	for i, arg := range args {
		want := kind.In(min(i, kind.NumIn()-1))
		if i >= fixed {
			want = want.Elem()
		}
		value, err := convertOne(arg, want)
		if err != nil {
			return nil, fmt.Errorf("argument %d: %w", i+1, err)
		}
		converted[i] = value
	}
	return converted, nil
}

func convertOne(arg reflect.Value, want reflect.Type) (reflect.Value, error) {
	if arg.IsValid() && arg.Kind() == reflect.Interface && !arg.IsNil() {
		arg = arg.Elem()
	}
	if !arg.IsValid() || (arg.Kind() == reflect.Interface && arg.IsNil()) {
		if canBeNil(want.Kind()) {
			return reflect.Zero(want), nil
		}
		return reflect.Value{}, fmt.Errorf("got no value, want %s", want)
	}
	if arg.Type().AssignableTo(want) {
		return arg, nil
	}
	if isInteger(arg.Kind()) && isNumber(want.Kind()) && arg.CanConvert(want) {
		return arg.Convert(want), nil
	}
	return reflect.Value{}, fmt.Errorf("got %s, want %s", arg.Type(), want)
}

func canBeNil(kind reflect.Kind) bool {
	return slices.Contains([]reflect.Kind{reflect.Interface, reflect.Map, reflect.Slice, reflect.Pointer, reflect.Func}, kind)
}

func isInteger(kind reflect.Kind) bool { return kind >= reflect.Int && kind <= reflect.Uint64 }

func isNumber(kind reflect.Kind) bool { return kind >= reflect.Int && kind <= reflect.Float64 }

// weigh returns how much a value holds when everything in it is written out: its entries and the bytes of
// its texts. A value that is too large, too deep, or contains itself is an error: printing it would take all
// memory.
func weigh(value reflect.Value, depth, limit int) (int, error) {
	if depth > maxNesting {
		return 0, fmt.Errorf("a value is nested deeper than %d levels, or contains itself", maxNesting)
	}
	weight := 1
	add := func(part reflect.Value) error {
		more, err := weigh(part, depth+1, limit-weight)
		weight += more
		return err
	}
	var err error
	switch value.Kind() {
	case reflect.Interface, reflect.Pointer:
		err = add(value.Elem())
	case reflect.String:
		weight += value.Len()
	case reflect.Slice, reflect.Array:
		for i := 0; i < value.Len() && err == nil; i++ {
			err = add(value.Index(i))
		}
	case reflect.Map:
		for entries := value.MapRange(); err == nil && entries.Next(); {
			if err = add(entries.Key()); err == nil {
				err = add(entries.Value())
			}
		}
	}
	if err == nil && weight > limit {
		err = errTooLarge
	}
	return weight, err
}

func number(args []reflect.Value, i int) int {
	if i < len(args) && args[i].CanInt() {
		return int(args[i].Int())
	}
	return 0
}

func length(args []reflect.Value, i int) int {
	if i >= len(args) {
		return 0
	}
	value := args[i]
	if value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	switch value.Kind() {
	case reflect.String, reflect.Slice, reflect.Map, reflect.Array:
		return value.Len()
	}
	return 0
}

func lines(args []reflect.Value, i int) int {
	if i < len(args) && args[i].Kind() == reflect.String {
		return strings.Count(args[i].String(), "\n") + 1
	}
	return 0
}

// product multiplies without overflow; what is negative counts as nothing.
func product(a, b int) int {
	if a <= 0 || b <= 0 {
		return 0
	}
	if a > (maxText+1)/b {
		return maxText + 1
	}
	return a * b
}

// sortedKeysOf returns the keys of all maps, each map's sorted: in any other order equal input would give
// different values.
func sortedKeysOf(dicts ...map[string]any) []string {
	var keys []string
	for _, dict := range dicts {
		keys = append(keys, slices.Sorted(maps.Keys(dict))...)
	}
	return keys
}

func valuesByKey(dict map[string]any) []any {
	keys := slices.Collect(maps.Keys(dict))
	sort.Strings(keys)
	list := make([]any, 0, len(keys))
	for _, key := range keys {
		list = append(list, dict[key])
	}
	return list
}
