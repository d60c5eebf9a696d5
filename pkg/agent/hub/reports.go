package hub

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"github.com/fairlead-dev/fairlead/pkg/agent/report"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// gatherFor is how long the report of a part waits for those of others in the same object.
const gatherFor = 100 * time.Millisecond

// reports gathers what is reported of the parts of merged objects.
type reports struct {
	clock clock.WithTicker
	mutex sync.Mutex
	// open are the reports that wait, by object.
	open map[string]*gathering
	// objects are as the last write left them, and last is when that was.
	objects map[string]*fleet.BundleDeployment
	last    map[string]time.Time
}

func newReports(clock clock.WithTicker) *reports {
	return &reports{
		clock: clock, open: map[string]*gathering{}, objects: map[string]*fleet.BundleDeployment{}, last: map[string]time.Time{},
	}
}

// gathering are the reports that one write takes along.
type gathering struct {
	// parts are patches by name; nil takes the report of a part back.
	parts map[string]json.RawMessage
	// wanted are the reports as they will be.
	wanted map[string]*fleet.BundleDeploymentStatus
	done   chan struct{}
	object *fleet.BundleDeployment
	err    error
}

// changeStatus changes the status of a deployment, in the object that is shown to carry it, and returns the
// deployment as it is then. Patch leads to wanted.
func (h *Hub) changeStatus(ctx context.Context, deployment *fleet.BundleDeployment, patch []byte, wanted *fleet.BundleDeploymentStatus) (*fleet.BundleDeployment, error) {
	carrier := merge.Carriers(deployment)[0]
	if !carrier.IsMerged() {
		return h.patchStatus(ctx, carrier.Name, patch)
	}
	var fields struct {
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, err
	}
	object, err := h.gather(ctx, carrier.Name, deployment.Name, fields.Status, wanted)
	if err != nil {
		return nil, err
	}
	written := *deployment
	written.Status, written.ResourceVersion = *wanted, object.ResourceVersion
	return &written, nil
}

// putStatus writes a whole status into another object that carries a deployment.
func (h *Hub) putStatus(ctx context.Context, carrier merge.Carrier, name string, wanted *fleet.BundleDeploymentStatus) error {
	if !carrier.IsMerged() {
		patch, err := json.Marshal(map[string]any{"status": wanted})
		if err != nil {
			return err
		}
		_, err = h.patchStatus(ctx, carrier.Name, patch)
		return err
	}
	text, err := json.Marshal(wanted.DeploymentPartStatus)
	if err != nil {
		return err
	}
	_, err = h.gather(ctx, carrier.Name, name, text, wanted)
	return err
}

// TakeBack removes the report of a part that is gone from its object.
func (h *Hub) TakeBack(ctx context.Context, object, part string) error {
	_, err := h.gather(ctx, object, part, nil, nil)
	return err
}

func (h *Hub) gather(ctx context.Context, object, part string, patch json.RawMessage, wanted *fleet.BundleDeploymentStatus) (*fleet.BundleDeployment, error) {
	h.reports.mutex.Lock()
	g := h.reports.open[object]
	if g == nil {
		g = &gathering{parts: map[string]json.RawMessage{}, wanted: map[string]*fleet.BundleDeploymentStatus{}, done: make(chan struct{})}
		h.reports.open[object] = g
		go h.flush(context.WithoutCancel(ctx), object, g)
	}
	g.parts[part], g.wanted[part] = patch, wanted
	h.reports.mutex.Unlock()
	select {
	case <-g.done:
		return g.object, g.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// flush writes what was gathered.
func (h *Hub) flush(ctx context.Context, object string, g *gathering) {
	defer close(g.done)
	timer := h.reports.clock.NewTimer(gatherFor)
	<-timer.C()
	h.reports.mutex.Lock()
	delete(h.reports.open, object)
	before := h.reports.objects[object]
	h.reports.mutex.Unlock()
	patch, err := json.Marshal(map[string]any{"status": h.merged(object, before, g)})
	if err != nil {
		g.err = fmt.Errorf("write reports in %s: %w", object, err)
		return
	}
	g.object, g.err = h.patchStatus(ctx, object, patch)
	h.reports.mutex.Lock()
	defer h.reports.mutex.Unlock()
	if g.err != nil {
		delete(h.reports.objects, object)
		return
	}
	h.reports.objects[object], h.reports.last[object] = g.object, h.reports.clock.Now()
}

// merged returns the fields of a merged object's status that change: the reports that were gathered, none for
// parts that are gone, and words for people.
func (h *Hub) merged(object string, before *fleet.BundleDeployment, g *gathering) map[string]any {
	parts := map[string]any{}
	var conditions []fleet.Condition
	if before != nil {
		for name := range before.Status.Parts {
			if _, there := before.Spec.Parts[name]; !there {
				parts[name] = nil
			}
		}
		conditions = before.Status.Conditions
	}
	for name, patch := range g.parts {
		parts[name] = nil
		if patch != nil {
			parts[name] = patch
		}
	}
	carried := h.source.Carried(h.namespace, object)
	for i := range carried {
		if wanted := g.wanted[carried[i].Name]; wanted != nil {
			current := *carried[i]
			current.Status = *wanted
			carried[i] = &current
		} else if before != nil {
			if reported, known := before.Status.Parts[carried[i].Name]; known {
				current := *carried[i]
				current.Status = fleet.BundleDeploymentStatus{DeploymentPartStatus: reported}
				carried[i] = &current
			}
		}
	}
	summary := report.Merged(carried, conditions, h.reports.clock.Now())
	return map[string]any{"parts": parts, "display": summary.Display, "conditions": summary.Conditions}
}

// patchStatus changes the status of an object and returns the object.
func (h *Hub) patchStatus(ctx context.Context, name string, patch []byte) (*fleet.BundleDeployment, error) {
	object := &fleet.BundleDeployment{}
	err := h.fleet.Patch(types.MergePatchType).Namespace(h.namespace).Resource(resourceName).
		Name(name).SubResource("status").Body(patch).Do(ctx).Into(object)
	return object, err
}
