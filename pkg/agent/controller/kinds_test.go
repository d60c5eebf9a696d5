package controller_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// kubectl runs kubectl on the member.
func (w *world) kubectl(args ...string) string {
	w.t.Helper()
	out, err := w.member.Kubectl(context.WithoutCancel(w.t.Context()), nil, args...)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// A kind that nobody knows, or whose API does not answer, concerns the objects of that kind alone; and when it
// comes, they follow, also after the agent has been started anew.
func TestKindsThatAreNotThere(t *testing.T) {
	w := newWorld(t)
	name := strings.ReplaceAll(w.target, "-", "")
	dead := "dead" + name + ".example.com"
	w.apply(`apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.` + dead + `}
spec: {group: ` + dead + `, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {name: dead, namespace: default}}
`)
	t.Cleanup(func() { w.kubectl("delete", "apiservice", "v1."+dead) })
	kubetest.Eventually(t, "the API is known not to answer", func(ctx context.Context) error {
		out, err := w.member.Kubectl(ctx, nil, "get", "apiservice", "v1."+dead, "-o", "jsonpath={.status.conditions[?(@.type=='Available')].status}")
		if err == nil && out != "False" {
			err = fmt.Errorf("available %q", out)
		}
		return err
	})
	w.stop()
	w.start()
	thing := func(group string) string {
		return "apiVersion: " + group + "/v1\nkind: Thing\nmetadata: {name: x}\n---\n"
	}
	w.put("dead", bundle{files: map[string]string{"a.yaml": thing(dead) + configMap("beside-dead", "a", "1")}})
	w.put("unknown", bundle{files: map[string]string{"a.yaml": thing("none."+name) + configMap("beside-unknown", "a", "1")}})
	group := name + ".example.com"
	jar := "apiVersion: " + group + "/v1\nkind: Jar\nmetadata: {name: first}\n---\n"
	caps := configMap("caps", "apps", "{{ .Capabilities.APIVersions.Has `apps/v1/Deployment` }}", "jars", "{{ .Capabilities.APIVersions.Has `"+group+"/v1/Jar` }}")
	w.put("caps", bundle{files: chart(map[string]string{"a.yaml": caps})})
	w.until("caps", fleet.Ready)
	w.wantData("caps", map[string]string{"apps": "true", "jars": "false"})
	for bundle, want := range map[string]string{"dead": dead + "/v1", "unknown": "no matches for kind \"Thing\""} {
		refused := w.until(bundle, fleet.ErrApplied)
		if message := status.MessageOf(refused); !strings.Contains(message, want) {
			t.Errorf("%s: message %q lacks %q", bundle, message, want)
		}
		w.wantData("beside-"+bundle, map[string]string{"a": "1"})
	}

	// Somebody else installs a kind: who asks for it next is told of it.
	w.apply(definition(group))
	w.kubectl("wait", "--for=condition=Established", "crd/jars."+group, "--timeout=3m")
	w.put("caps", bundle{files: chart(map[string]string{"a.yaml": caps}), options: fleet.BundleDeploymentOptions{ForceSyncGeneration: 1}})
	w.wantData("caps", map[string]string{"apps": "true", "jars": "true"})
	w.put("jar", bundle{files: map[string]string{"a.yaml": jar}})
	w.until("jar", fleet.Ready)
	w.stop()
	w.kubectl("delete", "crd", "jars."+group)
	w.start()
	w.untilTrue("jar", "does not know the kind", func(d *fleet.BundleDeployment) bool {
		return d.Status.ResourceCounts.Unknown == 1 || d.Status.ResourceCounts.Missing == 1
	})
	w.apply(definition(group))
	w.untilTrue("jar", "misses its object", func(d *fleet.BundleDeployment) bool {
		return len(d.Status.ModifiedStatus) == 1 && d.Status.ModifiedStatus[0].Create && d.Status.ModifiedStatus[0].Namespace == w.target
	})
	w.kubectl("delete", "crd", "jars."+group)
}
