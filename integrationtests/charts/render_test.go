package charts

import (
	"encoding/json"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

const systemNamespace = "cattle-fleet-system"

// releases are the charts with values that install, by chart.
var releases = map[string]map[string]any{
	"fleet-crd": nil,
	"fleet": {
		"apiServerURL": "https://hub.example:6443",
		"apiServerCA":  "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n",
	},
	"fleet-agent": {
		"apiServerURL": "https://hub.example:6443", "token": "t0ken", "tokenName": "join", "clusterNamespace": "fleet-default",
		"labels": map[string]any{"env": "dev"},
	},
}

func dir(t *testing.T, chart string) string {
	t.Helper()
	path, err := Dir(chart)
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// documents renders a chart and returns its objects, by "Kind/name".
func documents(t *testing.T, chart string, values map[string]any) map[string]string {
	t.Helper()
	manifest, err := Render(dir(t, chart), chart, systemNamespace, values)
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, document := range strings.Split(manifest, "\n---\n") {
		var head struct {
			Kind     string
			Metadata struct{ Name string }
		}
		if err := yaml.Unmarshal([]byte(document), &head); err != nil {
			t.Fatalf("%v\n%s", err, document)
		}
		if head.Kind != "" {
			found[head.Kind+"/"+head.Metadata.Name] = document
		}
	}
	return found
}

func read[T any](t *testing.T, documents map[string]string, key string) T {
	t.Helper()
	var object T
	document, there := documents[key]
	if !there {
		t.Fatalf("the chart makes no %s", key)
	}
	if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
		t.Fatalf("%s: %v", key, err)
	}
	return object
}

func TestSchemaRefusesWrongValues(t *testing.T) {
	cases := map[string]struct {
		chart  string
		change map[string]any
		want   string // in the error
	}{
		"unknown key":                {"fleet", map[string]any{"apiServerUrl": "x"}, "apiServerUrl"},
		"no URL":                     {"fleet", map[string]any{"apiServerURL": "hub.example"}, "apiServerURL"},
		"CA that is no certificate":  {"fleet", map[string]any{"apiServerCA": "QUJD"}, "apiServerCA"},
		"duration without unit":      {"fleet", map[string]any{"gitClientTimeout": "30"}, "gitClientTimeout"},
		"duration in days":           {"fleet", map[string]any{"garbageCollectionInterval": "1d"}, "garbageCollectionInterval"},
		"unknown TLS mode":           {"fleet", map[string]any{"agentTLSMode": "none"}, "agentTLSMode"},
		"workers that are no number": {"fleet", map[string]any{"controller": map[string]any{"reconciler": map[string]any{"workers": map[string]any{"bundle": "many"}}}}, "bundle"},
		"replicas as text":           {"fleet", map[string]any{"controller": map[string]any{"replicas": "two"}}, "replicas"},
		"label that is no text":      {"fleet-agent", map[string]any{"labels": map[string]any{"a": 1}}, "labels"},
		"unknown key of the agent":   {"fleet-agent", map[string]any{"checkin": "15s"}, "checkin"},
		"heartbeat without unit":     {"fleet-agent", map[string]any{"agent": map[string]any{"heartbeatInterval": "15"}}, "heartbeatInterval"},
		"agent without token":        {"fleet-agent", map[string]any{"token": ""}, "token is required"},
		"agent without workspace":    {"fleet-agent", map[string]any{"clusterNamespace": ""}, "clusterNamespace is required"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			values := map[string]any{}
			for key, value := range releases[c.chart] {
				values[key] = value
			}
			for key, value := range c.change {
				values[key] = value
			}
			_, err := Render(dir(t, c.chart), c.chart, systemNamespace, values)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got error %v, want one that names %q", err, c.want)
			}
		})
	}
}

func TestAgentIsRefusedElsewhere(t *testing.T) {
	if _, err := Render(dir(t, "fleet-agent"), "fleet-agent", "default", releases["fleet-agent"]); err == nil {
		t.Error("the chart rendered for another namespace")
	}
	if _, err := Render(dir(t, "fleet-agent"), "second", systemNamespace, releases["fleet-agent"]); err == nil {
		t.Error("the chart rendered under another name")
	}
}

func TestHubRulesAreNarrow(t *testing.T) {
	found := documents(t, "fleet", releases["fleet"])
	roles := 0
	for key := range found {
		var rules []rbacv1.PolicyRule
		switch {
		case strings.HasPrefix(key, "ClusterRole/"):
			rules = read[rbacv1.ClusterRole](t, found, key).Rules
		case strings.HasPrefix(key, "Role/"):
			rules = read[rbacv1.Role](t, found, key).Rules
		default:
			continue
		}
		roles++
		for _, rule := range rules {
			for _, word := range slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs) {
				if strings.Contains(word, "*") {
					t.Errorf("%s has a wildcard: %v", key, rule)
				}
			}
			if slices.Contains(rule.Verbs, "escalate") || slices.Contains(rule.Verbs, "impersonate") {
				t.Errorf("%s may take other rights: %v", key, rule)
			}
			if slices.Contains(rule.Verbs, "bind") && len(rule.ResourceNames) == 0 {
				t.Errorf("%s may hand on any role: %v", key, rule)
			}
		}
	}
	if roles < 4 {
		t.Errorf("looked at %d roles only", roles)
	}
}

func TestPodsAreConfined(t *testing.T) {
	for _, chart := range []string{"fleet", "fleet-agent"} {
		name := map[string]string{"fleet": "fleet-controller", "fleet-agent": "fleet-agent"}[chart]
		deployment := read[struct {
			Spec struct{ Template corev1.PodTemplateSpec }
		}](t, lenient(documents(t, chart, releases[chart])), "Deployment/"+name)
		pod := deployment.Spec.Template.Spec
		if s := pod.SecurityContext; s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
			t.Errorf("%s: pod security context %v", chart, s)
		}
		for _, container := range pod.Containers {
			s := container.SecurityContext
			if s == nil || !*s.ReadOnlyRootFilesystem || *s.AllowPrivilegeEscalation || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
				t.Errorf("%s: container security context %v", chart, s)
			}
		}
	}
}

// lenient drops what a reader of a part of an object does not know.
func lenient(documents map[string]string) map[string]string {
	parts := map[string]string{}
	for key, document := range documents {
		var whole map[string]any
		if yaml.Unmarshal([]byte(document), &whole) != nil {
			continue
		}
		spec, _ := whole["spec"].(map[string]any)
		part, err := yaml.Marshal(map[string]any{"spec": map[string]any{"template": spec["template"]}})
		if err == nil {
			parts[key] = string(part)
		}
	}
	return parts
}

// The fingerprints are the ones the hosts publish on their web pages.
func TestKnownHostsAreTheirs(t *testing.T) {
	want := map[string][]string{
		"github.com":    {"SHA256:+DiY3wvvV6TuJJhbpZisF/zLDA0zPMSvHdkr4UvCOqU", "SHA256:p2QAMXNIC1TJYWeIOttrVc98/R1BUFWu3/LiyKgUfQM"},
		"gitlab.com":    {"SHA256:eUXGGm1YGsMAS7vkcx6JOJdOGHPem5gQp4taiCfCLB8", "SHA256:HbW3g8zUjNSksFbqTiUWPWg2Bq1x8xdGUrliXFzSnUw"},
		"bitbucket.org": {"SHA256:ybgmFkzwOSotHTHLJgHO0QN8L0xErw6vd0VhFA9m3SM"},
	}
	values := map[string]any{"additionalKnownHosts": []any{"git.example ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIazEu89wgQZ4bqs3d63QSMzYVa0MuJ2e2gKTKqu+UUO"}}
	want["git.example"] = want["bitbucket.org"]
	text := read[corev1.ConfigMap](t, documents(t, "fleet", values), "ConfigMap/known-hosts").Data["known_hosts"]
	got := map[string][]string{}
	for rest := []byte(text); len(rest) > 0; {
		_, hosts, key, _, next, err := ssh.ParseKnownHosts(rest)
		if err != nil {
			t.Fatal(err)
		}
		got[hosts[0]] = append(got[hosts[0]], ssh.FingerprintSHA256(key))
		rest = next
	}
	for host, fingerprints := range want {
		if !slices.Equal(got[host], fingerprints) {
			t.Errorf("%s: keys %v, want %v", host, got[host], fingerprints)
		}
	}
}

// The dashboard is there when it is asked for, is JSON, and shows metrics that exist.
func TestDashboard(t *testing.T) {
	if _, there := documents(t, "fleet", releases["fleet"])["ConfigMap/fleet-dashboard"]; there {
		t.Error("nobody asked for a dashboard")
	}
	values := maps.Clone(releases["fleet"])
	values["metrics"] = map[string]any{"objects": false, "dashboard": map[string]any{"enabled": true, "namespace": "monitoring"}}
	found := documents(t, "fleet", values)
	var configMap corev1.ConfigMap
	if err := yaml.Unmarshal([]byte(found["ConfigMap/fleet-dashboard"]), &configMap); err != nil {
		t.Fatal(err)
	}
	text := configMap.Data["fleet-hub.json"]
	if !json.Valid([]byte(text)) || configMap.Namespace != "monitoring" || configMap.Labels["grafana_dashboard"] != "1" {
		t.Errorf("dashboard in %s, labels %v, %d bytes", configMap.Namespace, configMap.Labels, len(text))
	}
	if !strings.Contains(found["Deployment/fleet-controller"], "--object-metrics=false") {
		t.Error("metrics of objects cannot be switched off")
	}
	documented, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range regexp.MustCompile("fleet_[a-z_]+").FindAllString(text, -1) {
		if !strings.Contains(string(documented), "`"+name+"`") {
			t.Errorf("%s is not in docs/metrics.md", name)
		}
	}
}

// Each shard is a Deployment of its own, once, that works on its label alone and elects by a lease it may write.
func TestShards(t *testing.T) {
	values := map[string]any{
		"nodeSelector": map[string]any{"pool": "hub", "zone": "a"},
		"controller":   map[string]any{"replicas": 3, "automaticShards": 64},
		"shards": []any{
			map[string]any{"id": "blue", "nodeSelector": map[string]any{"zone": "b"}},
			map[string]any{"id": "green"}, map[string]any{"id": "blue"},
		},
	}
	objects := documents(t, "fleet", values)
	selectors := map[string]bool{}
	for name, want := range map[string]struct{ id, zone string }{
		"fleet-controller": {"", "a"}, "fleet-controller-shard-blue": {"blue", "b"}, "fleet-controller-shard-green": {"green", "a"},
	} {
		deployment := read[appsv1.Deployment](t, objects, "Deployment/"+name)
		pod := deployment.Spec.Template.Spec
		if has := slices.Contains(pod.Containers[0].Args, "--shard-id="+want.id); has != (want.id != "") || *deployment.Spec.Replicas != 3 {
			t.Errorf("%s: %d replicas, arguments %v", name, *deployment.Spec.Replicas, pod.Containers[0].Args)
		}
		if !slices.Contains(pod.Containers[0].Args, "--automatic-shards=64") {
			t.Errorf("%s: arguments %v", name, pod.Containers[0].Args)
		}
		if pod.NodeSelector["zone"] != want.zone || pod.NodeSelector["pool"] != "hub" {
			t.Errorf("%s: node selector %v", name, pod.NodeSelector)
		}
		selector, err := metav1.LabelSelectorAsSelector(deployment.Spec.Selector)
		if err != nil || !selector.Matches(labels.Set(deployment.Spec.Template.Labels)) || selectors[selector.String()] {
			t.Errorf("%s: selector %s is another's or does not match its pods: %v", name, selector, err)
		}
		selectors[selector.String()] = true
	}
	role := read[rbacv1.Role](t, objects, "Role/fleet-controller-leader-election")
	for _, lease := range []string{"fleet-controller-leader-election-shard", "fleet-controller-leader-election-shard-blue"} {
		if !slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.ResourceNames, lease) }) {
			t.Errorf("lease %s may not be written: %v", lease, role.Rules)
		}
	}
}
