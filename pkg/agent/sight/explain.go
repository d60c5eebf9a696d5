package sight

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/health"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/releases"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	"github.com/fairlead-dev/fairlead/pkg/agent/spot"
)

const (
	// explained bounds the workloads of a bundle whose pods are looked at.
	explained = 3
	// explainAfter is how long a workload may take to become ready before its pods are looked at.
	explainAfter = 2 * time.Second
)

var (
	podResource   = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	eventResource = schema.GroupVersionResource{Version: "v1", Resource: "events"}
	// warnings are the events that tell what went wrong.
	warnings = fields.OneTermEqualSelector("type", "Warning").String()
)

// explain adds to workloads that are not ready for a while why their pods do not run, and watches those pods until
// they do. Objects that are only looked at are watched here too: they need not carry the bundle's mark. It returns when
// to look again at what has not been so for long, 0 for when something happens.
func (v *View) explain(record releases.Record, identity *access.Identity, objects []report.Sight) time.Duration {
	targets := v.readOnlyTargets(record, identity)
	var stuck []*report.Sight
	for i := range objects {
		sight := &objects[i]
		if sight.Live != nil && !sight.Ready && health.RunsPods(sight.Live) {
			stuck = append(stuck, sight)
		}
	}
	slices.SortStableFunc(stuck, func(a, b *report.Sight) int { return report.Worse(a.Summary, b.Summary) })
	stuck = stuck[:min(len(stuck), explained)]
	now := v.observer.clock.Now()
	switch {
	case len(stuck) == 0:
		v.stuckSince = time.Time{}
	case v.stuckSince.IsZero():
		v.stuckSince = now
	}
	var wait time.Duration
	if len(stuck) > 0 {
		wait = max(0, v.stuckSince.Add(explainAfter).Sub(now))
	}
	if wait > 0 {
		stuck = nil
	}
	for _, sight := range stuck {
		if pods, ok := podsOf(sight.Live, identity); ok {
			targets = append(targets, pods, warningsIn(sight.Live.GetNamespace(), identity))
		}
	}
	v.observer.spots.Track(v.name, targets)
	for _, sight := range stuck {
		target, ok := podsOf(sight.Live, identity)
		pods, known := v.observer.spots.List(target)
		if !ok || !known {
			continue
		}
		events, _ := v.observer.spots.List(warningsIn(sight.Live.GetNamespace(), identity))
		health.Explain(&sight.Summary, health.Causes(sight.Live, pods, events))
	}
	return wait
}

// readOnlyTargets names the objects of a release that are only looked at.
func (v *View) readOnlyTargets(record releases.Record, identity *access.Identity) []spot.Target {
	var targets []spot.Target
	for _, object := range record.Objects {
		if !manifest.IsReadOnly(object) {
			continue
		}
		if resource, err := v.observer.resourceOf(object); err == nil {
			targets = append(targets, readOnlyTarget(resource, object, identity))
		}
	}
	return targets
}

func readOnlyTarget(resource schema.GroupVersionResource, object *unstructured.Unstructured, identity *access.Identity) spot.Target {
	return spot.Target{
		Resource: resource, Namespace: object.GetNamespace(), Identity: identity.Name,
		FieldSelector: fields.OneTermEqualSelector("metadata.name", object.GetName()).String(),
	}
}

// findReadOnly returns an object that is only looked at, as the bundle's identity may see it.
func (v *View) findReadOnly(ctx context.Context, resource schema.GroupVersionResource, desired *unstructured.Unstructured, identity *access.Identity) (*unstructured.Unstructured, error) {
	watched, known := v.observer.spots.List(readOnlyTarget(resource, desired, identity))
	switch {
	case !known:
		return identity.Writer.Get(ctx, desired)
	case len(watched) == 0:
		return nil, nil
	}
	return watched[0], nil
}

func podsOf(workload *unstructured.Unstructured, identity *access.Identity) (spot.Target, bool) {
	content, found, err := unstructured.NestedMap(workload.Object, "spec", "selector")
	if err != nil || !found {
		return spot.Target{}, false
	}
	var labels metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &labels); err != nil {
		return spot.Target{}, false
	}
	selector, err := metav1.LabelSelectorAsSelector(&labels)
	if err != nil || selector.Empty() {
		return spot.Target{}, false
	}
	return spot.Target{
		Resource: podResource, Namespace: workload.GetNamespace(), LabelSelector: selector.String(), Identity: identity.Name,
	}, true
}

func warningsIn(namespace string, identity *access.Identity) spot.Target {
	return spot.Target{Resource: eventResource, Namespace: namespace, FieldSelector: warnings, Identity: identity.Name}
}
