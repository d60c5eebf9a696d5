package policy

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// Reasons of refusals.
const (
	ReasonRepo           = "RepoNotAllowed"
	ReasonClientSecret   = "ClientSecretNotAllowed"
	ReasonServiceAccount = "ServiceAccountNotAllowed"
	ReasonNamespace      = "NamespaceNotAllowed"
)

// Rules are the Policies and GitRepoRestrictions of one namespace. The zero value allows everything.
type Rules struct {
	requireServiceAccount  bool
	allowNamespaceCreation bool

	serviceAccounts  []string
	clientSecrets    []string
	repos            []pattern
	targetNamespaces []string
	targetSelector   *metav1.LabelSelector

	defaultServiceAccount string
	defaultClientSecret   string
}

// pattern is a rule for a repository's address: a regular expression, or the address itself.
type pattern struct {
	text  string
	match *regexp.Regexp
	err   error
}

// New adds up the rules of a namespace. Of several defaults the first by object name counts, and
// those of restrictions come before those of policies, as upstream has it.
func New(restrictions []fleet.GitRepoRestriction, policies []fleet.Policy) Rules {
	rules := Rules{}
	byName := func(a, b metav1.ObjectMeta) int { return cmp.Compare(a.Name, b.Name) }
	restrictions = slices.SortedFunc(slices.Values(restrictions), func(a, b fleet.GitRepoRestriction) int {
		return byName(a.ObjectMeta, b.ObjectMeta)
	})
	policies = slices.SortedFunc(slices.Values(policies), func(a, b fleet.Policy) int {
		return byName(a.ObjectMeta, b.ObjectMeta)
	})
	for i := range restrictions {
		rules.addRestriction(&restrictions[i])
	}
	for i := range policies {
		rules.addPolicy(&policies[i])
	}
	return rules
}

func (r *Rules) addRestriction(restriction *fleet.GitRepoRestriction) {
	r.serviceAccounts = append(r.serviceAccounts, restriction.AllowedServiceAccounts...)
	r.clientSecrets = append(r.clientSecrets, restriction.AllowedClientSecretNames...)
	for _, text := range restriction.AllowedRepoPatterns {
		r.repos = append(r.repos, compile(text, text))
	}
	r.targetNamespaces = append(r.targetNamespaces, restriction.AllowedTargetNamespaces...)
	r.targetSelector = both(r.targetSelector, restriction.AllowedTargetNamespaceSelector)
	r.defaultServiceAccount = cmp.Or(r.defaultServiceAccount, restriction.DefaultServiceAccount)
	r.defaultClientSecret = cmp.Or(r.defaultClientSecret, restriction.DefaultClientSecretName)
}

func (r *Rules) addPolicy(policy *fleet.Policy) {
	r.requireServiceAccount = r.requireServiceAccount || policy.RequireServiceAccount
	r.allowNamespaceCreation = r.allowNamespaceCreation || policy.AllowNamespaceCreation
	r.serviceAccounts = append(r.serviceAccounts, policy.AllowedServiceAccounts...)
	if policy.GitRepo == nil {
		return
	}
	r.clientSecrets = append(r.clientSecrets, policy.GitRepo.AllowedClientSecretNames...)
	for _, text := range policy.GitRepo.AllowedRepoPatterns {
		r.repos = append(r.repos, compile(text, "^(?:"+text+")$"))
	}
	r.defaultServiceAccount = cmp.Or(r.defaultServiceAccount, policy.GitRepo.DefaultServiceAccount)
	r.defaultClientSecret = cmp.Or(r.defaultClientSecret, policy.GitRepo.DefaultClientSecretName)
}

func compile(text, expression string) pattern {
	match, err := regexp.Compile(expression)
	return pattern{text: text, match: match, err: err}
}

func (p pattern) allows(address string) bool {
	return p.text == address || p.match != nil && p.match.MatchString(address)
}

// GitRepo returns the spec that counts: with the namespace's defaults where the GitRepo says nothing. The error,
// of class Denied, says what is not allowed; then nothing may be read.
func (r Rules) GitRepo(spec fleet.GitRepoSpec) (fleet.GitRepoSpec, error) {
	spec.ServiceAccount = cmp.Or(spec.ServiceAccount, r.defaultServiceAccount)
	spec.ClientSecretName = cmp.Or(spec.ClientSecretName, r.defaultClientSecret)
	if err := r.repo(spec.Repo); err != nil {
		return spec, err
	}
	if spec.ClientSecretName != "" && !permits(r.clientSecrets, spec.ClientSecretName) {
		return spec, fault.New(fault.Denied, ReasonClientSecret, "clientSecretName %q is not allowed in this namespace; allowed: %s",
			spec.ClientSecretName, list(r.clientSecrets))
	}
	if err := r.serviceAccount(spec.ServiceAccount); err != nil {
		return spec, err
	}
	if !r.limitsNamespaces() {
		return spec, nil
	}
	return spec, r.namespace(spec.TargetNamespace, "targetNamespace")
}

func (r Rules) repo(address string) error {
	if len(r.repos) == 0 {
		return nil
	}
	texts := make([]string, 0, len(r.repos))
	for _, pattern := range r.repos {
		if pattern.allows(address) {
			return nil
		}
		text := pattern.text
		if pattern.err != nil {
			text += " (not a regular expression: " + pattern.err.Error() + ")"
		}
		texts = append(texts, text)
	}
	return fault.New(fault.Denied, ReasonRepo, "the repository is not allowed in this namespace; allowed: %s", list(texts))
}

// Deployment refuses options that a bundle of the namespace may not have on any cluster, with an error of
// class Denied.
func (r Rules) Deployment(options *fleet.BundleDeploymentOptions) error {
	if err := r.serviceAccount(options.ServiceAccount); err != nil {
		return err
	}
	if !r.limitsNamespaces() {
		return nil
	}
	return r.namespace(options.TargetNamespace, "namespace")
}

// Apply returns the options with what the rules demand of them on members.
func (r Rules) Apply(options fleet.BundleDeploymentOptions) fleet.BundleDeploymentOptions {
	if r.targetSelector != nil {
		options.AllowedTargetNamespaceSelector = r.targetSelector.DeepCopy()
	}
	if r.requireServiceAccount && !r.allowNamespaceCreation {
		no := false
		options.CreateNamespace = &no
	}
	return options
}

func (r Rules) serviceAccount(name string) error {
	if name == "" {
		if r.requireServiceAccount {
			return fault.New(fault.Denied, ReasonServiceAccount,
				"a Policy of this namespace requires a serviceAccount; allowed: %s", list(r.serviceAccounts))
		}
		return nil
	}
	if permits(r.serviceAccounts, name) {
		return nil
	}
	return fault.New(fault.Denied, ReasonServiceAccount, "serviceAccount %q is not allowed in this namespace; allowed: %s",
		name, list(r.serviceAccounts))
}

func (r Rules) limitsNamespaces() bool { return len(r.targetNamespaces) > 0 || r.targetSelector != nil }

// namespace checks the namespace that all objects of a bundle are forced into. Members check the labels of it.
func (r Rules) namespace(name, field string) error {
	if name == "" {
		return fault.New(fault.Denied, ReasonNamespace,
			"%s must be set: a GitRepoRestriction of this namespace limits where its bundles may run; allowed: %s", field, r.namespaces())
	}
	if permits(r.targetNamespaces, name) {
		return nil
	}
	return fault.New(fault.Denied, ReasonNamespace, "%s %q is not allowed in this namespace; allowed: %s", field, name, r.namespaces())
}

func (r Rules) namespaces() string {
	if len(r.targetNamespaces) > 0 {
		return list(r.targetNamespaces)
	}
	return "those that match " + metav1.FormatLabelSelector(r.targetSelector)
}

// permits says that a list of allowed names has the name, or that there is none.
func permits(allowed []string, name string) bool {
	return len(allowed) == 0 || slices.Contains(allowed, name)
}

// shownNames bounds the names in a message.
const shownNames = 10

func list(names []string) string {
	if len(names) == 0 {
		return "any"
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if len(names) > shownNames {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shownNames], ", "), len(names)-shownNames)
	}
	return strings.Join(names, ", ")
}

// both returns a selector for what both select; nil selects everything.
func both(a, b *metav1.LabelSelector) *metav1.LabelSelector {
	switch {
	case a == nil:
		return b.DeepCopy()
	case b == nil:
		return a
	}
	joined := a.DeepCopy()
	for _, key := range slices.Sorted(maps.Keys(b.MatchLabels)) {
		joined.MatchExpressions = append(joined.MatchExpressions, metav1.LabelSelectorRequirement{
			Key: key, Operator: metav1.LabelSelectorOpIn, Values: []string{b.MatchLabels[key]},
		})
	}
	joined.MatchExpressions = append(joined.MatchExpressions, b.DeepCopy().MatchExpressions...)
	return joined
}
