package kubeclient

import (
	"context"
	"fmt"
	"time"

	"helm.sh/helm/v3/pkg/kube"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/health"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// reasonWaitTimeout means that a release was written and did not become ready in its time.
const reasonWaitTimeout = "WaitTimeout"

// establishTimeout bounds the wait for a definition's kind to be served.
const establishTimeout = time.Minute

var (
	jobKind = schema.GroupKind{Group: "batch", Kind: "Job"}
	podKind = schema.GroupKind{Kind: "Pod"}
)

// newSchemaSteps of the backoff are what an API server may take to know a field that a definition has got just now.
const newSchemaSteps = 8

// freshKindBackoff spaces the attempts to write an object of a kind that is being set up: the API
// server serves it a moment after it says so. About half a minute in all.
var freshKindBackoff = wait.Backoff{Duration: 50 * time.Millisecond, Factor: 1.6, Steps: 12}

// waitEstablished returns when the kinds of the definitions are served.
func (c *Client) waitEstablished(definitions manifest.Phase) error {
	for _, definition := range definitions {
		err := c.identity.Writer.WaitFor(c.ctx, definition, establishTimeout, "is established", func(live *unstructured.Unstructured) (bool, error) {
			return live != nil && hasCondition(live, "Established"), nil
		})
		if err != nil {
			return err
		}
	}
	c.identity.Member().Refresh()
	return nil
}

// applyFresh writes an object whose kind may have been defined a moment ago.
func (c *Client) applyFresh(object *unstructured.Unstructured, options apply.Options) (apply.Result, error) {
	var result apply.Result
	var last error
	attempts := 0
	err := wait.ExponentialBackoffWithContext(c.ctx, freshKindBackoff, func(ctx context.Context) (bool, error) {
		result, last = c.identity.Writer.Apply(ctx, object, options)
		attempts++
		if apierrors.IsNotFound(last) || meta.IsNoMatchError(last) || apply.IsUndeclared(last) && attempts < newSchemaSteps {
			return false, nil
		}
		return true, last
	})
	if wait.Interrupted(err) && last != nil {
		return result, last
	}
	return result, err
}

// Wait implements kube.Interface: it returns when every object is ready; Jobs may still run.
func (c *Client) Wait(list kube.ResourceList, timeout time.Duration) error {
	return c.waitReady(list, timeout, false)
}

// WaitWithJobs implements kube.Interface: it returns when every object is ready and every Job has
// completed.
func (c *Client) WaitWithJobs(list kube.ResourceList, timeout time.Duration) error {
	return c.waitReady(list, timeout, true)
}

func (c *Client) waitReady(list kube.ResourceList, timeout time.Duration, jobs bool) error {
	deadline := time.Now().Add(timeout)
	for _, object := range objectsOf(list) {
		err := c.identity.Writer.WaitFor(c.ctx, object, time.Until(deadline), "is ready", func(live *unstructured.Unstructured) (bool, error) {
			if live == nil {
				return manifest.Expires(object), nil
			}
			if jobs && manifest.KeyOf(live).GroupKind == jobKind {
				return completed(live)
			}
			_, ready := health.Of(live, nil)
			return ready, nil
		})
		if err != nil {
			return fault.Wrap(fault.Stalled, reasonWaitTimeout, err)
		}
	}
	return nil
}

// WatchUntilReady implements kube.Interface: it returns when hooks that run have succeeded. Other
// kinds are ready once they are there.
func (c *Client) WatchUntilReady(list kube.ResourceList, timeout time.Duration) error {
	for _, object := range objectsOf(list) {
		switch manifest.KeyOf(object).GroupKind {
		case jobKind, podKind:
		default:
			continue
		}
		err := c.identity.Writer.WaitFor(c.ctx, object, timeout, "has completed", func(live *unstructured.Unstructured) (bool, error) {
			if live == nil {
				return false, nil
			}
			return completed(live)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// completed says whether a Job or Pod has run; a failed one is an error.
func completed(live *unstructured.Unstructured) (bool, error) {
	phase, _, _ := unstructured.NestedString(live.Object, "status", "phase")
	switch {
	case hasCondition(live, "Failed"), phase == "Failed":
		return false, fault.New(fault.Stalled, "HookFailed", "%s has failed", manifest.KeyOf(live))
	case hasCondition(live, "Complete"), phase == "Succeeded":
		return true, nil
	}
	return false, nil
}

// WaitForDelete implements kube.InterfaceExt.
func (c *Client) WaitForDelete(list kube.ResourceList, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for _, object := range objectsOf(list) {
		live, err := c.identity.Writer.Get(c.ctx, object)
		if err != nil && !meta.IsNoMatchError(err) {
			return fmt.Errorf("get %s: %w", manifest.KeyOf(object), err)
		}
		if live == nil {
			continue
		}
		if err := c.identity.Writer.WaitGone(c.ctx, live, time.Until(deadline)); err != nil {
			return err
		}
	}
	return nil
}

func hasCondition(live *unstructured.Unstructured, kind string) bool {
	conditions, _, _ := unstructured.NestedSlice(live.Object, "status", "conditions")
	for _, condition := range conditions {
		fields, _ := condition.(map[string]any)
		if fields["type"] == kind && fields["status"] == "True" {
			return true
		}
	}
	return false
}
