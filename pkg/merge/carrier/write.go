package carrier

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// write writes changes, each object once. What came of it stands in them afterwards.
func (w *Writer) write(ctx context.Context, namespace string, changes []*change) {
	objects, order := map[string][]*change{}, []string{}
	put := func(name string, c *change) {
		if objects[name] == nil {
			order = append(order, name)
		}
		objects[name] = append(objects[name], c)
	}
	var added []*change
	for _, c := range changes {
		if c.place != nil {
			added = append(added, c)
			continue
		}
		put(c.in, c)
	}
	absent, err := w.assign(ctx, namespace, added)
	for _, c := range added {
		if err != nil {
			c.err = err
			continue
		}
		put(c.in, c)
	}
	for _, name := range order {
		w.writeObject(ctx, types.NamespacedName{Namespace: namespace, Name: name}, objects[name], absent[name])
	}
}

// assign finds the objects for new parts: the first with room. It returns which of them do not exist.
func (w *Writer) assign(ctx context.Context, namespace string, added []*change) (absent map[string]bool, err error) {
	absent = map[string]bool{}
	for n := 0; len(added) > 0; n++ {
		var object fleet.BundleDeployment
		name := added[0].place.Name(n)
		err := w.reader.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &object)
		switch {
		case apierrors.IsNotFound(err):
			absent[name] = true
		case err != nil:
			return nil, fmt.Errorf("read deployment %s/%s: %w", namespace, name, err)
		case !merge.IsMerged(&object):
			continue // somebody's bundle has that name
		case object.DeletionTimestamp != nil:
			return nil, fmt.Errorf("deployment %s/%s is being deleted", namespace, name)
		}
		load, err := merge.LoadOf(&object)
		if err != nil {
			return nil, err
		}
		var left []*change
		for _, c := range added {
			_, there := object.Spec.Parts[c.name]
			if !there && !load.Fits(c.size, c.place.MaxBytes) {
				left = append(left, c)
				continue
			}
			c.in, load = name, load.Add(c.size)
		}
		added = left
	}
	return absent, nil
}

// writeObject writes the changes of one object, or removes it when they leave nothing of it.
func (w *Writer) writeObject(ctx context.Context, key types.NamespacedName, changes []*change, absent bool) {
	gone, err := w.removeWhole(ctx, key, changes)
	if !gone && err == nil {
		w.writeParts(ctx, key, changes, absent)
		return
	}
	for _, c := range changes {
		c.err = err
	}
}

func (w *Writer) writeParts(ctx context.Context, key types.NamespacedName, changes []*change, absent bool) {
	object, err := w.send(ctx, key, changes, absent)
	if absent && apierrors.IsAlreadyExists(err) || !absent && apierrors.IsNotFound(err) && hasNew(changes) {
		absent = !absent // another replica has made or emptied it meanwhile
		object, err = w.send(ctx, key, changes, absent)
	}
	for _, c := range changes {
		c.err, c.object = err, object
		if absent && c.place == nil && !c.drop {
			c.err = apierrors.NewNotFound(fleet.GroupVersion.WithResource("bundledeployments").GroupResource(), key.Name)
		}
	}
	if err != nil {
		return
	}
	w.batches.noteStale(key, merge.StaleMarks(object))
	if err := w.removeEmpty(ctx, object); err != nil {
		for _, c := range changes {
			c.err = errors.Join(c.err, err)
		}
	}
}

// removeWhole deletes an object of which no part is left after the changes, and says whether it is gone. When another
// replica has changed it meanwhile, it is not.
func (w *Writer) removeWhole(ctx context.Context, key types.NamespacedName, changes []*change) (gone bool, err error) {
	dropped := map[string]bool{}
	for _, c := range changes {
		if !c.drop {
			return false, nil
		}
		dropped[c.name] = true
	}
	var object fleet.BundleDeployment
	if err := w.reader.Get(ctx, key, &object); err != nil {
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	}
	for name := range object.Spec.Parts {
		if !dropped[name] {
			return false, nil
		}
	}
	err = w.client.Delete(ctx, &object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if apierrors.IsConflict(err) {
		return false, nil
	}
	if client.IgnoreNotFound(err) != nil {
		return false, fmt.Errorf("delete deployment %s with all its parts: %w", key, err)
	}
	return true, nil
}

// removeEmpty deletes an object without parts, unless somebody has given it one meanwhile.
func (w *Writer) removeEmpty(ctx context.Context, object *fleet.BundleDeployment) error {
	if len(object.Spec.Parts) > 0 {
		return nil
	}
	err := w.client.Delete(ctx, object, client.Preconditions{UID: &object.UID, ResourceVersion: &object.ResourceVersion})
	if client.IgnoreNotFound(err) != nil && !apierrors.IsConflict(err) {
		return fmt.Errorf("delete deployment %s/%s without parts: %w", object.Namespace, object.Name, err)
	}
	return nil
}

func hasNew(changes []*change) bool {
	return slices.ContainsFunc(changes, func(c *change) bool { return c.place != nil })
}

// send creates an object with the changes or patches it, and returns it as it is then.
func (w *Writer) send(ctx context.Context, key types.NamespacedName, changes []*change, absent bool) (*fleet.BundleDeployment, error) {
	if absent {
		object := created(key, changes)
		return object, w.client.Create(ctx, object)
	}
	object := &fleet.BundleDeployment{}
	object.Namespace, object.Name = key.Namespace, key.Name
	others, err := w.others(ctx, key, changes)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(patchOf(changes, others, w.batches.takeStale(key)))
	if err != nil {
		return nil, fmt.Errorf("write deployment %s: %w", key, err)
	}
	return object, w.client.Patch(ctx, object, client.RawPatch(types.MergePatchType, body))
}

// created returns a new object with parts.
func created(key types.NamespacedName, changes []*change) *fleet.BundleDeployment {
	object := &fleet.BundleDeployment{}
	object.Namespace, object.Name = key.Namespace, key.Name
	object.Labels, object.Spec.Parts = map[string]string{}, map[string]fleet.DeploymentPart{}
	for _, c := range changes {
		if c.place == nil {
			continue // it is of an object that is gone
		}
		for label, value := range c.labels {
			object.Labels[label] = value
		}
		for _, mark := range merge.Marks(c.part) {
			object.Labels[mark] = "true"
		}
		object.Spec.Parts[c.name] = *c.part.DeepCopy()
	}
	return object
}

// others returns the marks that parts of an object need which stay as they are, as far as the cache knows them.
func (w *Writer) others(ctx context.Context, key types.NamespacedName, changes []*change) (map[string]bool, error) {
	var list fleet.BundleDeploymentList
	if err := w.client.List(ctx, &list, client.InNamespace(key.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list deployments in %s: %w", key.Namespace, err)
	}
	marks := map[string]bool{}
	for _, deployment := range merge.ExplodeAll(list.Items) {
		changing := slices.ContainsFunc(changes, func(c *change) bool { return c.name == deployment.Name })
		if changing || !slices.ContainsFunc(merge.Carriers(&deployment), func(c merge.Carrier) bool { return c.Name == key.Name }) {
			continue
		}
		for _, mark := range merge.Marks(merge.PartOf(&deployment)) {
			marks[mark] = true
		}
	}
	return marks, nil
}

// patchOf returns the merge patch of changes. Marks that they leave without need go, unless others need them.
func patchOf(changes []*change, others map[string]bool, stale []string) map[string]any {
	labels, parts := map[string]any{}, map[string]any{}
	for _, c := range changes {
		stale = append(stale, merge.Marks(c.before)...)
	}
	for _, mark := range stale {
		if !others[mark] {
			labels[mark] = nil
		}
	}
	for _, c := range changes {
		if c.drop {
			parts[c.name] = nil
			continue
		}
		for _, mark := range merge.Marks(c.part) {
			labels[mark] = "true"
		}
		for label, value := range c.labels {
			labels[label] = value
		}
		if parts[c.name] = any(c.patch); c.place != nil {
			parts[c.name] = c.part
		}
	}
	return map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"parts": parts}}
}
