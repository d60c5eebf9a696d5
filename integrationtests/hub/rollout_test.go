package hub

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/gitserver"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/status"
)

// rolling is a bundle on four clusters, one of which changes at a time.
type rolling struct {
	*hub
	namespace string
	repo      *gitserver.Repo
	object    *fleet.GitRepo
	bundle    *fleet.Bundle
}

func newRolling(h *hub) *rolling {
	h.t.Helper()
	r := &rolling{hub: h, namespace: h.workspace("a", "b", "c", "d")}
	var commit string
	r.repo, commit = h.repo(map[string]string{
		"app/one.yaml":   fmt.Sprintf(configMap, "v1"),
		"app/fleet.yaml": "defaultNamespace: one\nrolloutStrategy: {type: Progressive, maxConcurrency: 1}\n",
	})
	r.object = gitRepo(r.namespace, "shop", r.repo.HTTPURL(), nil)
	h.create(r.object)
	wait(h, r.object, "has the commit", commitIs(commit))
	r.bundle = &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: r.namespace, Name: "shop-app"}}
	return r
}

func (r *rolling) push(text string) {
	r.t.Helper()
	commit := r.commit(r.repo, map[string]string{
		"app/one.yaml":   fmt.Sprintf(configMap, text),
		"app/fleet.yaml": "defaultNamespace: one\nrolloutStrategy: {type: Progressive, maxConcurrency: 1}\n",
	})
	wait(r.hub, r.object, "has the commit", commitIs(commit))
}

// reports lets the agent of a cluster report what it is told as ready, or that it cannot apply it.
func (r *rolling) reports(cluster string, ready bool) {
	r.t.Helper()
	deployment := r.deployments(r.bundle.Name, r.namespace)[cluster]
	before := deployment.DeepCopy()
	deployed := fleet.Condition{Type: fleet.ConditionDeployed, Status: corev1.ConditionTrue}
	deployment.Status.AckedDeploymentID = deployment.Spec.DeploymentID
	if ready {
		deployment.Status.AppliedDeploymentID = deployment.Spec.DeploymentID
		deployment.Status.Ready, deployment.Status.NonModified = true, true
	} else {
		deployed.Status, deployed.Message = corev1.ConditionFalse, "no way"
	}
	deployment.Status.Conditions = []fleet.Condition{deployed}
	if err := r.client.Status().Patch(r.t.Context(), &deployment, client.MergeFrom(before)); err != nil {
		r.t.Fatal(err)
	}
}

// waitFor waits until the bundle's progress is as wanted: "Phase toApply/progressing/succeeded/failed".
func (r *rolling) waitFor(want string) {
	r.t.Helper()
	wait(r.hub, r.bundle, "is "+want, func(b *fleet.Bundle) error {
		if b.Status.Rollout == nil || b.Status.ObservedGeneration != b.Generation {
			return fmt.Errorf("not planned: %+v", b.Status)
		}
		s := b.Status.Rollout
		if got := fmt.Sprintf("%s %d/%d/%d/%d", s.Phase, s.ToApply, s.Progressing, s.Succeeded, s.Failed); got != want {
			return fmt.Errorf("is %s", got)
		}
		return nil
	})
}

// told checks which clusters are told what is newest, as letters.
func (r *rolling) told(want string) {
	r.t.Helper()
	got := ""
	deployments := r.deployments(r.bundle.Name, r.namespace)
	for _, cluster := range []string{"a", "b", "c", "d"} {
		if bd := deployments[cluster]; bd.Spec.DeploymentID != "" && bd.Spec.DeploymentID == bd.Spec.StagedDeploymentID {
			got += cluster
		}
	}
	if got != want {
		r.t.Errorf("told are %q, want %q", got, want)
	}
}

// fleet runs the command line and returns what it prints.
func (r *rolling) fleet(wantCode int, args ...string) string {
	r.t.Helper()
	var out, errOut bytes.Buffer
	args = append([]string{"--kubeconfig", r.cluster.Admin().Kubeconfig, "--namespace", r.namespace}, args...)
	code := cli.Run(r.t.Context(), args, genericiooptions.IOStreams{In: strings.NewReader(""), Out: &out, ErrOut: &errOut}, session.Environment{})
	if code != wantCode {
		r.t.Fatalf("fleet %s: exit code %d, want %d\n%s%s", strings.Join(args[4:], " "), code, wantCode, out.String(), errOut.String())
	}
	return out.String() + errOut.String()
}

// A progressive rollout changes one cluster after another and halts when one fails, also for a controller
// that starts anew; a person lets it go on, pauses the bundle over a commit and resumes it.
func TestRolloutHaltsPausesAndResumes(t *testing.T) {
	r := newRolling(getHub(t))
	for i, last := range []string{"a", "b", "c", "d"} {
		r.waitDeployments(r.bundle.Name, r.namespace, []string{"a", "b", "c", "d"}[:i+1]...)
		r.reports(last, true)
	}
	r.waitFor("Complete 0/0/4/0")

	r.push("v2")
	r.waitFor("Progressing 3/1/0/0")
	r.told("a")
	if out := r.fleet(3, "rollout", "status", "shop", "--watch", "--timeout", "1s"); !strings.Contains(out, "0 of 4 succeeded, 1 on their way, 3 to come") {
		t.Errorf("status is %s", out)
	}
	r.reports("a", true)
	r.waitFor("Progressing 2/1/1/0")
	r.told("ab")
	r.reports("b", false)
	r.waitFor("Halted 2/0/1/1")
	r.restart()
	r.waitFor("Halted 2/0/1/1")
	r.told("ab")
	var halted struct {
		Items []struct{ Bundles []fleet.RolloutStatus }
	}
	out := r.fleet(4, "rollout", "status", "shop", "--watch", "-o", "json")
	if err := json.Unmarshal([]byte(out), &halted); err != nil || len(halted.Items) != 1 || !halted.Items[0].Bundles[0].Breached {
		t.Errorf("status is %s (%v)", out, err)
	}
	r.fleet(0, "rollout", "pause", "shop")
	wait(r.hub, r.bundle, "is paused", func(b *fleet.Bundle) error {
		if !b.Spec.Paused || b.Status.ObservedGeneration != b.Generation {
			return fmt.Errorf("paused %v, generation %d, planned %d", b.Spec.Paused, b.Generation, b.Status.ObservedGeneration)
		}
		return nil
	})
	r.waitFor("Halted 2/0/1/1")
	if out := r.fleet(0, "rollout", "resume", "shop"); !strings.Contains(out, "shop-app resumed: goes on until more than 1 fail") {
		t.Errorf("resume says %s", out)
	}
	r.waitFor("Progressing 1/1/1/1")
	r.told("abc")
	r.reports("c", true)
	r.waitFor("Progressing 0/1/2/1")
	r.told("abcd")
	r.reports("d", true)
	r.reports("b", true)
	r.waitFor("Complete 0/0/4/0")
	r.fleet(0, "rollout", "status", "bundle", "shop-app")
	r.pausedOverACommit()
}

// pausedOverACommit pauses the bundle, which the next commits leave so.
func (r *rolling) pausedOverACommit() {
	r.t.Helper()
	r.fleet(0, "rollout", "pause", "bundle", "shop-app")
	r.push("v3")
	r.waitFor("Halted 4/0/0/0")
	r.told("")
	r.push("v4")
	r.waitFor("Halted 4/0/0/0")
	r.told("")
	if !r.bundle.Spec.Paused {
		r.t.Error("a commit ended the pause")
	}
	kubetest.Eventually(r.t, "every cluster shows that it is held", func(ctxT) error {
		for name, bd := range r.deployments(r.bundle.Name, r.namespace) {
			if !bd.Spec.Paused || status.Of(&bd) != fleet.OutOfSync {
				return fmt.Errorf("%s is %s, paused %v", name, status.Of(&bd), bd.Spec.Paused)
			}
		}
		return nil
	})
	if out := r.fleet(4, "rollout", "status", "shop"); !strings.Contains(out, "Halted  0 of 4 succeeded, 4 to come  paused") {
		r.t.Errorf("status is %s", out)
	}
	r.fleet(0, "rollout", "resume", "bundle", "shop-app")
	r.waitFor("Progressing 3/1/0/0")
	r.told("a")
	if r.bundle.Spec.Paused || r.bundle.Annotations[fleet.HoldAnnotation] != "" {
		r.t.Errorf("still held: %v", r.bundle.Annotations)
	}
}
