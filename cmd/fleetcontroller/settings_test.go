package main

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/content"
)

func TestDefaults(t *testing.T) {
	for name, test := range map[string]struct {
		env  map[string]string
		want func(*settings) bool
	}{
		"nothing set": {nil, func(s *settings) bool {
			return s.namespace == "cattle-fleet-system" && s.gitRepoWorkers == 50 && s.leaderElect
		}},
		"namespace":         {map[string]string{"NAMESPACE": "elsewhere"}, func(s *settings) bool { return s.namespace == "elsewhere" }},
		"workers":           {map[string]string{"BUNDLE_RECONCILER_WORKERS": "7"}, func(s *settings) bool { return s.bundleWorkers == 7 }},
		"no number":         {map[string]string{"BUNDLE_RECONCILER_WORKERS": "many"}, func(s *settings) bool { return s.bundleWorkers == 50 }},
		"too few":           {map[string]string{"CLUSTER_RECONCILER_WORKERS": "-1"}, func(s *settings) bool { return s.clusterWorkers == 16 }},
		"lease":             {map[string]string{"CATTLE_ELECTION_LEASE_DURATION": "1m"}, func(s *settings) bool { return s.leaseDuration == time.Minute }},
		"registries":        {map[string]string{"OCI_STORAGE": "false"}, func(s *settings) bool { return !s.registries }},
		"registries unset":  {map[string]string{"OCI_STORAGE": "maybe"}, func(s *settings) bool { return s.registries }},
		"no duration":       {map[string]string{"CATTLE_ELECTION_RETRY_PERIOD": "10"}, func(s *settings) bool { return s.retryPeriod == 2*time.Second }},
		"negative duration": {map[string]string{"CATTLE_ELECTION_RENEW_DEADLINE": "-3s"}, func(s *settings) bool { return s.renewDeadline == 10*time.Second }},
	} {
		t.Run(name, func(t *testing.T) {
			if got := defaults(func(key string) string { return test.env[key] }); !test.want(got) {
				t.Errorf("settings %+v", got)
			}
		})
	}
}

// The lease must be longer than its renewal may take, or two replicas would work at the same time.
func TestLeaseOutlivesItsRenewal(t *testing.T) {
	s := defaults(func(string) string { return "" })
	if s.leaseDuration <= s.renewDeadline || s.renewDeadline <= s.retryPeriod {
		t.Errorf("lease %s, renewal %s, retry %s", s.leaseDuration, s.renewDeadline, s.retryPeriod)
	}
	options := managerOptions(s)
	if !options.LeaderElection || *options.LeaseDuration != s.leaseDuration {
		t.Errorf("leader election: %+v", options)
	}
}

func TestMetricsCanBeSwitchedOff(t *testing.T) {
	s := defaults(func(string) string { return "" })
	s.metricsAddress, s.disableMetrics = ":1", true
	if got := managerOptions(s).Metrics.BindAddress; got != "0" {
		t.Errorf("metrics at %s", got)
	}
}

// What is large or secret is not kept in memory: files of Bundles, Secrets.
func TestCachesLeaveOut(t *testing.T) {
	options := managerOptions(defaults(func(string) string { return "" }))
	bundle := &fleet.Bundle{}
	bundle.Spec.Resources = []fleet.BundleResource{{Name: "one.yaml", Content: strings.Repeat("x", 1000)}}
	trimmed := false
	for kind, by := range options.Cache.ByObject {
		if _, ok := kind.(*fleet.Bundle); !ok {
			continue
		}
		kept, err := by.Transform(bundle)
		if err != nil {
			t.Fatal(err)
		}
		_, trimmed = content.SummaryOf(kept.(*fleet.Bundle))
	}
	if !trimmed || len(bundle.Spec.Resources) != 0 {
		t.Error("Bundles are kept with their files")
	}
	secret := false
	for _, kind := range options.Client.Cache.DisableFor {
		_, is := kind.(*corev1.Secret)
		secret = secret || is
	}
	if !secret {
		t.Error("Secrets are read through a cache of all of them")
	}
}

// Every flag is in the document of settings, and none besides.
func TestFlagsAreDocumented(t *testing.T) {
	document, err := os.ReadFile("../../docs/operations/settings.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(document), "\n## fleet-controller\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var told, flags []string
	for _, row := range regexp.MustCompile("(?m)^\\| `--([a-z-]+)` ").FindAllStringSubmatch(section, -1) {
		told = append(told, row[1])
	}
	command().Flags().VisitAll(func(flag *pflag.Flag) { flags = append(flags, flag.Name) })
	slices.Sort(told)
	slices.Sort(flags)
	if diff := cmp.Diff(flags, told); diff != "" {
		t.Errorf("docs/operations/settings.md (-flags +document):\n%s", diff)
	}
}
