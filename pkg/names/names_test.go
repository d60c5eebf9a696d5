package names

import (
	"strings"
	"testing"
)

func TestHelmRelease(t *testing.T) {
	for name, want := range map[string]string{
		"my-repo/path/to/App":                "my-repo-path-to-app-8d9fc85c",
		"repo/a_b.c":                         "repo-a-b-c-9dabb326",
		"repo/dir.with.dots":                 "repo-dir-with-dots-72b9dae7",
		"Repo_X/d1":                          "repo-x-d1-0dc57f54",
		"repo/" + strings.Repeat("abc-", 20): "repo-abc-abc-abc-abc-abc-abc-abc-abc-abc-abc-ab-d8d0a",
		"-":                                  "336d5ebc5436534e61d16e63",
		"plain":                              "plain",
	} {
		if got := HelmRelease(name); got != want {
			t.Errorf("HelmRelease(%q) = %q, want %q", name, got, want)
		}
	}
}

func TestHelmReleaseIsStable(t *testing.T) {
	for _, name := range []string{"a", "A/B/c d", strings.Repeat("x/", 60), "ends-", "--", "ünïcode"} {
		once := HelmRelease(name)
		if twice := HelmRelease(once); twice != once {
			t.Errorf("HelmRelease(%q) = %q, applied again %q", name, once, twice)
		}
		if len(once) > 53 {
			t.Errorf("HelmRelease(%q) has %d characters", name, len(once))
		}
	}
}

func TestClusterNamespace(t *testing.T) {
	for _, test := range []struct{ namespace, cluster, want string }{
		{"fleet-local", "local", "cluster-fleet-local-local-1a3d67d0a899"},
		{"fleet-default", "c-m-abcdefgh", "cluster-fleet-default-c-m-abcdefgh-b03629130e30"},
	} {
		if got := ClusterNamespace(test.namespace, test.cluster); got != test.want {
			t.Errorf("ClusterNamespace(%q, %q) = %q, want %q", test.namespace, test.cluster, got, test.want)
		}
	}
}

func TestBundle(t *testing.T) {
	for _, test := range []struct{ repo, dir, options, want string }{
		{"repo", ".", "", "repo"},
		{"repo", "apps/web", "", "repo-apps-web"},
		{"repo", "apps/web", "dev.yaml", "repo-apps-web-dev"},
		{"repo", "apps/web", "setup/lunch.yaml", "repo-apps-web-setup-lunch"},
		{"repo", "/apps/", "", "repo-apps"},
	} {
		if got := Bundle(test.repo, test.dir, test.options); got != test.want {
			t.Errorf("Bundle(%q, %q, %q) = %q, want %q", test.repo, test.dir, test.options, got, test.want)
		}
	}
}

func TestRegistrationNamespace(t *testing.T) {
	for system, want := range map[string]string{
		"cattle-fleet-system": "cattle-fleet-clusters-system",
		"fleet":               "fleet-clusters-system",
	} {
		if got := RegistrationNamespace(system); got != want {
			t.Errorf("RegistrationNamespace(%q) = %q, want %q", system, got, want)
		}
	}
}

func TestLimit(t *testing.T) {
	for _, test := range []struct {
		s    string
		n    int
		want string
	}{
		{"short", 10, "short"},
		{"abcdefgh", 6, "abcdef"},
		{"abcdefghijkl", 10, "abcd-" + Hex("abcdefghijkl", 5)},
		{"abc-efghijkl", 10, "abc-" + Hex("abc-efghijkl", 5)},
	} {
		if got := Limit(test.s, test.n); got != test.want {
			t.Errorf("Limit(%q, %d) = %q, want %q", test.s, test.n, got, test.want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"same", "same", 0}, {"helm", "hlem", 2}, {"kitten", "sitting", 3},
		{strings.Repeat("x", 1000), strings.Repeat("x", 100), 0},
	} {
		if got := Distance(test.a, test.b); got != test.want {
			t.Errorf("Distance(%.10q, %.10q) = %d, want %d", test.a, test.b, got, test.want)
		}
		if got := Distance(test.b, test.a); got != test.want {
			t.Errorf("Distance(%.10q, %.10q) = %d, want %d", test.b, test.a, got, test.want)
		}
	}
}
