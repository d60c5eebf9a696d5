package kustomize

import (
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// maxFolders bounds how many kustomizations one build may visit.
const maxFolders = 2000

// bases are the fields whose entries name files or folders with kustomizations of their own.
var bases = []string{"resources", "bases", "components"}

// plugins are the fields whose entries configure built-in plugins: text, files or folders.
var plugins = []string{"generators", "transformers", "validators"}

// checker walks the kustomizations that a build would read.
type checker struct {
	tree    map[string][]byte
	visited map[string]bool
	// inline reads the configuration of a plugin exactly as Kustomize will.
	inline *resmap.Factory
}

// checkLocal returns an error when the build of dir would leave the tree. Kustomize itself reads a URL
// wherever it expects a file, and clones whatever looks like a git address, so every entry is looked at
// before it starts.
func checkLocal(tree map[string][]byte, dir string) error {
	inline := resmap.NewFactory(provider.NewDefaultDepProvider().GetResourceFactory())
	return (&checker{tree: tree, visited: map[string]bool{}, inline: inline}).folder(dir)
}

func (c *checker) folder(dir string) error {
	name := File(c.tree, dir)
	if name == "" || c.visited[dir] {
		return nil
	}
	c.visited[dir] = true
	if len(c.visited) > maxFolders {
		return fmt.Errorf("%s: more than %d kustomizations in one build", name, maxFolders)
	}
	var fields map[string]any
	if err := yaml.Unmarshal(c.tree[name], &fields); err != nil {
		return fmt.Errorf("%s: %s", name, strings.TrimPrefix(err.Error(), "error converting YAML to JSON: "))
	}
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		isPlugin := isOneOf(field, plugins)
		if !isPlugin && !isOneOf(field, bases) {
			continue
		}
		values, _ := fields[field].([]any)
		for i, value := range values {
			entry, ok := value.(string)
			if !ok {
				continue
			}
			at := fmt.Sprintf("%s: %s[%d]", name, field, i)
			check := c.base
			if isPlugin {
				check = c.plugin
			}
			if err := check(dir, at, entry); err != nil {
				return err
			}
		}
	}
	if err := noRemoteFile(name, fields); err != nil {
		return err
	}
	return checkFields(name, c.tree[name], fields)
}

// checkFields finds what Kustomize would refuse without saying in which of the files it is.
func checkFields(name string, data []byte, fields map[string]any) error {
	for field := range fields {
		if isOneOf(field, []string{"helmCharts", "helmChartInflationGenerator"}) {
			return fmt.Errorf("%s: %s would run a program and is not supported; name the chart in helm of fleet.yaml, whose output this kustomization can change", name, field)
		}
	}
	var kustomization types.Kustomization
	if err := kustomization.Unmarshal(data); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// isOneOf compares names of fields as Kustomize does, whose decoder ignores case.
func isOneOf(field string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool { return strings.EqualFold(name, field) })
}

// base checks an entry that is a file or a folder, and follows folders.
func (c *checker) base(dir, at, entry string) error {
	if err := checkAddress(at, entry); err != nil {
		return err
	}
	target := path.Join(dir, entry)
	if c.tree[target] != nil {
		return nil
	}
	return c.folder(target)
}

// plugin checks an entry that configures plugins: written into the kustomization, or a file. A folder
// is refused, since what it builds to is known only when Kustomize reads the files it names.
func (c *checker) plugin(dir, at, entry string) error {
	if configurations, err := c.inline.NewResMapFromBytes([]byte(entry)); err == nil {
		return c.configurations(at, configurations)
	}
	if err := checkAddress(at, entry); err != nil {
		return err
	}
	target := path.Join(dir, entry)
	data := c.tree[target]
	if data == nil {
		if File(c.tree, target) != "" {
			return fmt.Errorf("%s is a folder; name the files that configure plugins", at)
		}
		return nil
	}
	configurations, err := c.inline.NewResMapFromBytes(data)
	if err != nil {
		// Kustomize reads it by the same function and says what is wrong.
		return nil
	}
	return c.configurations(target, configurations)
}

func (c *checker) configurations(at string, configurations resmap.ResMap) error {
	for _, resource := range configurations.Resources() {
		text, err := resource.AsYAML()
		if err != nil {
			return fmt.Errorf("%s: a plugin's configuration is not readable", at)
		}
		var fields map[string]any
		if err := yaml.Unmarshal(text, &fields); err != nil {
			return fmt.Errorf("%s: a plugin's configuration is not readable", at)
		}
		if err := noRemoteFile(at, fields); err != nil {
			return err
		}
	}
	return nil
}

func checkAddress(at, entry string) error {
	if isRemote(entry) {
		return fmt.Errorf("%s is %s: nothing is read from other places than the repository; add the base to it",
			at, withoutLogin(entry))
	}
	if path.IsAbs(entry) {
		return fmt.Errorf("%s is an absolute path", at)
	}
	return nil
}

// noRemoteFile looks for web addresses where Kustomize expects a file.
func noRemoteFile(name string, value any) error {
	return walk(value, "", func(field, text string) error {
		if !isOneOf(field, fileFields) {
			return nil
		}
		// A generator's entry may be KEY=FILE.
		_, file, _ := strings.Cut(text, "=")
		if isWeb(text) || isWeb(file) {
			return fmt.Errorf("%s: %s names %s: nothing is read from other places than the repository",
				name, field, withoutLogin(text))
		}
		return nil
	})
}

// fileFields are the fields of kustomizations and of built-in plugins that Kustomize loads files from.
var fileFields = []string{
	"resources", "bases", "components", "crds", "configurations", "generators", "transformers", "validators",
	"patches", "patchesStrategicMerge", "patchesJson6902", "path", "paths", "files", "env", "envs",
	"valuesFile", "additionalValuesFiles", "openapi", "replacements",
}

// walk calls visit for every string below value with the nearest key above it.
func walk(value any, field string, visit func(field, text string) error) error {
	switch value := value.(type) {
	case string:
		return visit(field, value)
	case []any:
		for _, item := range value {
			if err := walk(item, field, visit); err != nil {
				return err
			}
		}
	case map[string]any:
		for key, item := range value {
			if err := walk(item, key, visit); err != nil {
				return err
			}
		}
	}
	return nil
}

var scpUser = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]*@`)

// isRemote says whether Kustomize would fetch an entry: web and git addresses in all their forms.
func isRemote(entry string) bool {
	lower := strings.ToLower(strings.TrimSpace(entry))
	for strings.HasPrefix(lower, "git::") {
		lower = strings.TrimPrefix(lower, "git::")
	}
	return strings.Contains(lower, "://") || scpUser.MatchString(lower) || isWeb(entry) ||
		strings.HasPrefix(lower, "github.com/") || strings.HasPrefix(lower, "github.com:")
}

// isWeb says whether Kustomize would download a file.
func isWeb(text string) bool {
	parsed, err := url.Parse(text)
	return err == nil && (parsed.Scheme == "http" || parsed.Scheme == "https")
}

// withoutLogin returns an address fit for a message: without user, password and query.
func withoutLogin(address string) string {
	address, _, _ = strings.Cut(address, "?")
	if before, after, ok := strings.Cut(address, "://"); ok {
		if _, host, ok := strings.Cut(after, "@"); ok {
			after = host
		}
		return before + "://" + after
	}
	return address
}
