package controller

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// writers is how many deployments of a bundle are written at a time.
const writers = 16

// execute carries a plan out. Siblings go on when one fails; the joined error names them.
func (r *Reconciler) execute(ctx context.Context, bundle *fleet.Bundle, snapshot target.Snapshot, plan target.Plan) error {
	if len(plan.Create)+len(plan.Update) > 0 && bundle.Spec.ContentsID == "" && bundle.Spec.HelmOpOptions == nil {
		if err := r.contents.ensure(ctx, bundle, snapshot.ManifestID); err != nil {
			return err
		}
	}
	current := make(map[string]*fleet.BundleDeployment, len(snapshot.Current))
	for i := range snapshot.Current {
		current[snapshot.Current[i].Namespace] = &snapshot.Current[i]
	}
	pass := &pass{reconciler: r, bundle: client.ObjectKeyFromObject(bundle), current: current}
	return errors.Join(
		each(plan.Create, func(d *target.Deployment) error { return pass.create(ctx, d) }),
		each(plan.Update, func(d *target.Deployment) error { return pass.update(ctx, d) }),
		each(plan.Secrets, func(d *target.Deployment) error { return r.writeValues(ctx, d.Object, d.Values) }),
		each(plan.Delete, func(d *target.Deployment) error { return pass.delete(ctx, d) }),
	)
}

// pass is one execution of a plan for a bundle.
type pass struct {
	reconciler *Reconciler
	bundle     types.NamespacedName
	current    map[string]*fleet.BundleDeployment
}

// create writes the values first, so that no agent sees a hash without its values.
func (p *pass) create(ctx context.Context, deployment *target.Deployment) error {
	object := deployment.Object
	if err := p.reconciler.writeValues(ctx, object, deployment.Values); err != nil {
		return err
	}
	err := p.reconciler.Client.Create(ctx, object)
	if client.IgnoreAlreadyExists(err) != nil {
		return fmt.Errorf("create deployment %s/%s: %w", object.Namespace, object.Name, err)
	}
	// One that exists was made by a pass that did not live to see it; the cache will show it.
	p.reconciler.writes.wrote(p.bundle, object.Namespace, max(object.Generation, 1), p.reconciler.Now())
	return nil
}

// update patches only what changed: the agent writes the status of the same object all the time, and a
// resource version would make both fail.
func (p *pass) update(ctx context.Context, deployment *target.Deployment) error {
	object, before := deployment.Object, p.current[deployment.Object.Namespace]
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
	p.reconciler.writes.wrote(p.bundle, object.Namespace, object.Generation, p.reconciler.Now())
	if before.Spec.ValuesHash != "" && deployment.Values == nil {
		return p.reconciler.deleteValues(ctx, object)
	}
	return nil
}

func (p *pass) delete(ctx context.Context, deployment *target.Deployment) error {
	object := deployment.Object
	err := p.reconciler.Client.Delete(ctx, object, client.Preconditions{UID: &object.UID})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete deployment %s/%s: %w", object.Namespace, object.Name, err)
	}
	p.reconciler.writes.wrote(p.bundle, object.Namespace, 0, p.reconciler.Now())
	if object.Spec.ValuesHash != "" {
		return p.reconciler.deleteValues(ctx, object)
	}
	return nil
}

// writeValues stores the values of a deployment in the Secret of its name.
func (r *Reconciler) writeValues(ctx context.Context, deployment *fleet.BundleDeployment, data map[string][]byte) error {
	if data == nil {
		return nil
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name},
		Type:       fleet.DeploymentValuesSecretType,
		Data:       data,
	}
	err := r.Client.Create(ctx, secret.DeepCopy())
	if apierrors.IsAlreadyExists(err) {
		err = r.Client.Update(ctx, secret)
	}
	if err != nil {
		return fmt.Errorf("write values of deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
}

func (r *Reconciler) deleteValues(ctx context.Context, deployment *fleet.BundleDeployment) error {
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: deployment.Namespace, Name: deployment.Name}}
	if err := r.Client.Delete(ctx, secret); client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete values of deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return nil
}

func (r *Reconciler) currentValues(ctx context.Context, deployment *fleet.BundleDeployment) ([]byte, error) {
	var secret corev1.Secret
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(deployment), &secret)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("read values of deployment %s/%s: %w", deployment.Namespace, deployment.Name, err)
	}
	return secret.Data[target.ValuesKey], nil
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
	return errors.Join(problems...)
}
