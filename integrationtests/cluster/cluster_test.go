package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster/controller"
	"github.com/fairlead-dev/fairlead/pkg/names"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
)

func TestNewCluster(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{})
	workspace := h.workspace(t)
	c := newCluster(workspace, "meadow", "client")
	h.create(t, c)
	wait(t, h, c, "has a namespace", hasNamespace)
	if want := names.ClusterNamespace(workspace, "meadow"); c.Status.Namespace != want {
		t.Errorf("namespace %s, want %s", c.Status.Namespace, want)
	}
	if c.Labels[fleet.ManagementNameLabel] != "meadow" {
		t.Errorf("labels %v", c.Labels)
	}
	if c.Status.Phase != fleet.ClusterPending || c.Status.Display.State != parent.StateWaitCheckIn || !c.Status.Agent.LastSeen.IsZero() {
		t.Errorf("status %+v", c.Status)
	}
	if !status.IsTrue(c.Status.Conditions, fleet.ConditionProcessed) {
		t.Errorf("conditions %v", c.Status.Conditions)
	}
	var namespace corev1.Namespace
	if err := h.client.Get(t.Context(), client.ObjectKey{Name: c.Status.Namespace}, &namespace); err != nil {
		t.Fatal(err)
	}
	if namespace.Labels[fleet.ManagedLabel] != "true" || namespace.Annotations[fleet.ClusterAnnotation] != "meadow" || namespace.Annotations[fleet.ClusterNamespaceAnnotation] != workspace {
		t.Errorf("namespace %v", namespace.ObjectMeta)
	}
}

func TestWhatIsTakenAwayComesBack(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{})
	c := newCluster(h.workspace(t), "meadow", "client")
	h.create(t, c)
	wait(t, h, c, "has a namespace", hasNamespace)
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: c.Status.Namespace, Name: "fleet-agent"}}
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(binding), binding); err != nil {
		t.Fatal(err)
	}
	if err := h.client.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	was := binding.UID
	wait(t, h, binding, "is back", func(b *rbacv1.RoleBinding) error {
		if b.UID == was {
			return errors.New("it is the old one")
		}
		return nil
	})
	before := binding.DeepCopy()
	binding.Subjects = nil
	if err := h.client.Patch(t.Context(), binding, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	wait(t, h, binding, "has its subject again", func(b *rbacv1.RoleBinding) error {
		if len(b.Subjects) != 1 {
			return fmt.Errorf("subjects %v", b.Subjects)
		}
		return nil
	})
}

func phaseIs(want fleet.ClusterPhase, state string) func(*fleet.Cluster) error {
	return func(c *fleet.Cluster) error {
		if c.Status.Phase != want || c.Status.Display.State != state {
			return fmt.Errorf("phase %q, state %q", c.Status.Phase, c.Status.Display.State)
		}
		return nil
	}
}

func TestHeartbeat(t *testing.T) {
	h := getHub(t)
	clock := h.run(t, controller.Options{})
	v := h.token(t, h.workspace(t), "join", time.Hour)
	agent := h.join(t, v, "client-1")
	c := newCluster(v.ClusterNamespace, agent.clusterName, "")
	wait(t, h, c, "waits for its agent", phaseIs(fleet.ClusterPending, parent.StateWaitCheckIn))

	agent.renewLease(t, 600)
	wait(t, h, c, "is ready", phaseIs(fleet.ClusterReady, ""))
	if s := c.Status; s.Versions == nil || s.Versions.Agent != "v9" || s.Versions.Kubernetes != "v1.37.2" || s.Versions.Protocol != 1 || s.Agent.Namespace != "cattle-fleet-system" || s.Agent.LastSeen.IsZero() {
		t.Errorf("status %+v", s)
	}

	clock.advance(31 * time.Minute) // three intervals of ten minutes
	touch(t, h, c)
	wait(t, h, c, "is missed", phaseIs(fleet.ClusterNotReady, parent.StateDisconnected))
	if d := c.Status.Display; d.Message == "" || !d.Error {
		t.Errorf("display %+v", d)
	}
	if r := status.Find(c.Status.Conditions, fleet.ConditionReady); r == nil || r.Status != corev1.ConditionFalse {
		t.Errorf("Ready is %v", r)
	}

	clock.advance(20 * time.Minute)
	touch(t, h, c)
	wait(t, h, c, "is lost", phaseIs(fleet.ClusterUnknown, parent.StateDisconnected))

	agent.renewLease(t, 600)
	h.settle(t)
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(c), c); err != nil || c.Status.Phase != fleet.ClusterUnknown {
		t.Errorf("after one renewal the phase is %s (%v)", c.Status.Phase, err)
	}
	wait(t, h, c, "is back", func(c *fleet.Cluster) error {
		agent.renewLease(t, 600) // again, since the hub may see two that follow each other closely as one
		return phaseIs(fleet.ClusterReady, "")(c)
	})
	if !status.IsTrue(c.Status.Conditions, fleet.ConditionReady) || !status.IsTrue(c.Status.Conditions, fleet.ConditionAvailable) {
		t.Errorf("conditions %v", c.Status.Conditions)
	}
}

// Silence is noticed by the hub's own timer, without any event.
func TestSilenceIsNoticed(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{})
	v := h.token(t, h.workspace(t), "join", time.Hour)
	agent := h.join(t, v, "client-1")
	c := newCluster(v.ClusterNamespace, agent.clusterName, "")
	agent.renewLease(t, 1)
	wait(t, h, c, "was ready and is missed", phaseIs(fleet.ClusterNotReady, parent.StateDisconnected))
}

// settle waits until the controllers have seen what was written before: they answer a new Cluster only
// after it.
func (h *hub) settle(t *testing.T) {
	t.Helper()
	c := newCluster(h.workspace(t), "probe", "")
	h.create(t, c)
	wait(t, h, c, "has a namespace", hasNamespace)
}

func TestHeartbeatsWriteNothing(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{})
	workspace := h.workspace(t)
	v := h.token(t, workspace, "join", time.Hour)
	agent := h.join(t, v, "client-1")
	c := newCluster(workspace, agent.clusterName, "")
	h.create(t, &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "all"}, Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{}}})
	agent.renewLease(t, 600)
	wait(t, h, c, "is ready", phaseIs(fleet.ClusterReady, ""))
	wait(t, h, &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "all"}}, "is ready", func(g *fleet.ClusterGroup) error {
		if g.Status.ClusterCount != 1 || g.Status.NonReadyClusterCount != 0 {
			return fmt.Errorf("status %+v", g.Status)
		}
		return nil
	})
	h.settle(t)
	began := 0
	kubetest.Eventually(t, "the hub has written all about the new cluster", func(context.Context) error {
		before := len(h.hubWrites(t, workspace, agent.namespace))
		h.quiet(t)
		if began = len(h.hubWrites(t, workspace, agent.namespace)); began != before {
			return fmt.Errorf("%d writes became %d", before, began)
		}
		return nil
	})
	if began == 0 {
		t.Fatal("the hub made a cluster without a write: this test sees nothing")
	}
	for range 20 {
		agent.renewLease(t, 600)
	}
	touch(t, h, c)
	h.quiet(t)
	if all := h.hubWrites(t, workspace, agent.namespace); len(all) > began {
		t.Errorf("heartbeats and an annotation made the hub write:\n%v", all[began:])
	}
}

// hubWrites returns what the hub has written in some namespaces, or to them.
func (h *hub) hubWrites(t *testing.T, namespaces ...string) []writes.Write {
	t.Helper()
	all, err := h.kube.Writes()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(w writes.Write) bool {
		return w.User != "system:serviceaccount:"+systemNamespace+":fleet-controller" ||
			!slices.Contains(namespaces, w.Namespace) && !slices.Contains(namespaces, w.Name) || w.Resource == "events"
	})
}

// quiet waits a moment in which somebody who wants to write would.
func (h *hub) quiet(t *testing.T) {
	t.Helper()
	timer := time.NewTimer(3 * time.Second)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-t.Context().Done():
	}
}

func deployment(namespace string) *fleet.BundleDeployment {
	return &fleet.BundleDeployment{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: "app", Finalizers: []string{fleet.BundleDeploymentFinalizer},
	}}
}

func (h *hub) gone(t *testing.T, object client.Object) {
	t.Helper()
	kubetest.Eventually(t, fmt.Sprintf("%T %s is gone", object, object.GetName()), func(ctx context.Context) error {
		err := h.client.Get(ctx, client.ObjectKeyFromObject(object), object)
		if !apierrors.IsNotFound(err) {
			return errors.Join(fmt.Errorf("it is there with finalizers %v", object.GetFinalizers()), err)
		}
		return nil
	})
}

func TestDeleteWithoutAgent(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{})
	workspace := h.workspace(t)
	v := h.token(t, workspace, "join", time.Hour)
	agent := h.join(t, v, "client-1")
	h.create(t, deployment(agent.namespace))
	if err := h.client.Delete(t.Context(), newCluster(workspace, agent.clusterName, "")); err != nil {
		t.Fatal(err)
	}
	h.gone(t, newCluster(workspace, agent.clusterName, ""))
	h.gone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.namespace}})
	h.gone(t, agent.registration)
	kubetest.Eventually(t, "the removed agent's certificate is worth nothing", func(ctx context.Context) error {
		err := agent.client.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(agent.namespace))
		if !apierrors.IsForbidden(err) {
			return errors.Join(errors.New("listing was not forbidden"), err)
		}
		return nil
	})
	again := h.join(t, v, "client-1")
	if again.clusterName != agent.clusterName {
		t.Errorf("joined again as %s", again.clusterName)
	}
}

func TestDeleteWaitsForTheAgent(t *testing.T) {
	h := getHub(t)
	clock := h.run(t, controller.Options{DeletionGrace: time.Hour})
	workspace := h.workspace(t)
	v := h.token(t, workspace, "join", time.Hour)
	// In this order: with the clock put forward neither the token nor a heartbeat would be good any more.
	for _, answers := range []bool{true, false} {
		name := map[bool]string{true: "the agent uninstalls", false: "the grace passes"}[answers]
		t.Run(name, func(t *testing.T) {
			agent := h.join(t, v, name)
			c := newCluster(workspace, agent.clusterName, "")
			agent.renewLease(t, 3600)
			wait(t, h, c, "is ready", phaseIs(fleet.ClusterReady, ""))
			app := deployment(agent.namespace)
			h.create(t, app)
			agent.reportApplied(t, app, "s-1:o")
			if err := h.client.Delete(t.Context(), c); err != nil {
				t.Fatal(err)
			}
			wait(t, h, app, "is being deleted", func(d *fleet.BundleDeployment) error {
				if d.DeletionTimestamp == nil {
					return errors.New("it is not")
				}
				return nil
			})
			if answers {
				agent.reportApplied(t, app, "")
			} else {
				clock.advance(2 * time.Hour)
				touch(t, h, c)
			}
			h.gone(t, c)
			h.gone(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: agent.namespace}})
		})
	}
}

func TestGroup(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{})
	workspace := h.workspace(t)
	for name, env := range map[string]string{"a": "dev", "b": "dev", "c": "prod"} {
		c := newCluster(workspace, name, "client-"+name)
		c.Labels = map[string]string{"env": env}
		h.create(t, c)
	}
	group := &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "g"}}
	h.create(t, group)
	counts := func(clusters int, ready string) func(*fleet.ClusterGroup) error {
		return func(g *fleet.ClusterGroup) error {
			if g.Status.ClusterCount != clusters || g.Status.Display.ReadyClusters != ready || len(g.Status.Conditions) == 0 {
				return fmt.Errorf("status %+v", g.Status)
			}
			return nil
		}
	}
	wait(t, h, group, "selects nothing", counts(0, "0/0"))
	sel := func(selector *metav1.LabelSelector) {
		before := group.DeepCopy()
		group.Spec.Selector = selector
		if err := h.client.Patch(t.Context(), group, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
	sel(&metav1.LabelSelector{MatchLabels: map[string]string{"env": "dev"}})
	wait(t, h, group, "has the two of dev", counts(2, "0/2 (a,b)"))

	moved := newCluster(workspace, "c", "")
	if err := h.client.Get(t.Context(), client.ObjectKeyFromObject(moved), moved); err != nil {
		t.Fatal(err)
	}
	before := moved.DeepCopy()
	moved.Labels["env"] = "dev"
	if err := h.client.Patch(t.Context(), moved, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	wait(t, h, group, "has the third", counts(3, "0/3 (a,b,c)"))
	sel(&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "env", Operator: "Like"}}})
	wait(t, h, group, "says what is wrong", func(g *fleet.ClusterGroup) error {
		if c := status.Find(g.Status.Conditions, fleet.ConditionProcessed); c == nil || c.Reason != "InvalidSelector" {
			return fmt.Errorf("conditions %v", g.Status.Conditions)
		}
		return nil
	})
	sel(&metav1.LabelSelector{})
	wait(t, h, group, "has all", counts(3, "0/3 (a,b,c)"))
}

func TestRollup(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{})
	workspace := h.workspace(t)
	v := h.token(t, workspace, "join", time.Hour)
	agent := h.join(t, v, "client-1")
	agent.renewLease(t, 600)
	c := newCluster(workspace, agent.clusterName, "")
	group := &fleet.ClusterGroup{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "all"}, Spec: fleet.ClusterGroupSpec{Selector: &metav1.LabelSelector{}}}
	h.create(t, group)
	app := deployment(agent.namespace)
	app.Finalizers = nil
	app.Labels = map[string]string{
		fleet.ClusterLabel: c.Name, fleet.ClusterNamespaceLabel: workspace,
		fleet.BundleLabel: "app", fleet.BundleNamespaceLabel: workspace, fleet.RepoLabel: "repo",
	}
	app.Spec.DeploymentID, app.Spec.StagedDeploymentID = "s-1:o", "s-1:o"
	h.create(t, app)
	wait(t, h, c, "waits for its deployment", func(c *fleet.Cluster) error {
		if c.Status.Display.ReadyBundles != "0/1" || c.Status.Display.State != string(fleet.WaitApplied) || c.Status.DesiredReadyGitRepos != 1 {
			return fmt.Errorf("status %+v", c.Status)
		}
		return nil
	})
	before := app.DeepCopy()
	app.Status.AppliedDeploymentID, app.Status.Ready, app.Status.NonModified = "s-1:o", true, true
	app.Status.ResourceCounts = fleet.ResourceCounts{Ready: 2, DesiredReady: 2}
	if err := agent.client.Status().Patch(t.Context(), app, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	wait(t, h, c, "is ready", func(c *fleet.Cluster) error {
		if c.Status.Display.ReadyBundles != "1/1" || c.Status.Display.State != "" || c.Status.ReadyGitRepos != 1 || c.Status.ResourceCounts.Ready != 2 {
			return fmt.Errorf("status %+v", c.Status)
		}
		return nil
	})
	wait(t, h, group, "is ready", func(g *fleet.ClusterGroup) error {
		if g.Status.Display.ReadyBundles != "1/1" || g.Status.Display.ReadyClusters != "1/1" || g.Status.ResourceCounts.Ready != 2 {
			return fmt.Errorf("status %+v", g.Status)
		}
		return nil
	})
}

// The identity of the hub is the chart's: were it an administrator, the other tests would prove little.
func TestHubIsNoAdministrator(t *testing.T) {
	h := getHub(t)
	access, err := h.kube.ServiceAccount(t.Context(), systemNamespace, "fleet-controller")
	if err != nil {
		t.Fatal(err)
	}
	hubClient := h.as(t, rest.CopyConfig(access.Config))
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "escalation"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: systemNamespace, Name: "fleet-controller"}},
	}
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "escalation"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}}},
	}
	for _, attempt := range []client.Object{binding, role} {
		if err := hubClient.Create(t.Context(), attempt); !apierrors.IsForbidden(err) {
			t.Errorf("create %T: got %v, want forbidden", attempt, err)
		}
	}
	if err := hubClient.List(t.Context(), &corev1.PodList{}); !apierrors.IsForbidden(err) {
		t.Errorf("list pods: %v", err)
	}
}
