package kubetest

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/fairlead-dev/fairlead/integrationtests/kube"
)

const (
	// patience is how long Eventually waits: long enough for a machine that is busy compiling, so that
	// running out of it means that the thing does not happen.
	patience = 2 * time.Minute
	askEvery = 50 * time.Millisecond
)

// Eventually asks until the answer is no error; when that does not come the test fails with the last
// answer. What names what is waited for: "deployment web is available".
func Eventually(t testing.TB, what string, question func(ctx context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if last := ask(ctx, question); last != nil {
		t.Fatalf("gave up waiting until %s: %v", what, last)
	}
}

// ask asks until the answer is no error or the context ends, and returns the last answer.
func ask(ctx context.Context, question func(ctx context.Context) error) error {
	ticker := time.NewTicker(askEvery)
	defer ticker.Stop()
	var last error
	for {
		answer := question(ctx)
		if answer == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // an answer cut short says nothing
			last = answer
		}
		select {
		case <-ctx.Done():
			return last
		case <-ticker.C:
		}
	}
}

// Namespace creates a namespace of the test's own, named after it, that is deleted when it ends.
func Namespace(t testing.TB, cluster *kube.Cluster) string {
	t.Helper()
	namespaces := cluster.Clients().CoreV1().Namespaces()
	wanted := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namePrefix(t.Name())}}
	created, err := namespaces.Create(t.Context(), wanted, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create a namespace on %s: %v", cluster.Name(), err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience) // the test's own has ended
		defer cancel()
		// Asked again, since an API server out of breath may give up on a request that it carried out.
		err := ask(ctx, func(ctx context.Context) error {
			return client.IgnoreNotFound(namespaces.Delete(ctx, created.Name, metav1.DeleteOptions{}))
		})
		if err != nil {
			t.Errorf("delete namespace %s on %s: %v", created.Name, cluster.Name(), err)
		}
	})
	return created.Name
}

// AwaitNamespacesGone waits until no namespace is being deleted any more. Those of earlier tests go on their own time, and
// while they do, the namespace controller deletes collections of every kind.
func AwaitNamespacesGone(t testing.TB, cluster *kube.Cluster) {
	t.Helper()
	Eventually(t, "no namespace is being deleted", func(ctx context.Context) error {
		list, err := cluster.Clients().CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for i := range list.Items {
			if namespace := &list.Items[i]; namespace.DeletionTimestamp != nil {
				return fmt.Errorf("%s is: %v", namespace.Name, namespace.Status.Conditions)
			}
		}
		return nil
	})
}

// namePrefix makes the start of a DNS label out of a test's name, which may hold anything.
func namePrefix(test string) string {
	label := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return r - 'A' + 'a'
		}
		return '-'
	}, test)
	const room = validation.DNS1123LabelMaxLength - 10 // for the API server's suffix
	return strings.Trim(label[:min(len(label), room)], "-") + "-"
}
