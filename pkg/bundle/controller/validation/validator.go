package validation

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/source"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/judge"
	"github.com/fairlead-dev/fairlead/pkg/bundle/render"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

const (
	// Patience is how long a bundle is waited for before it is let through without a verdict.
	Patience = 15 * time.Second
	// DefaultLimit is how long one rendering may take.
	DefaultLimit = 10 * time.Second
	// remembered bounds the findings that are kept: a hundred bytes each, with a failure's message two thousand.
	remembered = 4096
	// slice is how long a worker stays with one bundle before it tells what it knows and takes the next one.
	slice = 250 * time.Millisecond
)

// Options of a Validator.
type Options struct {
	// Files returns the files of a bundle, which must be those that id names.
	Files func(ctx context.Context, bundle types.NamespacedName, id string) (content.Manifest, error)
	// Render judges a bundle and ends when its context does.
	Render func(context.Context, judge.Job) judge.Finding
	// Count is told of each rendering.
	Count func(judge.Result)
	// Workers render at the same time; 2 when 0.
	Workers int
	// Limit of one rendering; DefaultLimit when 0.
	Limit time.Duration
	Now   func() time.Time
	Log   logr.Logger
}

// Validator renders what bundles ask about. It works once it is started.
type Validator struct {
	options Options
	// findings by key.
	findings *lru.Cache
	queue    workqueue.TypedInterface[types.NamespacedName]
	events   chan event.GenericEvent

	mutex   sync.Mutex
	bundles map[types.NamespacedName]*inquiry
}

// inquiry is what one bundle wants to know.
type inquiry struct {
	manifest string
	checks   map[target.CheckID]*question
}

type question struct {
	options fleet.BundleDeploymentOptions
	key     key
	since   time.Time
	// answer is nil until it is known; then the options are dropped.
	answer *target.Verdict
}

// New returns a validator that knows nothing yet.
func New(options Options) *Validator {
	if options.Workers <= 0 {
		options.Workers = 2
	}
	if options.Limit <= 0 {
		options.Limit = DefaultLimit
	}
	return &Validator{
		options: options, findings: lru.New(remembered),
		queue:   workqueue.NewTyped[types.NamespacedName](),
		events:  make(chan event.GenericEvent),
		bundles: map[types.NamespacedName]*inquiry{},
	}
}

// Source brings bundles back to their controller when there is news for them.
func (v *Validator) Source() source.Source {
	return source.Channel(v.events, &handler.EnqueueRequestForObject{})
}

// Known returns the verdicts a bundle asked for, as far as they are known. One that is not known after
// Patience lets its deployment through.
func (v *Validator) Known(bundle types.NamespacedName) map[target.CheckID]target.Verdict {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	asked := v.bundles[bundle]
	if asked == nil {
		return nil
	}
	verdicts := make(map[target.CheckID]target.Verdict, len(asked.checks))
	for id, question := range asked.checks {
		switch {
		case question.answer != nil:
			verdicts[id] = *question.answer
		case v.options.Now().Sub(question.since) >= Patience:
			verdicts[id] = target.Verdict{}
		}
	}
	return verdicts
}

// Ask says everything that a bundle wants to know now, of the content manifest; what it asked before and does
// not ask again is forgotten. It returns true when there are verdicts that Known has not given yet.
func (v *Validator) Ask(bundle types.NamespacedName, manifest string, checks []target.Check) (news bool) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	before := v.bundles[bundle]
	if len(checks) == 0 {
		delete(v.bundles, bundle)
		return false
	}
	asked := &inquiry{manifest: manifest, checks: make(map[target.CheckID]*question, len(checks))}
	v.bundles[bundle] = asked
	for _, check := range checks {
		if before != nil && before.checks[check.ID] != nil {
			asked.checks[check.ID] = before.checks[check.ID]
			continue
		}
		question := v.question(bundle.Name, manifest, check)
		asked.checks[check.ID] = question
		if question.answer != nil {
			news = true
		} else {
			v.queue.Add(bundle)
		}
	}
	return news
}

// Forget drops what a bundle asked.
func (v *Validator) Forget(bundle types.NamespacedName) { v.Ask(bundle, "", nil) }

func (v *Validator) question(bundle, manifest string, check target.Check) *question {
	asked := &question{options: check.Options, since: v.options.Now()}
	var err error
	if asked.key, err = keyOf(bundle, manifest, check.Options); err != nil {
		asked.settle(target.Verdict{}) // options that cannot be written down; they have an id, so this does not happen
		return asked
	}
	if found, ok := v.remember(asked.key, known(check.ID.KubernetesVersion)); ok {
		asked.settle(verdict(found))
	}
	return asked
}

func (q *question) settle(verdict target.Verdict) {
	q.answer, q.options = &verdict, fleet.BundleDeploymentOptions{}
}

// remember returns a finding from before.
func (v *Validator) remember(key key, version string) (judge.Finding, bool) {
	for _, at := range []any{key, key.forVersion(version)} {
		if value, ok := v.findings.Get(at); ok {
			found, is := value.(judge.Finding)
			return found, is
		}
	}
	return judge.Finding{}, false
}

// Start renders until the context ends.
func (v *Validator) Start(ctx context.Context) error {
	stop := context.AfterFunc(ctx, v.queue.ShutDown)
	defer stop()
	var workers sync.WaitGroup
	for range v.options.Workers {
		workers.Go(func() {
			for {
				bundle, done := v.queue.Get()
				if done {
					return
				}
				v.work(ctx, bundle)
				v.queue.Done(bundle)
			}
		})
	}
	workers.Wait()
	return nil
}

// work answers questions of a bundle for a while.
func (v *Validator) work(ctx context.Context, bundle types.NamespacedName) {
	manifest, open := v.open(bundle)
	if len(open) == 0 {
		return
	}
	files, err := v.options.Files(ctx, bundle, manifest)
	if err != nil {
		// When there is another version by now, it asks anew; else it is let through when patience ends.
		v.options.Log.Info("bundle not validated", "bundle", bundle.String(), "problem", err.Error())
		return
	}
	began := v.options.Now()
	for i, id := range open {
		v.answer(ctx, bundle, manifest, files, id)
		if i < len(open)-1 && v.options.Now().Sub(began) >= slice {
			v.queue.Add(bundle)
			break
		}
	}
	v.tell(ctx, bundle)
}

// open returns the questions of a bundle that have no answer, oldest first.
func (v *Validator) open(bundle types.NamespacedName) (manifest string, open []target.CheckID) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	asked := v.bundles[bundle]
	if asked == nil {
		return "", nil
	}
	for id, question := range asked.checks {
		if question.answer == nil {
			open = append(open, id)
		}
	}
	slices.SortFunc(open, func(a, b target.CheckID) int { return asked.checks[a].since.Compare(asked.checks[b].since) })
	return asked.manifest, open
}

// answer settles one question, unless it is not asked any more.
func (v *Validator) answer(ctx context.Context, bundle types.NamespacedName, manifest string, files content.Manifest, id target.CheckID) {
	asked := v.pending(bundle, id)
	if asked == nil {
		return
	}
	version := known(id.KubernetesVersion)
	found, ok := v.remember(asked.key, version)
	if !ok {
		found = v.find(ctx, asked.key, judge.Job{KubernetesVersion: version, Input: render.Input{
			BundleID: bundle.Name, ManifestID: manifest, Manifest: files, Options: asked.options,
		}})
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	asked.settle(verdict(found))
}

func (v *Validator) pending(bundle types.NamespacedName, id target.CheckID) *question {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if asked := v.bundles[bundle]; asked != nil && asked.checks[id] != nil && asked.checks[id].answer == nil {
		return asked.checks[id]
	}
	return nil
}

// find renders and remembers.
func (v *Validator) find(ctx context.Context, key key, job judge.Job) judge.Finding {
	limited, cancel := context.WithTimeout(ctx, v.options.Limit)
	defer cancel()
	found := v.options.Render(limited, job)
	if ctx.Err() != nil {
		return found
	}
	v.options.Count(found.Result)
	if found.Result == judge.GaveUp {
		return found
	}
	if found.ByVersion {
		key = key.forVersion(job.KubernetesVersion)
	}
	v.findings.Add(key, found)
	return found
}

// tell wakes the controller of the bundle up.
func (v *Validator) tell(ctx context.Context, bundle types.NamespacedName) {
	object := &fleet.Bundle{}
	object.Namespace, object.Name = bundle.Namespace, bundle.Name
	select {
	case v.events <- event.GenericEvent{Object: object}:
	case <-ctx.Done():
	}
}
