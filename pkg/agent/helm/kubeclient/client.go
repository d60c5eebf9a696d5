package kubeclient

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"helm.sh/helm/v3/pkg/kube"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/cli-runtime/pkg/resource"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/ownership"
	"github.com/fairlead-dev/fairlead/pkg/fault"
)

// writersAtOnce bounds the requests of one release that are under way.
const writersAtOnce = 8

// Options of a client.
type Options struct {
	// Namespace is the release's.
	Namespace string
	// Force replaces what cannot be changed and takes fields from other managers (apply.Options).
	Force bool
	// Leftovers are objects of revisions that failed half way; they go with the objects that left the manifest.
	Leftovers []*unstructured.Unstructured
	// Keep are objects that are never deleted here: another release of the bundle has them now.
	Keep map[manifest.Key]bool
	// Spares says whether an object that left the manifest stays for now; such end up in Spared. Nil spares none.
	Spares func(manifest.Key) bool
	// Known saves looks at objects (apply.Knowledge); nil knows nothing.
	Known apply.Knowledge
	// DeleteDefinitions allows CustomResourceDefinitions to be deleted.
	DeleteDefinitions bool
}

// Client is Helm's view of the member for one operation on one release.
type Client struct {
	// ctx ends the operation: Helm's interface hands none through.
	ctx      context.Context
	identity *access.Identity
	claim    ownership.Claim
	options  Options
	// defines says that definitions of the chart's crds folder were written just now.
	defines bool
	spared  []*unstructured.Unstructured

	mu       sync.Mutex
	results  map[manifest.Key]apply.Result
	failures []error
	// unowned are objects that exist and belong to nobody, and that the release may not adopt.
	unowned []manifest.Key
}

// New returns a client that acts as an identity, in a claim's name, until the context ends.
func New(ctx context.Context, identity *access.Identity, claim ownership.Claim, options Options) *Client {
	return &Client{ctx: ctx, identity: identity, claim: claim, options: options, results: map[manifest.Key]apply.Result{}}
}

// Results returns what became of the objects that were written, hooks left out.
func (c *Client) Results() map[manifest.Key]apply.Result {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.results)
}

// Spared returns the objects that left the manifest and were not deleted because of Options.Spares.
func (c *Client) Spared() []*unstructured.Unstructured { return c.spared }

var (
	_ kube.Interface                    = (*Client)(nil)
	_ kube.InterfaceExt                 = (*Client)(nil)
	_ kube.InterfaceThreeWayMerge       = (*Client)(nil)
	_ kube.InterfaceDeletionPropagation = (*Client)(nil)
)

// IsReachable implements kube.Interface; the first write tells.
func (c *Client) IsReachable() error { return nil }

// Build implements kube.Interface. Validation is the API server's.
func (c *Client) Build(reader io.Reader, _ bool) (kube.ResourceList, error) {
	stream, err := io.ReadAll(reader)
	if err != nil {
		return nil, err
	}
	objects, err := manifest.Parse(stream)
	if err != nil {
		return nil, fault.Wrap(fault.Stalled, "InvalidManifest", fmt.Errorf("read the rendered manifest: %w", err))
	}
	for _, object := range objects {
		manifest.Concede(object)
	}
	return infos(objects, c.identity.Member().Mapper(), c.options.Namespace)
}

// Create implements kube.Interface.
func (c *Client) Create(list kube.ResourceList) (*kube.Result, error) {
	result, err := c.applyAll(list, nil)
	if err == nil && len(c.options.Leftovers) > 0 && !hooksOnly(list) {
		err = c.prune(result, c.options.Leftovers, list)
	}
	return result, err
}

// Update implements kube.Interface: it applies the target, and only when all of it is there deletes
// what the original holds beyond it.
func (c *Client) Update(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	c.options.Force = c.options.Force || force
	result, err := c.applyAll(target, original)
	if err != nil {
		return result, err
	}
	return result, c.prune(result, append(objectsOf(original), c.options.Leftovers...), target)
}

// UpdateThreeWayMerge implements kube.InterfaceThreeWayMerge; there is one way to write.
func (c *Client) UpdateThreeWayMerge(original, target kube.ResourceList, force bool) (*kube.Result, error) {
	return c.Update(original, target, force)
}

// applyAll writes phase by phase. Within a phase one object's failure does not stop its siblings; a
// definition or namespace that fails stops what follows, because that needs it. After an object that may not be
// adopted nothing more is written: the others are looked at, so that all that are in the way are named at once.
func (c *Client) applyAll(list, original kube.ResourceList) (*kube.Result, error) {
	result := &kube.Result{}
	byObject := map[*unstructured.Unstructured]*resource.Info{}
	for _, info := range list {
		if object, ok := info.Object.(*unstructured.Unstructured); ok {
			byObject[object] = info
		}
	}
	previous := map[manifest.Key]*unstructured.Unstructured{}
	for _, object := range objectsOf(original) {
		previous[manifest.KeyOf(object)] = object
	}
	objects := objectsOf(list)
	defined := manifest.Definitions(objects)
	var failures []error
	for _, phase := range manifest.Order(objects) {
		if len(c.unowned) > 0 {
			failures = append(failures, c.checkPhase(phase, byObject))
			continue
		}
		err := c.applyPhase(phase, byObject, previous, c.defines || len(defined) > 0, result)
		failures = append(failures, err)
		kind := phase[0].GroupVersionKind().GroupKind()
		needed := kind == manifest.CustomResourceDefinition || kind == manifest.Namespace
		if err != nil && (needed || c.ctx.Err() != nil) {
			break
		}
		if kind == manifest.CustomResourceDefinition && err == nil {
			if err := c.waitEstablished(phase); err != nil {
				return result, errors.Join(append(failures, err)...)
			}
		}
	}
	return result, errors.Join(append(failures, notOwned(c.unowned))...)
}

// checkPhase finds objects that the release may not have.
func (c *Client) checkPhase(phase manifest.Phase, byObject map[*unstructured.Unstructured]*resource.Info) error {
	var failures []error
	for _, object := range phase {
		options := apply.Options{Claim: c.claim, Mapping: byObject[object].Mapping}
		if !isKnown(options.Mapping) {
			options.Mapping = nil
		}
		err := c.identity.Writer.Check(c.ctx, object, options)
		if err != nil && !c.isUnowned(object, err) {
			failures = append(failures, fmt.Errorf("check %s: %w", manifest.KeyOf(object), err))
		}
	}
	return errors.Join(failures...)
}

// isUnowned notes an object that belongs to nobody and may not be adopted.
func (c *Client) isUnowned(object *unstructured.Unstructured, err error) bool {
	if fault.ReasonOf(err) != ownership.ReasonNotOwned {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unowned = append(c.unowned, manifest.KeyOf(object))
	return true
}

func (c *Client) applyPhase(phase manifest.Phase, byObject map[*unstructured.Unstructured]*resource.Info, previous map[manifest.Key]*unstructured.Unstructured, freshKinds bool, result *kube.Result) error {
	var group errgroup.Group
	group.SetLimit(writersAtOnce)
	failures := make([]error, len(phase))
	for i, object := range phase {
		group.Go(func() error {
			info := byObject[object]
			written, err := c.applyOne(object, info, previous[manifest.KeyOf(object)], freshKinds)
			switch {
			case err == nil:
				c.record(object, info, written, result)
			case !c.isUnowned(object, err):
				failures[i] = err
			}
			return nil
		})
	}
	_ = group.Wait() // its functions keep their errors
	return errors.Join(failures...)
}

func (c *Client) applyOne(object *unstructured.Unstructured, info *resource.Info, previous *unstructured.Unstructured, freshKinds bool) (apply.Result, error) {
	options := apply.Options{Claim: c.claim, Mapping: info.Mapping, Force: c.options.Force, Previous: previous, Known: c.options.Known}
	if !isKnown(info.Mapping) {
		options.Mapping = nil // known by now, or an error that names the kind
		if object.GetNamespace() == "" {
			if err := c.placeLate(object); err != nil {
				return apply.Result{}, err
			}
		}
	}
	if freshKinds {
		return c.applyFresh(object, options)
	}
	return c.identity.Writer.Apply(c.ctx, object, options)
}

// placeLate gives the namespace to an object whose kind was not known when the manifest was read.
func (c *Client) placeLate(object *unstructured.Unstructured) error {
	err := LocateLate(object, c.identity.Member().Mapper(), c.options.Namespace)
	switch {
	case meta.IsNoMatchError(err):
		return fault.Wrap(fault.Stalled, "NoSuchKind", fmt.Errorf("apply %s: %w", manifest.KeyOf(object), err))
	case err != nil:
		return fmt.Errorf("apply %s: %w", manifest.KeyOf(object), err)
	}
	return nil
}

func (c *Client) record(object *unstructured.Unstructured, info *resource.Info, written apply.Result, result *kube.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !manifest.IsHook(object) {
		c.results[manifest.KeyOf(object)] = written
	}
	if written.Action == apply.Created {
		result.Created = append(result.Created, info)
	} else {
		result.Updated = append(result.Updated, info)
	}
}

func hooksOnly(list kube.ResourceList) bool {
	for _, object := range objectsOf(list) {
		if !manifest.IsHook(object) {
			return false
		}
	}
	return true
}

// WaitAndGetCompletedPodPhase implements kube.Interface.
func (c *Client) WaitAndGetCompletedPodPhase(name string, timeout time.Duration) (corev1.PodPhase, error) {
	pod := &unstructured.Unstructured{}
	pod.SetAPIVersion("v1")
	pod.SetKind("Pod")
	pod.SetNamespace(c.options.Namespace)
	pod.SetName(name)
	phase := corev1.PodUnknown
	err := c.identity.Writer.WaitFor(c.ctx, pod, timeout, "has completed", func(live *unstructured.Unstructured) (bool, error) {
		if live == nil {
			return false, nil
		}
		text, _, _ := unstructured.NestedString(live.Object, "status", "phase")
		phase = corev1.PodPhase(text)
		return phase == corev1.PodSucceeded || phase == corev1.PodFailed, nil
	})
	return phase, err
}
