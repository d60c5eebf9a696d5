package kube_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/kubetest"
	"github.com/fairlead-dev/fairlead/integrationtests/kube/writes"
)

// TestWritesAreCountedExactly makes writes of each kind and looks for them in both counts. Nobody
// else writes Secrets on these clusters.
func TestWritesAreCountedExactly(t *testing.T) {
	cluster := clusters.Get(t).Hub
	namespace := kubetest.Namespace(t, cluster)
	kubetest.AwaitNamespacesGone(t, cluster) // with them goes every collection of Secrets, one request each
	before, err := cluster.MutatingRequests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	writer, err := cluster.User("writer", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	writeSecrets(t, writer, namespace)

	want := writes.Requests{
		{Verb: "create", Resource: "secrets", Code: 201}: 2,
		{Verb: "create", Resource: "secrets", Code: 409}: 1,
		{Verb: "update", Resource: "secrets", Code: 200}: 1,
		{Verb: "patch", Resource: "secrets", Code: 200}:  3,
		{Verb: "apply", Resource: "secrets", Code: 200}:  1,
		// One, one of a collection, and one dry run that was asked for in the request's body.
		{Verb: "delete", Resource: "secrets", Code: 200}: 3,
	}
	kubetest.Eventually(t, "the metrics hold each write once", func(ctx context.Context) error {
		after, err := cluster.MutatingRequests(ctx)
		if err != nil {
			return err
		}
		return difference(want, after.Since(before).Only(writes.OnResource("", "secrets")))
	})
	want = writes.Requests{
		{Verb: "create", Resource: "secrets", Code: 201}:           2,
		{Verb: "create", Resource: "secrets", Code: 409}:           1,
		{Verb: "update", Resource: "secrets", Code: 200}:           1,
		{Verb: "patch", Resource: "secrets", Code: 200}:            4, // the apply among them
		{Verb: "delete", Resource: "secrets", Code: 200}:           2,
		{Verb: "deletecollection", Resource: "secrets", Code: 200}: 1,
	}
	kubetest.Eventually(t, "the audit log holds each write once", func(context.Context) error {
		got, err := writesBy(cluster, "writer")
		if err != nil {
			return err
		}
		return difference(want, got)
	})
}

func TestAuditLogOutlivesTheAPIServer(t *testing.T) {
	cluster := clusters.Get(t).Hub
	namespace := kubetest.Namespace(t, cluster)
	access, err := cluster.User("outliving", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string, want int) {
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if _, err := clientsFor(t, access).CoreV1().Secrets(namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		kubetest.Eventually(t, "the write is in the audit log", func(context.Context) error {
			got, err := writesBy(cluster, "outliving")
			if err != nil {
				return err
			}
			return difference(writes.Requests{{Verb: "create", Resource: "secrets", Code: 201}: want}, got)
		})
	}
	create("before", 1)
	if err := cluster.RestartAPIServer(t.Context()); err != nil {
		t.Fatal(err)
	}
	create("after", 2)
}

// writeSecrets makes two, fails to make a third, changes them five times, tries some things without
// doing them, and removes them in two requests.
func writeSecrets(t *testing.T, access kube.Access, namespace string) {
	t.Helper()
	ctx, secrets := t.Context(), clientsFor(t, access).CoreV1().Secrets(namespace)
	secret := func(name string) *corev1.Secret { return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	dryRun := []string{metav1.DryRunAll}
	steps := []func() error{
		func() error { _, err := secrets.Create(ctx, secret("a"), metav1.CreateOptions{}); return err },
		func() error { _, err := secrets.Create(ctx, secret("b"), metav1.CreateOptions{}); return err },
		func() error {
			_, err := secrets.Create(ctx, secret("c"), metav1.CreateOptions{DryRun: dryRun})
			return err
		},
		func() error {
			_, err := secrets.Create(ctx, secret("b"), metav1.CreateOptions{})
			if apierrors.IsAlreadyExists(err) {
				return nil
			}
			return errors.Join(errors.New("made b twice"), err)
		},
		func() error { _, err := secrets.Update(ctx, secret("a"), metav1.UpdateOptions{}); return err },
		func() error {
			applied := applycorev1.Secret("a", namespace).WithLabels(map[string]string{"by": "apply"})
			_, err := secrets.Apply(ctx, applied, metav1.ApplyOptions{FieldManager: "test"})
			return err
		},
		func() error { return secrets.Delete(ctx, "a", metav1.DeleteOptions{DryRun: dryRun}) },
		func() error { _, err := secrets.List(ctx, metav1.ListOptions{}); return err },
	}
	for _, value := range []string{"1", "2", "3"} {
		steps = append(steps, func() error {
			patch := []byte(`{"metadata":{"labels":{"value":"` + value + `"}}}`)
			_, err := secrets.Patch(ctx, "b", types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		})
	}
	steps = append(steps,
		func() error { return secrets.Delete(ctx, "a", metav1.DeleteOptions{}) },
		func() error {
			return secrets.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: "value"})
		})
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
	}
}

func writesBy(cluster *kube.Cluster, user string) (writes.Requests, error) {
	all, err := cluster.Writes()
	if err != nil {
		return nil, err
	}
	counts := writes.Requests{}
	for _, write := range all {
		if write.User == user {
			counts[write.Request]++
		}
	}
	return counts, nil
}

func difference(want, got writes.Requests) error {
	if diff := cmp.Diff(want, got); diff != "" {
		return errors.New(diff)
	}
	return nil
}
