package cluster

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/enroll"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cluster/controller"
	"github.com/fairlead-dev/fairlead/pkg/names"
)

// legacyRequest is a registration as upstream's agent makes it.
func (v values) legacyRequest(clientID string) *fleet.ClusterRegistration {
	request := v.request(clientID)
	request.Spec.ProtocolVersion, request.Spec.AgentID = 0, ""
	return request
}

// fetch waits for the credential as upstream's agent does, with the token it has.
func fetch(t *testing.T, asking client.Client, v values, request *fleet.ClusterRegistration) *corev1.Secret {
	t.Helper()
	if err := asking.Create(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	secret := &corev1.Secret{}
	key := client.ObjectKey{
		Namespace: v.SystemRegistrationNamespace,
		Name:      names.RegistrationCredential(request.Spec.ClientID, request.Spec.ClientRandom),
	}
	kubetest.Eventually(t, "the credential is there", func(ctx context.Context) error { return asking.Get(ctx, key, secret) })
	return secret
}

func TestUpstreamsAgent(t *testing.T) {
	h := getHub(t)
	clock := h.run(t, controller.Options{})
	workspace := h.workspace(t)
	v := h.token(t, workspace, "join", 0)
	asking := h.as(t, v.Config())
	request := v.legacyRequest("client-1")
	secret := fetch(t, asking, v, request)
	if secret.Type != fleet.AgentCredentialSecretType || string(secret.Data["clusterNamespace"]) != workspace || string(secret.Data["systemNamespace"]) != systemNamespace {
		t.Errorf("secret of type %s for workspace %s", secret.Type, secret.Data["clusterNamespace"])
	}
	namespace, name := string(secret.Data["deploymentNamespace"]), string(secret.Data["clusterName"])
	account := func(secret *corev1.Secret) client.Client {
		return h.as(t, &rest.Config{Host: v.APIServerURL, BearerToken: string(secret.Data["token"]), QPS: -1,
			TLSClientConfig: rest.TLSClientConfig{CAData: []byte(v.APIServerCA)}})
	}
	agent := account(secret)
	kubetest.Eventually(t, "it is granted", func(ctx context.Context) error {
		if err := h.client.Get(ctx, client.ObjectKeyFromObject(request), request); err != nil {
			return err
		}
		if !request.Status.Granted {
			return fmt.Errorf("status %+v", request.Status)
		}
		return nil
	})
	content := &fleet.Content{ObjectMeta: metav1.ObjectMeta{GenerateName: "s-"}}
	h.create(t, content)
	beat := newCluster(workspace, name, "")
	patch := client.RawPatch("application/json-patch+json", []byte(fmt.Sprintf(
		`[{"op":"replace","path":"/status/agent","value":{"lastSeen":%q,"namespace":"cattle-fleet-system"}}]`, time.Now().UTC().Format(time.RFC3339))))
	other := newCluster(workspace, "other", "")
	h.create(t, other)
	attempts{
		"list its deployments": func(ctx context.Context) error {
			return agent.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(namespace))
		},
		"get a content": func(ctx context.Context) error {
			return agent.Get(ctx, client.ObjectKeyFromObject(content), &fleet.Content{})
		},
		"check in": func(ctx context.Context) error { return agent.Status().Patch(ctx, beat, patch) },
	}.mustSucceed(t)
	for what, err := range map[string]error{
		"list all deployments": agent.List(t.Context(), &fleet.BundleDeploymentList{}),
		"list contents":        agent.List(t.Context(), &fleet.ContentList{}),
		"check in for another": agent.Status().Patch(t.Context(), other.DeepCopy(), patch),
		"list credentials":     asking.List(t.Context(), &corev1.SecretList{}, client.InNamespace(v.SystemRegistrationNamespace)),
	} {
		if !apierrors.IsForbidden(err) {
			t.Errorf("%s: got %v, want forbidden", what, err)
		}
	}
	wait(t, h, beat, "is ready", phaseIs(fleet.ClusterReady, ""))

	later(t, request)
	second := v.legacyRequest("client-1")
	again := account(fetch(t, asking, v, second))
	kubetest.Eventually(t, "the first account is revoked", func(ctx context.Context) error {
		if err := agent.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(namespace)); !apierrors.IsUnauthorized(err) {
			return errors.Join(errors.New("listing was not refused"), err)
		}
		return nil
	})
	kubetest.Eventually(t, "the second account has its rights", func(ctx context.Context) error {
		return again.List(ctx, &fleet.BundleDeploymentList{}, client.InNamespace(namespace))
	})

	clock.advance(time.Hour)
	touch(t, h, second)
	h.gone(t, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: v.SystemRegistrationNamespace,
		Name: names.RegistrationCredential("client-1", second.Spec.ClientRandom)}})

	if err := h.client.Delete(t.Context(), newCluster(workspace, name, "")); err != nil {
		t.Fatal(err)
	}
	kubetest.Eventually(t, "nothing of the cluster is left", func(ctx context.Context) error {
		var bindings rbacv1.ClusterRoleBindingList
		if err := h.client.List(ctx, &bindings, client.MatchingLabels{fleet.ManagedLabel: "true"}); err != nil {
			return err
		}
		for _, binding := range bindings.Items {
			if len(binding.Subjects) == 1 && binding.Subjects[0].Namespace == namespace {
				return errors.New(binding.Name + " is there")
			}
		}
		return nil
	})
}

func TestUpstreamsAgentIsRefused(t *testing.T) {
	h := getHub(t)
	h.run(t, controller.Options{RefuseServiceAccountAgents: true})
	v := h.token(t, h.workspace(t), "join", time.Hour)
	answered := enroll.Ask(t, h.client, v.legacyRequest("client-1"))
	if s := answered.Status; s.State != fleet.RegistrationRejected || s.Reason != "VersionIncompatible" {
		t.Errorf("got %+v", s)
	}
}
