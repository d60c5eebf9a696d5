package helm

import (
	"errors"
	"testing"
	"time"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/release"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

func TestSettingsOf(t *testing.T) {
	for name, test := range map[string]struct {
		helm *fleet.HelmOptions
		want settings
	}{
		"nothing said":       {nil, settings{timeout: defaultTimeout, maxHistory: defaultMaxHistory}},
		"zero says nothing":  {&fleet.HelmOptions{}, settings{timeout: defaultTimeout, maxHistory: defaultMaxHistory}},
		"a timeout waits":    {&fleet.HelmOptions{TimeoutSeconds: 7}, settings{timeout: 7 * time.Second, wait: true, maxHistory: defaultMaxHistory}},
		"all that is passed": {&fleet.HelmOptions{MaxHistory: 9, WaitForJobs: true, Atomic: true}, settings{timeout: defaultTimeout, maxHistory: 9, waitForJobs: true, atomic: true}},
	} {
		if got := settingsOf(fleet.BundleDeploymentOptions{Helm: test.helm}); got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestForeignRelease(t *testing.T) {
	made := func(bundle string) []*release.Release {
		metadata := &chart.Metadata{}
		if bundle != "" {
			metadata.Annotations = map[string]string{fleet.ReleaseBundleIDAnnotation: bundle}
		}
		return []*release.Release{{Name: "r", Namespace: "n", Chart: &chart.Chart{Metadata: metadata}}}
	}
	for name, test := range map[string]struct {
		revisions  []*release.Release
		take       bool
		leaves     bool
		wantReason string
	}{
		"none":                    {nil, false, false, ""},
		"ours":                    {made("a"), false, false, ""},
		"another bundle's":        {made("b"), false, false, ownership.ReasonOwnedByOther},
		"a person's":              {made(""), false, true, ownership.ReasonNotOwned},
		"a person's, taken":       {made(""), true, false, ""},
		"another bundle's, taken": {made("b"), true, false, ownership.ReasonOwnedByOther},
		"a leaving bundle's":      {made("b"), false, true, ""},
	} {
		request := Request{Input: render.Input{BundleID: "a"}, Leaves: func(bundle string) bool { return test.leaves && bundle == "b" }}
		err := foreignRelease(test.revisions, request, test.take)
		if test.wantReason == "" && err != nil || test.wantReason != "" && fault.ReasonOf(err) != test.wantReason {
			t.Errorf("%s: %v, want reason %q", name, err, test.wantReason)
		}
	}
}

func TestExplain(t *testing.T) {
	server := apierrors.NewServiceUnavailable("away")
	for name, test := range map[string]struct {
		err  error
		want fault.Class
	}{
		"a chart's mistake":       {errors.New("parse error"), fault.Stalled},
		"what has a class":        {fault.New(fault.Waiting, "X", "later"), fault.Waiting},
		"an API server's trouble": {server, fault.Transient},
	} {
		if got := fault.ClassOf(explain(test.err)); got != test.want {
			t.Errorf("%s: class %s, want %s", name, got, test.want)
		}
	}
}
