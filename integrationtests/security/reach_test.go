package security

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// patch changes an object with somebody's rights.
func patch(t *testing.T, c client.Client, object client.Object, change map[string]any) {
	t.Helper()
	if err := c.Patch(t.Context(), object, merge(t, change)); err != nil {
		t.Fatal(err)
	}
}

func merge(t *testing.T, change map[string]any) client.Patch {
	t.Helper()
	text, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	return client.RawPatch(types.MergePatchType, text)
}

// rights returns what an identity may do in a namespace, as the API server sees it, without what the API
// server grants everybody or every service account.
func rights(ctx context.Context, c client.Client, namespace string) ([]string, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := c.Create(ctx, review); err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, rule := range review.Status.ResourceRules {
		for _, resource := range rule.Resources {
			if strings.HasPrefix(resource, "selfsubject") || resource == "clustertrustbundles" {
				continue
			}
			slices.Sort(rule.Verbs)
			found[fmt.Sprintf("%s %s%v", strings.Join(rule.Verbs, ","), resource, rule.ResourceNames)] = true
		}
	}
	return slices.Sorted(maps.Keys(found)), nil
}

// An agent's rights are counted out: whoever gives it another has to write it down here.
func TestRights(t *testing.T) {
	h := getHub(t)
	workspace := h.workspace()
	k := h.token(workspace, "join")
	own, other := k.join("own"), k.join("other")
	contents := "get contents[]"
	mayAnswer := fmt.Sprintf("get,patch clusterregistrations[%s]", own.registration.Name)
	mayAnswerOther := fmt.Sprintf("get,patch clusterregistrations[%s]", other.registration.Name)
	for name, c := range map[string]struct {
		client    client.Client
		namespace string
		want      []string
	}{
		"agent in its own namespace": {own.client, own.namespace, []string{
			"create,get clusterregistrations[]", contents, "get configmaps[]", "get secrets[]",
			"get,list,watch bundledeployments[]", "get,patch,update bundledeployments/status[]",
			"get,patch,update leases[fleet-agent]",
		}},
		"agent in another cluster's":  {own.client, other.namespace, []string{contents}},
		"agent in its workspace":      {own.client, workspace, []string{contents}},
		"agent in the hub's":          {own.client, systemNamespace, []string{contents}},
		"agent in kube-system":        {own.client, metav1.NamespaceSystem, []string{contents}},
		"token in its workspace":      {k.client, workspace, []string{"create clusterregistrations[]", mayAnswer, mayAnswerOther}},
		"token in a cluster's":        {k.client, own.namespace, nil},
		"token in the hub's":          {k.client, systemNamespace, nil},
		"token where credentials are": {k.client, "cattle-fleet-clusters-system", nil},
	} {
		slices.Sort(c.want)
		// An API server learns of new rights a moment after they are stored.
		kubetest.Eventually(t, name+" has its rights", func(ctx context.Context) error {
			got, err := rights(ctx, c.client, c.namespace)
			if err != nil || !slices.Equal(got, c.want) {
				return errors.Join(fmt.Errorf("it may\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n")), err)
			}
			return nil
		})
	}
}

// attempts are what somebody tries who should not be able to.
type attempts map[string]func(ctx context.Context) error

func (a attempts) mustBeForbidden(t *testing.T) {
	t.Helper()
	for what, try := range a {
		if err := try(t.Context()); !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want forbidden", what, err)
		}
	}
}

func lists(c client.WithWatch, namespace string) attempts {
	all := attempts{}
	for name, list := range map[string]client.ObjectList{
		"Secrets": &corev1.SecretList{}, "ConfigMaps": &corev1.ConfigMapList{}, "Pods": &corev1.PodList{}, "namespaces": &corev1.NamespaceList{},
		"Bundles": &fleet.BundleList{}, "GitRepos": &fleet.GitRepoList{}, "Clusters": &fleet.ClusterList{}, "groups": &fleet.ClusterGroupList{},
		"contents": &fleet.ContentList{}, "tokens": &fleet.ClusterRegistrationTokenList{}, "registrations": &fleet.ClusterRegistrationList{},
		"leases": &coordinationv1.LeaseList{}, "requests": &certificatesv1.CertificateSigningRequestList{}, "roles": &rbacv1.RoleList{},
		"accounts": &corev1.ServiceAccountList{}, "events": &corev1.EventList{},
	} {
		all["list "+name] = func(ctx context.Context) error {
			return c.List(ctx, list.DeepCopyObject().(client.ObjectList), client.InNamespace(namespace))
		}
		all["watch "+name] = func(ctx context.Context) error {
			w, err := c.Watch(ctx, list.DeepCopyObject().(client.ObjectList), client.InNamespace(namespace))
			if err == nil {
				w.Stop()
			}
			return err
		}
	}
	return all
}

func TestAgentReachesNothingElse(t *testing.T) {
	h := getHub(t)
	workspace := h.workspace()
	k := h.token(workspace, "join")
	own, other := k.join("own"), k.join("other")
	bundle := h.bundle(workspace, "app")
	mine, theirs := h.deployment(bundle, own.namespace), h.deployment(bundle, other.namespace)
	c := own.client
	meta := func(namespace, name string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name}
	}
	secret := &corev1.Secret{ObjectMeta: meta(other.namespace, "secret")}
	h.create(secret)

	for _, namespace := range []string{own.namespace, other.namespace, workspace, systemNamespace} {
		lists(c, namespace).mustBeForbidden(t)
	}
	write := func(object client.Object, change map[string]any) func(context.Context) error {
		return func(ctx context.Context) error {
			return c.Patch(ctx, object.DeepCopyObject().(client.Object), merge(t, change))
		}
	}
	create := func(object client.Object) func(context.Context) error {
		return func(ctx context.Context) error { return c.Create(ctx, object) }
	}
	labels := map[string]any{"metadata": map[string]any{"labels": map[string]any{fleet.BundleLabel: "other", fleet.RepoLabel: "other"}}}
	status := map[string]any{"status": map[string]any{"namespace": other.namespace}}
	attempts{
		"list another's deployments": func(ctx context.Context) error {
			return c.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(other.namespace))
		},
		"list all deployments": func(ctx context.Context) error { return c.List(ctx, &fleet.BundleDeploymentList{}) },
		"get another's deployment": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKeyFromObject(theirs), &fleet.BundleDeployment{})
		},
		"get another's Secret": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKeyFromObject(secret), &corev1.Secret{})
		},
		"get the token's values": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Namespace: workspace, Name: "join"}, &corev1.Secret{})
		},
		"get its Cluster": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKeyFromObject(own.cluster), &fleet.Cluster{})
		},
		"get another's lease": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKey{Namespace: other.namespace, Name: "fleet-agent"}, &coordinationv1.Lease{})
		},
		"label its deployment":   write(mine, labels),
		"release its deployment": write(mine, map[string]any{"spec": map[string]any{"deploymentID": "s-x:y", "paused": true}}),
		"hold its deployment":    write(mine, map[string]any{"metadata": map[string]any{"finalizers": []string{"evil.example/x"}}}),
		"update its deployment":  func(ctx context.Context) error { return c.Update(ctx, mine.DeepCopy()) },
		"delete its deployment":  func(ctx context.Context) error { return c.Delete(ctx, mine.DeepCopy()) },
		"delete all its deployments": func(ctx context.Context) error {
			return c.DeleteAllOf(ctx, &fleet.BundleDeployment{}, client.InNamespace(own.namespace))
		},
		"create a deployment": create(&fleet.BundleDeployment{ObjectMeta: meta(own.namespace, "x")}),
		"write another's deployment": func(ctx context.Context) error {
			return c.Status().Patch(ctx, theirs.DeepCopy(), merge(t, map[string]any{"status": map[string]any{"ready": true}}))
		},
		"write its Cluster's status": func(ctx context.Context) error {
			return c.Status().Patch(ctx, own.cluster.DeepCopy(), merge(t, status))
		},
		"write another Cluster's status": func(ctx context.Context) error {
			return c.Status().Patch(ctx, other.cluster.DeepCopy(), merge(t, status))
		},
		"label its Cluster":             write(own.cluster, labels),
		"write the Bundle":              write(bundle, labels),
		"create a Bundle":               create(&fleet.Bundle{ObjectMeta: meta(workspace, "x")}),
		"create a Bundle of its own":    create(&fleet.Bundle{ObjectMeta: meta(own.namespace, "x")}),
		"create a GitRepo":              create(&fleet.GitRepo{ObjectMeta: meta(own.namespace, "x")}),
		"create a Cluster":              create(&fleet.Cluster{ObjectMeta: meta(own.namespace, "x")}),
		"create a token":                create(&fleet.ClusterRegistrationToken{ObjectMeta: meta(own.namespace, "x")}),
		"create a content":              create(&fleet.Content{ObjectMeta: meta("", "s-x")}),
		"overwrite a content":           write(&fleet.Content{ObjectMeta: meta("", mine.Labels[fleet.ContentLabel])}, map[string]any{"content": []byte("x")}),
		"register another":              create(k.Request("third")),
		"register at another cluster's": create(&fleet.ClusterRegistration{ObjectMeta: meta(other.namespace, "x")}),
		"answer itself": func(ctx context.Context) error {
			return c.Status().Patch(ctx, &fleet.ClusterRegistration{ObjectMeta: meta(own.namespace, "x")}, merge(t, map[string]any{"status": map[string]any{"granted": true}}))
		},
		"renew another's lease": write(&coordinationv1.Lease{ObjectMeta: meta(other.namespace, "fleet-agent")}, labels),
		"create leases":         create(&coordinationv1.Lease{ObjectMeta: meta(own.namespace, "more")}),
		"delete its lease": func(ctx context.Context) error {
			return c.Delete(ctx, &coordinationv1.Lease{ObjectMeta: meta(own.namespace, "fleet-agent")})
		},
		"lead the hub":                   write(&coordinationv1.Lease{ObjectMeta: meta(systemNamespace, "fleet-controller-leader-election-shard")}, labels),
		"create a Secret":                create(&corev1.Secret{ObjectMeta: meta(own.namespace, "x")}),
		"create a ConfigMap":             create(&corev1.ConfigMap{ObjectMeta: meta(own.namespace, "x")}),
		"create an account":              create(&corev1.ServiceAccount{ObjectMeta: meta(own.namespace, "x")}),
		"bind a role":                    create(&rbacv1.RoleBinding{ObjectMeta: meta(own.namespace, "x"), RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "cluster-admin"}}),
		"create a role":                  create(&rbacv1.Role{ObjectMeta: meta(own.namespace, "x")}),
		"create an event":                create(&corev1.Event{ObjectMeta: meta(own.namespace, "x")}),
		"create a namespace":             create(&corev1.Namespace{ObjectMeta: meta("", "x")}),
		"ask for certificates elsewhere": create(&certificatesv1.CertificateSigningRequest{ObjectMeta: meta("", "x")}),
		"approve certificates": func(ctx context.Context) error {
			return c.SubResource("approval").Update(ctx, &certificatesv1.CertificateSigningRequest{ObjectMeta: meta("", "x")})
		},
		"ask who a token is":  create(&authenticationv1.TokenReview{}),
		"ask what others may": create(&authorizationv1.SubjectAccessReview{}),
		"get a token of the hub": func(ctx context.Context) error {
			return c.SubResource("token").Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta(systemNamespace, "fleet-controller")}, &authenticationv1.TokenRequest{})
		},
	}.mustBeForbidden(t)

	for name, who := range map[string]rest.ImpersonationConfig{
		"an administrator": {UserName: "x", Groups: []string{"system:masters"}},
		"another agent":    {UserName: other.registration.Status.Identity.User, Groups: other.registration.Status.Identity.Groups},
		"the hub":          {UserName: "system:serviceaccount:" + systemNamespace + ":fleet-controller"},
	} {
		config := rest.CopyConfig(own.config)
		config.Impersonate = who
		acting := h.as(config)
		attempts{"act as " + name: func(ctx context.Context) error { return acting.List(ctx, &corev1.SecretList{}) }}.mustBeForbidden(t)
	}
}

// What comes with a status changes nothing but the status.
func TestStatusIsNoWayIn(t *testing.T) {
	h := getHub(t)
	workspace := h.workspace()
	own := h.token(workspace, "join").join("own")
	before := h.deployment(h.bundle(workspace, "app"), own.namespace)
	wholly := map[string]any{
		"metadata": map[string]any{
			"labels": map[string]any{fleet.BundleLabel: "victim", fleet.RepoLabel: "victim", "x": "y"}, "annotations": map[string]any{"x": "y"},
			"finalizers": []string{"evil.example/x"}, "managedFields": []any{map[string]any{}},
			"ownerReferences": []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "x", "uid": "x"}},
		},
		"spec":   map[string]any{"deploymentID": "s-x:y", "stagedDeploymentID": "s-x:y", "paused": true},
		"status": map[string]any{"release": "written"},
	}
	if err := own.client.Status().Patch(t.Context(), before.DeepCopy(), merge(t, wholly)); err != nil {
		t.Fatal(err)
	}
	after := h.deployment(&fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Name: "app"}}, own.namespace)
	if after.Status.Release != "written" {
		t.Fatalf("status %+v: this test sees nothing", after.Status)
	}
	if !maps.Equal(after.Labels, before.Labels) || len(after.Annotations) > 0 || len(after.Finalizers) > 0 || len(after.OwnerReferences) > 0 {
		t.Errorf("metadata %+v", after.ObjectMeta)
	}
	if after.Spec.DeploymentID != before.Spec.DeploymentID || after.Spec.Paused || after.Generation != before.Generation {
		t.Errorf("spec %+v", after.Spec)
	}
}

func TestTokenReachesNothing(t *testing.T) {
	h := getHub(t)
	workspace := h.workspace()
	k, second := h.token(workspace, "join"), h.token(workspace, "second")
	own := k.join("own")
	for _, namespace := range []string{workspace, own.namespace, systemNamespace, "cattle-fleet-clusters-system"} {
		lists(k.client, namespace).mustBeForbidden(t)
	}
	c := k.client
	theirs := second.ask(second.Request("other"))
	attempts{
		"read another token's registration": func(ctx context.Context) error {
			return c.Get(ctx, client.ObjectKeyFromObject(theirs), &fleet.ClusterRegistration{})
		},
		"delete a registration": func(ctx context.Context) error { return c.Delete(ctx, own.registration.DeepCopy()) },
		"answer itself": func(ctx context.Context) error {
			return c.Status().Patch(ctx, own.registration.DeepCopy(), merge(t, map[string]any{"status": map[string]any{"granted": true}}))
		},
		"read contents": func(ctx context.Context) error { return c.Get(ctx, client.ObjectKey{Name: "s-x"}, &fleet.Content{}) },
		"create a Cluster": func(ctx context.Context) error {
			return c.Create(ctx, &fleet.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "x"}})
		},
		"create a token": func(ctx context.Context) error {
			return c.Create(ctx, &fleet.ClusterRegistrationToken{ObjectMeta: metav1.ObjectMeta{Namespace: workspace, Name: "x"}})
		},
		"register in another workspace": func(ctx context.Context) error {
			return c.Create(ctx, &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "x"}})
		},
		"renew in a cluster's namespace": func(ctx context.Context) error {
			return c.Create(ctx, &fleet.ClusterRegistration{ObjectMeta: metav1.ObjectMeta{Namespace: own.namespace, Name: "x"}})
		},
		"ask for certificates": func(ctx context.Context) error {
			return c.Create(ctx, &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{Name: "x"}})
		},
	}.mustBeForbidden(t)
}
