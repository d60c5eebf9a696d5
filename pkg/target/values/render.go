package values

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"sigs.k8s.io/yaml"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

const (
	labelReference = "global.fleet.clusterLabels."
	opening        = "${"
	maxDepth       = 50
)

// word matches text that is text to every YAML reader, but for typedWords.
var word = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/-]*$`)

var typedWords = []string{"true", "false", "null"}

// Template is the Helm options of a bundle, ready to be rendered for many clusters. It is used by one
// goroutine at a time.
type Template struct {
	helm   *fleet.HelmOptions
	engine *engine
	texts  map[string]*template.Template
}

// Result is what rendering gave.
type Result struct {
	// Helm options with rendered values; nil when there were none and the cluster has no labels, because
	// an id counts the difference and upstream makes none.
	Helm *fleet.HelmOptions
	// Retyped are the keys whose template's text was read as a number, a boolean or null.
	Retyped []string
}

// Compile prepares Helm options; nil is fine. The options must not change afterwards.
func Compile(helm *fleet.HelmOptions) *Template {
	return &Template{helm: helm, texts: map[string]*template.Template{}}
}

// Static says that every cluster with labels gets the same, and so does every cluster without.
func (t *Template) Static() bool {
	switch {
	case t.helm == nil:
		return true
	case t.helm.Values != nil && !static(t.helm.Values.Data, !t.helm.DisablePreProcess):
		return false
	}
	return t.helm.DisablePreProcess || len(t.helm.TemplateValues) == 0
}

// static says that nothing in a value depends on the cluster.
func static(value any, pre bool) bool {
	switch value := value.(type) {
	case map[string]any:
		for key, below := range value {
			if (pre && strings.Contains(key, opening)) || !static(below, pre) {
				return false
			}
		}
	case []any:
		for _, below := range value {
			if !static(below, pre) {
				return false
			}
		}
	case string:
		return !strings.HasPrefix(value, labelReference) && (!pre || !strings.Contains(value, opening))
	}
	return true
}

// Render returns the options for a cluster. The error names the key that failed; it may hold parts of the
// template, never rendered values.
func (t *Template) Render(cluster Cluster) (Result, error) {
	hasLabels := len(cluster.visibleLabels()) > 0
	helm := t.helm.DeepCopy()
	if helm == nil {
		if hasLabels {
			helm = &fleet.HelmOptions{}
		}
		return Result{Helm: helm}, nil
	}
	r := &rendering{template: t, labels: cluster.visibleLabels(), pre: !helm.DisablePreProcess}
	if r.pre {
		r.data = cluster.data()
	}
	var tree map[string]any
	if helm.Values != nil {
		tree = helm.Values.Data
	}
	tree, err := r.tree(tree)
	if err != nil {
		return Result{}, err
	}
	if err := r.templateValues(tree, helm.TemplateValues); err != nil {
		return Result{}, err
	}
	if helm.Values != nil || len(tree) > 0 || hasLabels {
		helm.Values = &fleet.GenericMap{Data: tree}
	}
	slices.Sort(r.retyped)
	return Result{Helm: helm, Retyped: r.retyped}, nil
}

// rendering is the work on one cluster.
type rendering struct {
	template *Template
	labels   map[string]string
	data     map[string]any
	pre      bool
	retyped  []string
}

// tree renders all values. Where a string is no template by itself (its ${ if } ends in another string)
// all of them together may be one.
func (r *rendering) tree(source map[string]any) (map[string]any, error) {
	rendered, err := r.mapping("", source, 0)
	var broken *parseError
	if !errors.As(err, &broken) {
		return rendered, err
	}
	if whole, wholeErr := r.whole(source); wholeErr == nil {
		return whole, nil
	}
	return nil, err
}

// whole renders the values as one YAML document.
func (r *rendering) whole(source map[string]any) (map[string]any, error) {
	references := &rendering{template: r.template, labels: r.labels}
	replaced, err := references.mapping("", source, 0)
	if err != nil {
		return nil, err
	}
	document, err := yaml.Marshal(replaced)
	if err != nil {
		return nil, err
	}
	parsed, err := r.template.engine.compile(string(document))
	if err != nil {
		return nil, err
	}
	text, err := r.template.engine.execute(parsed, r.data)
	if err != nil {
		return nil, err
	}
	rendered := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &rendered); err != nil {
		return nil, err
	}
	return rendered, nil
}

func (r *rendering) mapping(path string, source map[string]any, depth int) (map[string]any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("render values: %s is nested deeper than %d levels", path, maxDepth)
	}
	rendered := make(map[string]any, len(source))
	for _, key := range slices.Sorted(maps.Keys(source)) {
		at := join(path, key)
		name, err := r.key(at, key)
		if err != nil {
			return nil, err
		}
		if _, twice := rendered[name]; twice {
			return nil, fmt.Errorf("render values: %s: two keys render to the same name", at)
		}
		if rendered[name], err = r.value(at, source[key], depth); err != nil {
			return nil, err
		}
	}
	return rendered, nil
}

func (r *rendering) value(path string, value any, depth int) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		return r.mapping(path, value, depth+1)
	case []any:
		if depth > maxDepth {
			return nil, fmt.Errorf("render values: %s is nested deeper than %d levels", path, maxDepth)
		}
		list := make([]any, len(value))
		for i, entry := range value {
			rendered, err := r.value(fmt.Sprintf("%s[%d]", path, i), entry, depth+1)
			if err != nil {
				return nil, err
			}
			list[i] = rendered
		}
		return list, nil
	case string:
		return r.text(path, value)
	}
	return value, nil
}

func (r *rendering) key(path, key string) (string, error) {
	if !r.pre || !strings.Contains(key, opening) {
		return key, nil
	}
	text, err := r.template.execute(key, r.data)
	if err != nil {
		return "", &keyError{path, err}
	}
	return text, nil
}

func (r *rendering) text(path, text string) (any, error) {
	if label, isReference := strings.CutPrefix(text, labelReference); isReference {
		text = r.labels[label]
	}
	if !r.pre || !strings.Contains(text, opening) {
		return text, nil
	}
	rendered, err := r.template.execute(text, r.data)
	if err != nil {
		return nil, &keyError{path, err}
	}
	typed := r.template.typed(text, rendered, r.data)
	switch typed.(type) {
	case string, map[string]any, []any:
	default:
		r.retyped = append(r.retyped, path)
	}
	return typed, nil
}

// templateValues renders each entry and sets what it yields as a top-level key.
func (r *rendering) templateValues(tree map[string]any, entries map[string]string) error {
	if !r.pre {
		return nil
	}
	for _, key := range slices.Sorted(maps.Keys(entries)) {
		path := "templateValues." + key
		text, err := r.template.execute(entries[key], r.data)
		if err != nil {
			return &keyError{path, err}
		}
		var value any
		if err := yaml.Unmarshal([]byte(text), &value); err != nil {
			return &keyError{path, errors.New("the rendered text is not YAML")}
		}
		tree[key] = value
	}
	return nil
}

// execute compiles text once and executes it on data.
func (t *Template) execute(text string, data map[string]any) (string, error) {
	parsed, known := t.texts[text]
	if !known {
		if t.engine == nil {
			t.engine = newEngine()
		}
		var err error
		if parsed, err = t.engine.compile(text); err != nil {
			return "", &parseError{err}
		}
		t.texts[text] = parsed
	}
	return t.engine.execute(parsed, data)
}

// typed returns what a YAML reader makes of the rendered text, standing where the template stood. Lists
// and maps are taken, and what quotes enclose. A number, boolean or null is taken only if it prints as the
// same text, in JSON or as templates print it (5e+06); what would lose something stays text.
func (t *Template) typed(source, rendered string, data map[string]any) any {
	if word.MatchString(rendered) && !slices.Contains(typedWords, rendered) {
		return rendered
	}
	read, ok := t.inPlace(source, data)
	if !ok {
		return rendered
	}
	if keeps(strings.TrimSpace(rendered), read) {
		return read
	}
	return rendered
}

// keeps says that a value has all that the text, from which it was read, said.
func keeps(text string, value any) bool {
	switch value := value.(type) {
	case map[string]any, []any:
		return true
	case nil:
		return text == "" || text == "null"
	case string:
		return value == text || isQuoted(text)
	case float64:
		if fmt.Sprint(value) == text {
			return true
		}
	}
	printed, err := json.Marshal(value)
	return err == nil && string(printed) == text
}

// isQuoted says that the template put quotes around its text, as quote and squote do.
func isQuoted(text string) bool {
	return len(text) >= 2 && (text[0] == '"' || text[0] == '\'') && text[len(text)-1] == text[0]
}

// inPlace renders the source standing in a YAML document, as upstream does, and reads it back; false when
// that gives no document with one value.
func (t *Template) inPlace(source string, data map[string]any) (any, bool) {
	document, err := yaml.Marshal(map[string]string{"v": source})
	if err != nil {
		return nil, false
	}
	text, err := t.execute(string(document), data)
	if err != nil {
		return nil, false
	}
	var read map[string]any
	if err := yaml.Unmarshal([]byte(text), &read); err != nil || len(read) != 1 {
		return nil, false
	}
	value, has := read["v"]
	return value, has
}

// keyError is a failure with the key it belongs to.
type keyError struct {
	key string
	err error
}

func (e *keyError) Error() string {
	var broken *parseError
	if errors.As(e.err, &broken) {
		return fmt.Sprintf("render values: %s: %v; ${ } encloses a template: where the text is meant, write ${ \"${\" } for ${ or set helm.disablePreProcess", e.key, e.err)
	}
	return fmt.Sprintf("render values: %s: %v", e.key, e.err)
}

func (e *keyError) Unwrap() error { return e.err }

// parseError is a text that is no template.
type parseError struct{ err error }

func (e *parseError) Error() string { return e.err.Error() }

// IsSyntax says that an error of Render is about the text of a template, whatever the cluster.
func IsSyntax(err error) bool {
	var broken *parseError
	return errors.As(err, &broken)
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
