package rollout

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/cli/session"
	"github.com/fairlead-dev/fairlead/pkg/status/cause"
)

// A hub that takes longer to answer than a person wants to wait is told of all the same.
func TestTimeoutOfASlowHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		scheme := runtime.NewScheme()
		if err := fleet.AddToScheme(scheme); err != nil {
			t.Fatal(err)
		}
		bundle := &fleet.Bundle{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "app", Generation: 1}}
		slow := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, into client.Object, options ...client.GetOption) error {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(2 * time.Second):
			}
			return c.Get(ctx, key, into, options...)
		}}
		hub := fake.NewClientBuilder().WithScheme(scheme).WithObjects(bundle).WithInterceptorFuncs(slow).Build()
		var out, errOut bytes.Buffer
		s := session.New(genericiooptions.IOStreams{Out: &out, ErrOut: &errOut}, session.Environment{})
		flags := &statusFlags{watch: true, timeout: time.Second}
		ended, err := flags.wait(t.Context(), s, follower{hub: hub, about: subject{kind: cause.Bundle, namespace: "ns", name: "app"}})
		if err != nil || ended.Phase != fleet.RolloutProgressing {
			t.Fatalf("phase %s, %v", ended.Phase, err)
		}
		if !strings.Contains(out.String(), "app") || !strings.Contains(errOut.String(), "still progressing after 1s") {
			t.Errorf("printed %q and %q", out.String(), errOut.String())
		}
		var exit *session.ExitError
		if err := codeOf(ended); !errors.As(err, &exit) || exit.Code != session.ExitProgressing {
			t.Errorf("exit with %v", err)
		}
	})
}
