package sight

import (
	"context"
	"slices"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/utils/clock"

	"github.com/fairlead-dev/fairlead/pkg/agent/access"
	"github.com/fairlead-dev/fairlead/pkg/agent/apply"
	"github.com/fairlead-dev/fairlead/pkg/agent/health/rules"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm"
	"github.com/fairlead-dev/fairlead/pkg/agent/helm/releases"
	"github.com/fairlead-dev/fairlead/pkg/agent/live"
	"github.com/fairlead-dev/fairlead/pkg/agent/manifest"
	"github.com/fairlead-dev/fairlead/pkg/agent/spot"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Observer watches a member for all its bundles.
type Observer struct {
	member   *access.Member
	deployer *helm.Deployer
	clock    clock.PassiveClock
	watcher  *live.Watcher
	spots    *spot.Watcher
}

// Handlers are told when something changed on the member.
type Handlers struct {
	// Set is told of objects that carry a set's mark.
	Set func(setHash string)
	// Bundle is told of what is watched for one bundle alone.
	Bundle func(name string)
}

// New returns an observer. Its watches end with the context.
func New(ctx context.Context, member *access.Member, deployer *helm.Deployer, clock clock.PassiveClock, changed Handlers, log logr.Logger) (*Observer, error) {
	self, err := member.Self()
	if err != nil {
		return nil, err
	}
	return &Observer{
		member: member, deployer: deployer, clock: clock,
		watcher: live.NewWatcher(ctx, self.Dynamic, changed.Set, log.WithName("live")),
		spots:   spot.New(ctx, clientsOf(member), changed.Bundle, log.WithName("spot")),
	}, nil
}

// clientsOf returns the clients of the member's identities, for narrow watches.
func clientsOf(member *access.Member) spot.Clients {
	return func(identity string) (dynamic.Interface, error) {
		found, err := member.Known(identity)
		if err != nil {
			return nil, err
		}
		return found.Dynamic, nil
	}
}

func (o *Observer) resourceOf(object *unstructured.Unstructured) (schema.GroupVersionResource, error) {
	kind := object.GroupVersionKind()
	mapping, err := o.member.Mapper().RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return schema.GroupVersionResource{}, err
	}
	return mapping.Resource, nil
}

// Deployed is what is deployed of a bundle.
type Deployed struct {
	Record releases.Record
	// Options as they were when it was.
	Options fleet.BundleDeploymentOptions
}

// View is what is known of the objects of one bundle from one look to the next. One goroutine at a time may use it.
type View struct {
	observer      *Observer
	name, setHash string
	// unmapped says that the kind of one of its objects was unknown when it was last followed.
	unmapped bool
	// answered are objects as the API server answered our writes, until the watch has caught up.
	answered map[manifest.Key]*unstructured.Unstructured
	// rules of readiness, as the deployment of this generation has them, and what is wrong with them.
	rules           rules.Set
	rulesErr        error
	rulesGeneration int64
	// stuckSince is when a workload was first seen not to be ready; zero while all are.
	stuckSince time.Time
}

// View returns a view of the objects of a bundle, whose set has the hash. It sees nothing before Follow.
func (o *Observer) View(name, setHash string) *View {
	return &View{observer: o, name: name, setHash: setHash}
}

// Follow watches the kinds of a release. Answered are its objects as the API server answered our writes just now; nil
// is nothing.
func (v *View) Follow(record releases.Record, answered map[manifest.Key]*unstructured.Unstructured) {
	v.answered = answered
	v.follow(record)
}

func (v *View) follow(record releases.Record) {
	var resources []schema.GroupVersionResource
	v.unmapped = false
	for _, object := range record.Objects {
		resource, err := v.observer.resourceOf(object)
		switch {
		case err != nil:
			v.unmapped = true
		case manifest.IsReadOnly(object): // has a watch of its own
		case !slices.Contains(resources, resource):
			resources = append(resources, resource)
		}
	}
	v.observer.watcher.Track(v.setHash, resources)
}

// Answered notes an object as the API server answered a write just now.
func (v *View) Answered(key manifest.Key, object *unstructured.Unstructured) {
	if v.answered == nil {
		v.answered = map[manifest.Key]*unstructured.Unstructured{}
	}
	v.answered[key] = object
}

// Close ends all watching for the bundle, until it follows a release again.
func (v *View) Close() {
	v.answered = nil
	v.observer.watcher.Track(v.setHash, nil)
	v.observer.spots.Track(v.name, nil)
}

// Known returns what is known of live objects without asking for them: what the watch has, or what was
// answered to our last write while the watch lags behind.
func (v *View) Known() apply.Knowledge {
	return func(desired *unstructured.Unstructured) *unstructured.Unstructured {
		resource, err := v.observer.resourceOf(desired)
		if err != nil {
			return nil
		}
		watched, _, _ := v.observer.watcher.Get(resource, desired.GetNamespace(), desired.GetName())
		answered := v.answered[manifest.KeyOf(desired)]
		if watched == nil || answered != nil && older(watched, answered) {
			return answered
		}
		return watched
	}
}

// Check reads the rules of readiness of a deployment, once for each of its generations, and returns what
// is wrong with them. Nothing new is deployed then; of what is deployed, the objects such a rule is about are not
// ready.
func (v *View) Check(deployment *fleet.BundleDeployment) error {
	if v.rulesGeneration != deployment.Generation {
		v.rules, v.rulesErr = rules.New(deployment.Spec.Options.ManifestConfigs)
		v.rulesGeneration = deployment.Generation
	}
	return v.rulesErr
}
