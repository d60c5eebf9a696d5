package rollout

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/status/cause"
)

// page is how many bundles are asked for at a time, so that an answer never holds all files of all bundles.
const page = 20

// follower reads about a subject and watches it.
type follower struct {
	hub    client.WithWatch
	about  subject
	commit string
	// show is told of every change.
	show func(Progress) error
}

// toTheEnd follows a rollout until it is complete or halted, or the second context ends. It returns the last progress it
// saw, with an error too. The first look is bounded by the first context alone: however slow the hub is, there is
// something to tell when the time is over.
func (f follower) toTheEnd(first, ctx context.Context) (Progress, error) {
	var last Progress
	for looking := first; ; looking = ctx {
		seen, err := f.read(looking)
		if err != nil {
			return last, err
		}
		// Only what is read in one go counts as the end: events of a GitRepo and of its bundles come in
		// any order, and a new commit would look complete before its bundles have changed.
		last = seen.progress(f.commit)
		if err := f.show(last); err != nil || last.Phase != fleet.RolloutProgressing {
			return last, err
		}
		if err := f.changes(ctx, seen, &last); err != nil {
			return last, err
		}
	}
}

// read returns what is stored now: the GitRepo before its bundles, so that they are not older.
func (f follower) read(ctx context.Context) (view, error) {
	seen := view{bundles: map[string]*fleet.Bundle{}}
	if f.about.kind == cause.Bundle {
		var bundle fleet.Bundle
		if err := f.hub.Get(ctx, client.ObjectKey{Namespace: f.about.namespace, Name: f.about.name}, &bundle); err != nil {
			return seen, f.notFound(err)
		}
		seen.keep(&bundle)
		return seen, nil
	}
	seen.repo = &fleet.GitRepo{}
	if err := f.hub.Get(ctx, client.ObjectKey{Namespace: f.about.namespace, Name: f.about.name}, seen.repo); err != nil {
		return seen, f.notFound(err)
	}
	for next := ""; ; {
		var list fleet.BundleList
		if err := f.hub.List(ctx, &list, f.selection(), client.Limit(page), client.Continue(next)); err != nil {
			return seen, fmt.Errorf("list bundles of %s: %w", f.about, err)
		}
		for i := range list.Items {
			seen.keep(&list.Items[i])
		}
		if next = list.Continue; next == "" {
			return seen, nil
		}
	}
}

func (f follower) notFound(err error) error {
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%s %s not found in namespace %s", f.about.kind, f.about.name, f.about.namespace)
	}
	return fmt.Errorf("read %s: %w", f.about, err)
}

// keep takes a bundle in, without its files.
func (v view) keep(bundle *fleet.Bundle) {
	bundle.Spec.Resources = nil
	v.bundles[bundle.Name] = bundle
}

// selection selects the bundles of the subject.
func (f follower) selection() *client.ListOptions {
	options := &client.ListOptions{Namespace: f.about.namespace}
	if f.about.kind == cause.Bundle {
		options.FieldSelector = fields.OneTermEqualSelector("metadata.name", f.about.name)
		return options
	}
	client.MatchingLabels{fleet.RepoLabel: f.about.name}.ApplyToList(options)
	return options
}

// changes applies events until the end seems to be reached or a watch ends.
func (f follower) changes(ctx context.Context, seen view, last *Progress) error {
	bundles, err := f.hub.Watch(ctx, &fleet.BundleList{}, f.selection())
	if err != nil {
		return fmt.Errorf("watch bundles of %s: %w", f.about, err)
	}
	defer bundles.Stop()
	var repos <-chan watch.Event
	if seen.repo != nil {
		watcher, err := f.hub.Watch(ctx, &fleet.GitRepoList{}, &client.ListOptions{
			Namespace: f.about.namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", f.about.name),
		})
		if err != nil {
			return fmt.Errorf("watch %s: %w", f.about, err)
		}
		defer watcher.Stop()
		repos = watcher.ResultChan()
	}
	for {
		var event watch.Event
		var open bool
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, open = <-bundles.ResultChan():
		case event, open = <-repos:
		}
		if !open {
			return ctx.Err()
		}
		over, err := seen.apply(event)
		if err != nil || over {
			return err
		}
		next := seen.progress(f.commit)
		if len(seen.bundles) == 0 && seen.repo == nil || next.Phase != fleet.RolloutProgressing {
			return nil // a fresh read decides
		}
		*last = next
		if err := f.show(next); err != nil {
			return err
		}
	}
}

// apply takes an event in, and says whether everything must be read again.
func (v *view) apply(event watch.Event) (again bool, err error) {
	switch object := event.Object.(type) {
	case *metav1.Status:
		if apierrors.IsResourceExpired(&apierrors.StatusError{ErrStatus: *object}) {
			return true, nil
		}
		return false, errors.New(object.Message)
	case *fleet.GitRepo:
		v.repo = object
		return event.Type == watch.Deleted, nil
	case *fleet.Bundle:
		if event.Type == watch.Deleted {
			delete(v.bundles, object.Name)
			return false, nil
		}
		v.keep(object)
	}
	return false, nil
}
