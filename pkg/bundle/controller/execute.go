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
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// writers is how many deployments of a bundle are written at a time.
const writers = 16

// execute carries a plan out. Siblings go on when one fails; the joined error names them.
func (r *Reconciler) execute(ctx context.Context, bundle *fleet.Bundle, snapshot target.Snapshot, plan target.Plan) error {
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
	pass := &pass{reconciler: r, bundle: key, current: current, access: r.accesses.giver(key)}
	return join(
		pass.access.giveAll(ctx, snapshot.Current),
		each(plan.Create, func(d *target.Deployment) error { return pass.create(ctx, d) }),
		each(plan.Update, func(d *target.Deployment) error { return pass.update(ctx, d) }),
		each(plan.Secrets, func(d *target.Deployment) error { return r.writeValues(ctx, d.Object, d.Values) }),
		each(plan.Delete, func(d *target.Deployment) error { return pass.delete(ctx, d) }),
		r.releaseDeleted(ctx, bundle, snapshot.Current),
	)
}

// pass is one execution of a plan for a bundle.
type pass struct {
	reconciler *Reconciler
	bundle     types.NamespacedName
	current    map[string]*fleet.BundleDeployment
	access     *giver
}

// create writes the values first, so that no agent sees a hash without its values.
func (p *pass) create(ctx context.Context, deployment *target.Deployment) error {
	object := deployment.Object
	if err := p.access.give(ctx, object); err != nil {
		return err
	}
	made, err := p.createValues(ctx, deployment)
	if err != nil {
		return err
	}
	err = p.reconciler.Client.Create(ctx, object)
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
	var found fleet.BundleDeployment
	err := p.reconciler.Reader.Get(ctx, client.ObjectKeyFromObject(deployment.Object), &found)
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
		p.reconciler.Caches.Refresh(&found) // which should show it by now
	}
	return &found, nil
}

// update patches only what changed: the agent writes the status of the same object all the time, and a
// resource version would make both fail.
func (p *pass) update(ctx context.Context, deployment *target.Deployment) error {
	object, before := deployment.Object, p.current[deployment.Object.Namespace]
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
		if err := p.reconciler.writeValues(ctx, object, deployment.Values); err != nil {
			return err
		}
	}
	if err := p.reconciler.Client.Patch(ctx, object, client.MergeFrom(before)); err != nil {
		return fmt.Errorf("update deployment %s/%s: %w", object.Namespace, object.Name, err)
	}
	p.reconciler.Metrics.wrote("patch")
	p.reconciler.writes.wrote(p.bundle, object.Namespace, object.ResourceVersion, p.reconciler.Now())
	if before.Spec.ValuesHash != "" && deployment.Values == nil {
		return p.reconciler.deleteValues(ctx, client.ObjectKeyFromObject(object), fleet.DeploymentValuesSecretType)
	}
	return nil
}

func (p *pass) delete(ctx context.Context, deployment *target.Deployment) error {
	object := deployment.Object
	if err := p.reconciler.release(ctx, object); err != nil {
		return err
	}
	err := p.reconciler.Client.Delete(ctx, object, client.Preconditions{UID: &object.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete deployment %s/%s: %w", object.Namespace, object.Name, err)
	}
	p.reconciler.Metrics.wrote("delete")
	p.reconciler.writes.removed(p.bundle, object.Namespace, p.reconciler.Now())
	if object.Spec.ValuesHash != "" {
		return p.reconciler.deleteValues(ctx, client.ObjectKeyFromObject(object), fleet.DeploymentValuesSecretType)
	}
	return nil
}

// each calls work for every deployment, a few at a time, and joins the errors in order.
func each(deployments []target.Deployment, work func(*target.Deployment) error) error {
	problems := make([]error, len(deployments))
	slots := make(chan struct{}, writers)
	var group sync.WaitGroup
	for i := range deployments {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			problems[i] = work(&deployments[i])
		})
	}
	group.Wait()
	return join(problems...)
}
