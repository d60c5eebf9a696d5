package bundles

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle"
	"github.com/fairlead-dev/fairlead/pkg/content"
	"github.com/fairlead-dev/fairlead/pkg/content/store"
	"github.com/fairlead-dev/fairlead/pkg/depends"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/status"
	"github.com/fairlead-dev/fairlead/pkg/status/parent"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// Reasons of errors about Bundles.
const (
	reasonTerminating  = "BundleTerminating"
	reasonOwnedByOther = "BundleOwnedByOther"
)

// Wanted is a Bundle as the source has it, with the data of its values Secret and the files that it does not
// hold itself.
type Wanted struct {
	Bundle  *fleet.Bundle
	Values  map[string][]byte
	Files   *store.Files
	Summary content.Summary
	// again makes Bundle, Values and Files once more; it is nil when all of them are here. Otherwise the Bundle
	// lacks its files, and Files and Values hold nothing.
	again func(context.Context) (Wanted, error)
}

// whole returns what is wanted with all that it holds.
func (w Wanted) whole(ctx context.Context) (Wanted, error) {
	if w.again == nil {
		return w, nil
	}
	again, err := w.again(ctx)
	if err != nil {
		return w, err
	}
	again.Bundle.Spec.Paused = w.Bundle.Spec.Paused
	if again.Summary, err = again.Summary.With(again.Bundle.Spec); err != nil {
		return w, err
	}
	if again.Summary != w.Summary {
		return w, fault.New(fault.Transient, "SourceChanged", "bundle %s became another one while it was read", w.Bundle.Name)
	}
	return again, nil
}

// Named returns what is wanted without what takes memory; again makes it once more.
func (w Wanted) Named(again func(context.Context) (Wanted, error)) Wanted {
	object := *w.Bundle
	object.Spec.Resources = nil
	return Wanted{Bundle: &object, Files: w.Files.Named(), Summary: w.Summary, again: again}
}

// Size is how much memory it takes, in bytes.
func (w Wanted) Size() int {
	size := 0
	for _, resource := range w.Bundle.Spec.Resources {
		size += len(resource.Content)
	}
	for _, values := range w.Values {
		size += len(values)
	}
	if w.Files != nil {
		size += w.Files.Stored.Size
	}
	return size
}

// Plan is what has to be written so that the hub holds what the source says.
type Plan struct {
	create []Wanted
	update []Wanted
	// repair are Bundles that are as they should be, whose values or files are not.
	repair []Wanted
	// grant are Bundles that are as they should be, with files in a registry: the access may have changed.
	grant []Wanted
	// Delete are Bundles that nobody wants any more.
	Delete []*fleet.Bundle
	// terminating are names that cannot be used before the old Bundle is gone.
	terminating []string
}

// toStore is a Bundle to write, over an existing one or anew.
type toStore struct {
	Wanted
	exists bool
}

// inOrder lists what to create and to update, what others depend on first: so it is planned first.
func (p Plan) inOrder() []toStore {
	var all []toStore
	for _, bundle := range p.create {
		all = append(all, toStore{bundle, false})
	}
	for _, bundle := range p.update {
		all = append(all, toStore{bundle, true})
	}
	return depends.Order(all, func(one toStore) *fleet.Bundle { return one.Bundle })
}

// Compare plans: it compares the wanted Bundles with the existing ones of the namespace (trimmed). It refuses
// the whole plan when a wanted name belongs to somebody else. Nothing is deleted unless prune is set.
func Compare(repo string, want []Wanted, existing map[string]*fleet.Bundle, prune bool) (Plan, error) {
	var result Plan
	names := map[string]bool{}
	for _, bundle := range want {
		name := bundle.Bundle.Name
		names[name] = true
		current, exists := existing[name]
		if exists {
			var err error
			if bundle, err = bundle.over(current); err != nil {
				return Plan{}, err
			}
		}
		switch {
		case !exists:
			result.create = append(result.create, bundle)
		case !current.DeletionTimestamp.IsZero():
			result.terminating = append(result.terminating, name)
		case current.Labels[fleet.RepoLabel] != repo:
			return Plan{}, ownedByOther(name, current.Labels)
		case changed(current, bundle):
			result.update = append(result.update, bundle)
		case waitsForParts(current):
			result.repair = append(result.repair, bundle)
		case bundle.Files != nil && bundle.Files.Access != nil:
			result.grant = append(result.grant, bundle)
		}
	}
	if prune {
		result.Delete = leftovers(repo, names, existing)
	}
	return result, nil
}

// leftovers are the Bundles of a GitRepo that nobody wants any more.
func leftovers(repo string, wanted map[string]bool, existing map[string]*fleet.Bundle) []*fleet.Bundle {
	var left []*fleet.Bundle
	for _, name := range slices.Sorted(maps.Keys(existing)) {
		bundle := existing[name]
		if !wanted[name] && bundle.Labels[fleet.RepoLabel] == repo && bundle.DeletionTimestamp.IsZero() {
			left = append(left, bundle)
		}
	}
	return left
}

// over returns what is wanted with what a person decided on the present Bundle.
func (w Wanted) over(current *fleet.Bundle) (Wanted, error) {
	if !bundle.KeepsPaused(current, w.Bundle) {
		return w, nil
	}
	w.Bundle = w.Bundle.DeepCopy()
	w.Bundle.Spec.Paused = true
	var err error
	w.Summary, err = w.Summary.With(w.Bundle.Spec)
	return w, err
}

func ownedByOther(name string, labels map[string]string) error {
	return fault.New(fault.Stalled, reasonOwnedByOther,
		"bundle %s already exists and belongs to %s; rename the folder, set name: in its fleet.yaml, or delete the other bundle",
		name, bundle.Owner(labels))
}

func errTerminating(names []string) error {
	if len(names) == 0 {
		return nil
	}
	return fault.New(fault.Waiting, reasonTerminating,
		"bundle %s is still being deleted; it is made anew once it is gone (%d such bundles)", names[0], len(names))
}

func changed(current *fleet.Bundle, want Wanted) bool {
	summary, _ := content.SummaryOf(current)
	if summary.SpecDigest != want.Summary.SpecDigest || !bundle.SameLabels(current.Labels, want.Bundle.Labels) {
		return true
	}
	for key, value := range want.Bundle.Annotations {
		if found, ok := current.Annotations[key]; !ok || found != value {
			return true
		}
	}
	return false
}

// waitsForParts says that a Bundle reports its values Secret as missing or as another version's, or files
// that it does not hold as missing.
func waitsForParts(bundle *fleet.Bundle) bool {
	ready := status.Find(bundle.Status.Conditions, fleet.ConditionReady)
	return ready != nil && ready.Status == corev1.ConditionFalse &&
		(ready.Reason == target.ReasonValuesMissing || ready.Reason == fleet.ReasonContentsMissing)
}

// Ours returns those of the existing Bundles that belong to a GitRepo and stay.
func Ours(repo string, existing map[string]*fleet.Bundle) map[string]*fleet.Bundle {
	own := map[string]*fleet.Bundle{}
	for name, bundle := range existing {
		if bundle.Labels[fleet.RepoLabel] == repo && bundle.DeletionTimestamp.IsZero() {
			own[name] = bundle
		}
	}
	return own
}

// Intact says that a GitRepo's own Bundles are exactly those of its last read, and have their values and files.
func Intact(own map[string]*fleet.Bundle, applied map[string]string) bool {
	for name, bundle := range own {
		summary, _ := content.SummaryOf(bundle)
		if digest, known := applied[name]; !known || digest != summary.SpecDigest || waitsForParts(bundle) {
			return false
		}
	}
	return len(own) == len(applied)
}

// Held lists the digests of what the hub holds for a GitRepo once a plan was carried out; written are
// those of the Bundles it wrote. Bundles that stay because a path matched nothing are among them.
func Held(own map[string]*fleet.Bundle, done Plan, written map[string]string) map[string]string {
	digests := map[string]string{}
	for name, bundle := range own {
		summary, _ := content.SummaryOf(bundle)
		digests[name] = summary.SpecDigest
	}
	for _, removed := range done.Delete {
		delete(digests, removed.Name)
	}
	maps.Copy(digests, written)
	return digests
}

// Unsettled says which of a GitRepo's Bundles is not deployed as the last read has it: stored, planned and
// ready. Bundles that report an error say so themselves.
func Unsettled(own map[string]*fleet.Bundle, applied map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(applied)) {
		bundle, exists := own[name]
		if !exists {
			return notReady(name, "is being stored")
		}
		if summary, _ := content.SummaryOf(bundle); summary.SpecDigest != applied[name] {
			return notReady(name, "is being stored")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(own)) {
		ready := parent.ReadinessOf(own[name]).Ready
		switch {
		case ready == nil || own[name].Status.ObservedGeneration != own[name].Generation:
			return notReady(name, "is being deployed")
		case ready.Status != corev1.ConditionTrue:
			return notReady(name, ready.Message)
		}
	}
	return nil
}

func notReady(name, why string) error {
	return fault.New(fault.Waiting, "BundleNotReady", "Bundle %s: %w", name, errors.New(why))
}
