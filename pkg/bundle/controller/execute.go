package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/merge/carrier"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// writers is how many deployments of a bundle are written at a time.
const writers = 16

// execute carries a plan out. Siblings go on when one fails; the joined error names them.
func (r *Reconciler) execute(ctx context.Context, bundle *fleet.Bundle, snapshot target.Snapshot, plan target.Plan, where merging) error {
	if len(plan.Create)+len(plan.Update)+len(plan.Delete) > 0 {
		defer r.Rollups.Writing()()
	}
	if len(plan.Create)+len(plan.Update) > 0 && bundle.Spec.ContentsID == "" && bundle.Spec.HelmOpOptions == nil {
		if err := r.contents.ensure(ctx, bundle, snapshot.ManifestID); err != nil {
			return err
		}
	}
	current := make(map[string]*fleet.BundleDeployment, len(snapshot.Current))
	for i := range snapshot.Current {
		current[snapshot.Current[i].Namespace] = &snapshot.Current[i]
	}
	key := client.ObjectKeyFromObject(bundle)
	pass := &pass{
		reconciler: r, bundle: key, current: current, access: r.accesses.giver(key),
		merging: where, slots: make(chan struct{}, writers),
	}
	return join(
		pass.access.giveAll(ctx, snapshot.Current),
		each(plan.Create, func(d *target.Deployment) error { return pass.create(ctx, d) }),
		each(plan.Update, func(d *target.Deployment) error { return pass.update(ctx, d) }),
		each(plan.Secrets, func(d *target.Deployment) error { return pass.writeValues(ctx, d) }),
		each(plan.Delete, func(d *target.Deployment) error { return pass.delete(ctx, d) }),
		pass.move(ctx, snapshot.Current, plan),
		r.releaseDeleted(ctx, bundle, snapshot.Current),
	)
}

// pass is one execution of a plan for a bundle.
type pass struct {
	reconciler *Reconciler
	bundle     types.NamespacedName
	current    map[string]*fleet.BundleDeployment
	access     *giver
	merging    merging
	// slots bound the requests that are under way. Whoever waits for a write together with others takes none.
	slots chan struct{}
}

// request does something that takes requests of its own.
func (p *pass) request(do func() error) error {
	p.slots <- struct{}{}
	defer func() { <-p.slots }()
	return do()
}

// write writes a deployment to its place; together with those of other bundles when it is to be merged.
func (p *pass) write(merged bool, do func() error) error {
	if merged {
		return do()
	}
	return p.request(do)
}

func (p *pass) writeValues(ctx context.Context, deployment *target.Deployment) error {
	return p.request(func() error { return p.reconciler.writeValues(ctx, deployment.Object, deployment.Values) })
}

// create writes the values first, so that no agent sees a hash without its values.
func (p *pass) create(ctx context.Context, deployment *target.Deployment) error {
	object, made := deployment.Object, false
	err := p.request(func() (err error) {
		if err = p.access.give(ctx, object); err == nil {
			made, err = p.createValues(ctx, deployment)
		}
		return err
	})
	if err != nil {
		return err
	}
	place := p.merging.of(object)
	err = p.write(place != nil, func() error { return p.reconciler.Deployments.Create(ctx, object, place) })
	if apierrors.IsAlreadyExists(err) {
		// Made by a pass that did not live to see it, or somebody else's.
		if object, err = p.present(ctx, deployment); err == nil && object == nil {
			return fault.New(fault.Transient, "DeploymentVanished", "create deployment %s/%s: it came and went", deployment.Object.Namespace, deployment.Object.Name)
		}
	}
	if err != nil {
		if made && fault.NeedsPerson(err) {
			err = errors.Join(err, p.reconciler.deleteValues(ctx, client.ObjectKeyFromObject(deployment.Object), fleet.DeploymentValuesSecretType))
		}
		return fmt.Errorf("create deployment %s/%s: %w", deployment.Object.Namespace, deployment.Object.Name, err)
	}
	p.reconciler.Metrics.wrote("create")
	p.reconciler.writes.wrote(p.bundle, object.Namespace, object.ResourceVersion, p.reconciler.Now())
	return nil
}

// createValues stores the values of a new deployment, over those that were left behind, and says whether
// there were none.
func (p *pass) createValues(ctx context.Context, deployment *target.Deployment) (made bool, err error) {
	if deployment.Values == nil {
		return false, nil
	}
	object := deployment.Object
	err = p.reconciler.Client.Create(ctx, valuesSecret(object, deployment.Values))
	if err == nil {
		return true, nil
	}
	if apierrors.IsAlreadyExists(err) {
		if _, err = p.present(ctx, deployment); err == nil {
			err = p.reconciler.Client.Update(ctx, valuesSecret(object, deployment.Values))
		}
	}
	if err != nil {
		return false, fmt.Errorf("write values of deployment %s/%s: %w", object.Namespace, object.Name, err)
	}
	return false, nil
}

// present returns the deployment that has the name already, nil if none has; one of another bundle is an
// error that names it. It asks the API server.
func (p *pass) present(ctx context.Context, deployment *target.Deployment) (*fleet.BundleDeployment, error) {
	found, err := carrier.Find(ctx, p.reconciler.Reader, client.ObjectKeyFromObject(deployment.Object))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	owner := types.NamespacedName{Namespace: found.Labels[fleet.BundleNamespaceLabel], Name: found.Labels[fleet.BundleLabel]}
	if owner != p.bundle {
		return nil, fault.New(fault.Stalled, "DeploymentOwnedByOther",
			"on Cluster %s it exists already and belongs to bundle %s; rename one of the two bundles, or keep one of them away from the cluster",
			deployment.Cluster, owner)
	}
	if p.reconciler.Now().Sub(found.CreationTimestamp.Time) > forgetWrites {
		p.reconciler.Caches.Refresh(found) // which should show it by now
	}
	return found, nil
}

// update patches only what changed: the agent writes the status of the same object all the time, and a
// resource version would make both fail.
func (p *pass) update(ctx context.Context, deployment *target.Deployment) error {
	object, before := deployment.Object, p.current[deployment.Object.Namespace]
	if err := p.request(func() error { return p.prepare(ctx, deployment, before) }); err != nil {
		return err
	}
	err := p.write(isMerged(before), func() error { return p.reconciler.Deployments.Update(ctx, object, before) })
	if err != nil {
		return fmt.Errorf("update deployment %s/%s: %w", object.Namespace, object.Name, err)
	}
	p.reconciler.Metrics.wrote("patch")
	p.reconciler.writes.wrote(p.bundle, object.Namespace, object.ResourceVersion, p.reconciler.Now())
	if before.Spec.ValuesHash != "" && deployment.Values == nil {
		return p.deleteValues(ctx, object)
	}
	return nil
}

// prepare writes what an update needs beside the deployment.
func (p *pass) prepare(ctx context.Context, deployment *target.Deployment, before *fleet.BundleDeployment) error {
	object := deployment.Object
	if err := p.access.give(ctx, object); err != nil {
		return err
	}
	if deployment.NeedsCurrentValues {
		values, err := p.reconciler.currentValues(ctx, object)
		if err != nil {
			return err
		}
		deployment.KeepValues(values)
	}
	if before.Spec.ValuesHash != object.Spec.ValuesHash && deployment.Values != nil {
		return p.reconciler.writeValues(ctx, object, deployment.Values)
	}
	return nil
}

func (p *pass) deleteValues(ctx context.Context, object *fleet.BundleDeployment) error {
	return p.request(func() error {
		return p.reconciler.deleteValues(ctx, client.ObjectKeyFromObject(object), fleet.DeploymentValuesSecretType)
	})
}

func (p *pass) delete(ctx context.Context, deployment *target.Deployment) error {
	object := deployment.Object
	err := p.write(isMerged(object), func() error {
		if err := p.reconciler.Deployments.Release(ctx, object); err != nil {
			return err
		}
		return p.reconciler.Deployments.Delete(ctx, object)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete deployment %s/%s: %w", object.Namespace, object.Name, err)
	}
	p.reconciler.Metrics.wrote("delete")
	p.reconciler.writes.removed(p.bundle, object.Namespace, p.reconciler.Now())
	if object.Spec.ValuesHash != "" {
		return p.deleteValues(ctx, object)
	}
	return nil
}

// each calls work for every deployment at the same time, and joins the errors in order.
func each[T any](deployments []T, work func(*T) error) error {
	problems := make([]error, len(deployments))
	var group sync.WaitGroup
	for i := range deployments {
		group.Go(func() { problems[i] = work(&deployments[i]) })
	}
	group.Wait()
	return join(problems...)
}
