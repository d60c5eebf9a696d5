package controller_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/fairlead-dev/fairlead/integrationtests/faultproxy"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// through puts a fault proxy between the agent and its hub.
func (w *world) through() *faultproxy.Proxy {
	w.t.Helper()
	ctx, name := w.t.Context(), "agent-"+w.namespace
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: name}}
	if _, err := w.hub.Clients().CoreV1().ServiceAccounts(w.namespace).Create(ctx, account, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: w.namespace, Name: name}},
	}
	if _, err := w.hub.Clients().RbacV1().ClusterRoleBindings().Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	access, err := w.hub.ServiceAccount(ctx, w.namespace, name)
	if err != nil {
		w.t.Fatal(err)
	}
	proxy, err := faultproxy.Start(access.Config)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = proxy.Close() })
	w.toHub = func() *rest.Config { return proxy.Through(access.Config) }
	return proxy
}

// Whatever a hub answers that is no proof, nothing is removed from the member: not by an agent that knows its
// deployments, and not by one that has just started; and afterwards all goes on.
func TestHubThatCannotBeBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.stop()
	proxy := w.through()
	w.start()
	names := []string{"lost-a", "lost-b", "lost-c"}
	put := func(version int) {
		for _, name := range names {
			w.put(name, bundle{files: map[string]string{"a.yaml": configMap(name, "version", fmt.Sprint(version))}})
		}
	}
	put(0)
	uids := map[string]types.UID{}
	for _, name := range names {
		w.until(name, fleet.Ready)
		live, err := w.configMap(name)
		if err != nil {
			t.Fatal(err)
		}
		uids[name] = live.UID
	}
	lists, gets := faultproxy.Lists("bundledeployments"), faultproxy.Of("bundledeployments", "get")
	cases := []struct {
		name  string
		rules []faultproxy.Rule
	}{
		{"lists are empty", []faultproxy.Rule{{Match: lists, Do: faultproxy.Empty()}}},
		{"lists are empty and reads fail", []faultproxy.Rule{{Match: lists, Do: faultproxy.Empty()}, {Match: gets, Do: faultproxy.Fail(http.StatusInternalServerError)}}},
		{"lists fail", []faultproxy.Rule{{Match: lists, Do: faultproxy.Fail(http.StatusServiceUnavailable)}}},
	}
	version := 0
	for _, c := range cases {
		for _, cold := range []bool{false, true} {
			t.Logf("%s, cold %v", c.name, cold)
			proxy.Set(c.rules...)
			if cold {
				w.stop()
				w.start()
			} else {
				proxy.ExpireWatches("bundledeployments")
			}
			kubetest.Eventually(t, "the agent lists", func(context.Context) error {
				if proxy.Hits()[0] < 1 {
					return fmt.Errorf("hits %v", proxy.Hits())
				}
				return nil
			})
			<-time.After(3 * time.Second) // longer than ConfirmAfter and CollectEvery of this agent
			proxy.Set()
			version++
			put(version)
			for _, name := range names {
				id := w.get(name).Spec.DeploymentID
				w.untilTrue(name, "runs the new version", func(d *fleet.BundleDeployment) bool {
					return d.Status.AppliedDeploymentID == id && d.Status.Ready
				})
				live, err := w.configMap(name)
				if err != nil || live.UID != uids[name] || live.Data["version"] != fmt.Sprint(version) {
					t.Errorf("%s: %v, uid %s, data %v", name, err, live.UID, live.Data)
				}
			}
		}
	}
}
