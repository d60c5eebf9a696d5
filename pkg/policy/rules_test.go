package policy

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func restriction(name string, change func(*fleet.GitRepoRestriction)) fleet.GitRepoRestriction {
	made := fleet.GitRepoRestriction{ObjectMeta: metav1.ObjectMeta{Name: name}}
	change(&made)
	return made
}

func forRepos(patterns ...string) fleet.Policy {
	return fleet.Policy{GitRepo: &fleet.GitRepoPolicy{AllowedRepoPatterns: patterns}}
}

func TestGitRepo(t *testing.T) {
	const repo = "https://git.example/team/app"
	tests := map[string]struct {
		restrictions []fleet.GitRepoRestriction
		policies     []fleet.Policy
		spec         fleet.GitRepoSpec
		wantReason   string
		wantMessage  string
		wantAccount  string
		wantSecret   string
	}{
		"no rules": {spec: fleet.GitRepoSpec{Repo: repo, ServiceAccount: "any"}, wantAccount: "any"},
		"policy matches the whole address": {
			policies: []fleet.Policy{forRepos(`https://git\.example/team/.*`)}, spec: fleet.GitRepoSpec{Repo: repo},
		},
		"policy does not match a part": {
			policies: []fleet.Policy{forRepos(`git\.example`)}, spec: fleet.GitRepoSpec{Repo: repo},
			wantReason: ReasonRepo, wantMessage: `allowed: git\.example`,
		},
		"restriction matches a part": {
			restrictions: []fleet.GitRepoRestriction{restriction("a", func(r *fleet.GitRepoRestriction) { r.AllowedRepoPatterns = []string{`git\.example`} })},
			spec:         fleet.GitRepoSpec{Repo: repo},
		},
		"pattern that does not compile allows only itself": {
			policies: []fleet.Policy{forRepos("https://(")}, spec: fleet.GitRepoSpec{Repo: repo},
			wantReason: ReasonRepo, wantMessage: "not a regular expression",
		},
		"verbatim address that is no expression": {
			policies: []fleet.Policy{forRepos("https://(")}, spec: fleet.GitRepoSpec{Repo: "https://("},
		},
		"defaults of a restriction come first, then by name": {
			restrictions: []fleet.GitRepoRestriction{
				restriction("b", func(r *fleet.GitRepoRestriction) { r.DefaultServiceAccount = "second" }),
				restriction("a", func(r *fleet.GitRepoRestriction) { r.DefaultServiceAccount = "first" }),
			},
			policies: []fleet.Policy{{GitRepo: &fleet.GitRepoPolicy{DefaultServiceAccount: "third", DefaultClientSecretName: "creds"}}},
			spec:     fleet.GitRepoSpec{Repo: repo}, wantAccount: "first", wantSecret: "creds",
		},
		"default must be allowed too": {
			policies:   []fleet.Policy{{AllowedServiceAccounts: []string{"b", "a"}, GitRepo: &fleet.GitRepoPolicy{DefaultServiceAccount: "c"}}},
			spec:       fleet.GitRepoSpec{Repo: repo},
			wantReason: ReasonServiceAccount, wantMessage: `serviceAccount "c" is not allowed in this namespace; allowed: a, b`,
		},
		"service account required": {
			policies: []fleet.Policy{{RequireServiceAccount: true}}, spec: fleet.GitRepoSpec{Repo: repo},
			wantReason: ReasonServiceAccount, wantMessage: "requires a serviceAccount; allowed: any",
		},
		"client secret": {
			policies:   []fleet.Policy{{GitRepo: &fleet.GitRepoPolicy{AllowedClientSecretNames: []string{"mine"}}}},
			spec:       fleet.GitRepoSpec{Repo: repo, ClientSecretName: "theirs"},
			wantReason: ReasonClientSecret, wantMessage: `"theirs"`,
		},
		"no client secret passes": {
			policies: []fleet.Policy{{GitRepo: &fleet.GitRepoPolicy{AllowedClientSecretNames: []string{"mine"}}}},
			spec:     fleet.GitRepoSpec{Repo: repo},
		},
		"target namespace must be set": {
			restrictions: []fleet.GitRepoRestriction{restriction("a", func(r *fleet.GitRepoRestriction) { r.AllowedTargetNamespaces = []string{"apps"} })},
			spec:         fleet.GitRepoSpec{Repo: repo}, wantReason: ReasonNamespace, wantMessage: "targetNamespace must be set",
		},
		"lists add up": {
			restrictions: []fleet.GitRepoRestriction{
				restriction("a", func(r *fleet.GitRepoRestriction) { r.AllowedTargetNamespaces = []string{"apps"} }),
				restriction("b", func(r *fleet.GitRepoRestriction) { r.AllowedTargetNamespaces = []string{"tools"} }),
			},
			spec: fleet.GitRepoSpec{Repo: repo, TargetNamespace: "tools"},
		},
		"other target namespace": {
			restrictions: []fleet.GitRepoRestriction{restriction("a", func(r *fleet.GitRepoRestriction) { r.AllowedTargetNamespaces = []string{"apps"} })},
			spec:         fleet.GitRepoSpec{Repo: repo, TargetNamespace: "kube-system"}, wantReason: ReasonNamespace, wantMessage: `"kube-system"`,
		},
		"selector alone wants a namespace": {
			restrictions: []fleet.GitRepoRestriction{restriction("a", func(r *fleet.GitRepoRestriction) {
				r.AllowedTargetNamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": "a"}}
			})},
			spec: fleet.GitRepoSpec{Repo: repo}, wantReason: ReasonNamespace, wantMessage: "team=a",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			spec, err := New(test.restrictions, test.policies).GitRepo(test.spec)
			if test.wantReason == "" {
				if err != nil {
					t.Fatal(err)
				}
				if spec.ServiceAccount != test.wantAccount || spec.ClientSecretName != test.wantSecret {
					t.Errorf("service account %q, secret %q", spec.ServiceAccount, spec.ClientSecretName)
				}
				return
			}
			if err == nil || fault.ClassOf(err) != fault.Denied || fault.ReasonOf(err) != test.wantReason || !strings.Contains(err.Error(), test.wantMessage) {
				t.Errorf("%v (%s %s), want %s with %q", err, fault.ClassOf(err), fault.ReasonOf(err), test.wantReason, test.wantMessage)
			}
		})
	}
}

func TestDeployment(t *testing.T) {
	rules := New(
		[]fleet.GitRepoRestriction{restriction("a", func(r *fleet.GitRepoRestriction) { r.AllowedTargetNamespaces = []string{"apps"} })},
		[]fleet.Policy{{RequireServiceAccount: true, AllowedServiceAccounts: []string{"tenant"}}},
	)
	tests := map[string]struct {
		options    fleet.BundleDeploymentOptions
		wantReason string
	}{
		"allowed":              {options: fleet.BundleDeploymentOptions{ServiceAccount: "tenant", TargetNamespace: "apps"}},
		"no account":           {options: fleet.BundleDeploymentOptions{TargetNamespace: "apps"}, wantReason: ReasonServiceAccount},
		"other account":        {options: fleet.BundleDeploymentOptions{ServiceAccount: "admin", TargetNamespace: "apps"}, wantReason: ReasonServiceAccount},
		"default is no limit":  {options: fleet.BundleDeploymentOptions{ServiceAccount: "tenant", DefaultNamespace: "apps"}, wantReason: ReasonNamespace},
		"namespace of another": {options: fleet.BundleDeploymentOptions{ServiceAccount: "tenant", TargetNamespace: "kube-system"}, wantReason: ReasonNamespace},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			err := rules.Deployment(&test.options)
			if (err == nil) != (test.wantReason == "") || err != nil && fault.ReasonOf(err) != test.wantReason {
				t.Errorf("%v, want %q", err, test.wantReason)
			}
		})
	}
}

func TestApply(t *testing.T) {
	team := func(name string) fleet.GitRepoRestriction {
		return restriction(name, func(r *fleet.GitRepoRestriction) {
			r.AllowedTargetNamespaceSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"team": name}}
		})
	}
	options := New([]fleet.GitRepoRestriction{team("a"), team("b")}, nil).Apply(fleet.BundleDeploymentOptions{})
	selector, err := metav1.LabelSelectorAsSelector(options.AllowedTargetNamespaceSelector)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a", "b"} {
		if selector.Matches(labels.Set{"team": name}) {
			t.Errorf("both selectors count, yet a namespace of team %s is allowed", name)
		}
	}
	if options.CreateNamespace != nil {
		t.Error("no policy forbids to create namespaces")
	}
	strict := []fleet.Policy{{RequireServiceAccount: true}}
	if options := New(nil, strict).Apply(fleet.BundleDeploymentOptions{}); options.CreateNamespace == nil || *options.CreateNamespace {
		t.Error("a policy that requires service accounts forbids to create namespaces")
	}
	open := append(strict, fleet.Policy{AllowNamespaceCreation: true})
	if options := New(nil, open).Apply(fleet.BundleDeploymentOptions{}); options.CreateNamespace != nil {
		t.Error("a second policy allows it")
	}
}
