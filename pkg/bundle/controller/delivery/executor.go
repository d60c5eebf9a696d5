package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/contents"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/ledger"
	"github.com/fairlead-dev/fairlead/pkg/bundle/controller/values"
	"github.com/fairlead-dev/fairlead/pkg/fault"
	"github.com/fairlead-dev/fairlead/pkg/merge"
	"github.com/fairlead-dev/fairlead/pkg/merge/carrier"
	"github.com/fairlead-dev/fairlead/pkg/status/feed"
	"github.com/fairlead-dev/fairlead/pkg/status/tally"
	"github.com/fairlead-dev/fairlead/pkg/target"
)

// writers is how many deployments of a bundle are written at a time, and allWriters of all bundles together: more
// keep an API server no busier, and everybody else waiting for its answers.
const writers, allWriters = 16, 32

// Options are what an Executor works with. All must be set.
type Options struct {
	// Reader reads from the API server.
	Reader client.Reader
	// Deployments writes them, wherever they are.
	Deployments *carrier.Writer
	Contents    *contents.Store
	Values      *values.Store
	// Ledger is told of every write.
	Ledger *ledger.Ledger
	// Writing says that deployments of Clusters are about to be written.
	Writing func(clusters ...tally.Ref) *feed.Writing
	// Count is called with the verb of each write of a deployment: create, patch or delete.
	Count func(verb string)
}

// Executor carries plans out. Make it with New.
type Executor struct {
	options Options
	// slots bound the requests that are under way for all bundles.
	slots chan struct{}
}

// New returns an Executor, for all bundles.
func New(options Options) *Executor {
	return &Executor{options: options, slots: make(chan struct{}, allWriters)}
}

// Execute carries a plan of a bundle out that was made from a snapshot. Siblings go on when one fails; the joined error
// names them.
func (e *Executor) Execute(ctx context.Context, bundle *fleet.Bundle, snapshot target.Snapshot, plan target.Plan, places Places) error {
	if len(plan.Create)+len(plan.Update) > 0 && bundle.Spec.ContentsID == "" && bundle.Spec.HelmOpOptions == nil {
		if err := e.options.Contents.Ensure(ctx, bundle, snapshot.ManifestID); err != nil {
			return err
		}
	}
	current := make(map[string]*fleet.BundleDeployment, len(snapshot.Current))
	for _, deployment := range snapshot.Current {
		current[deployment.Namespace] = deployment
	}
	key := client.ObjectKeyFromObject(bundle)
	pass := &pass{
		Executor: e, bundle: key, current: current, access: e.options.Contents.Copies(key),
		places: places, slots: make(chan struct{}, writers),
	}
	if written := clustersOf(plan.Create, plan.Update, plan.Delete); len(written) > 0 {
		pass.told = e.options.Writing(written...)
		defer pass.told.End()
	}
	moves := places.moves(snapshot.Current, plan)
	return fault.Join(
		pass.access.GiveAll(ctx, snapshot.Current),
		pass.each(ctx, plan.Create, pass.create),
		pass.each(ctx, plan.Update, pass.update),
		pass.each(ctx, plan.Delete, pass.delete),
		each(plan.Secrets, pass.atOnce(), func(d *target.Deployment) error { return pass.writeValues(ctx, d) }),
		each(moves, pass.atOnce(), func(d **fleet.BundleDeployment) error { return pass.move(ctx, *d) }),
		e.releaseDeleted(ctx, bundle, snapshot.Current),
	)
}

// clustersOf names the Clusters of deployments.
func clustersOf(lists ...[]target.Deployment) []tally.Ref {
	var clusters []tally.Ref
	for _, list := range lists {
		for i := range list {
			clusters = append(clusters, clusterOf(&list[i]))
		}
	}
	return clusters
}

func clusterOf(deployment *target.Deployment) tally.Ref {
	labels := deployment.Object.Labels
	return tally.Ref{Namespace: labels[fleet.ClusterNamespaceLabel], Name: labels[fleet.ClusterLabel]}
}

// pass is one execution of a plan for a bundle.
type pass struct {
	*Executor
	bundle  types.NamespacedName
	current map[string]*fleet.BundleDeployment
	access  *contents.Copies
	places  Places
	// told knows which Clusters' deployments are being written.
	told *feed.Writing
	// slots bound the requests that are under way. Whoever waits for a write together with others takes none.
	slots chan struct{}
}

// each writes deployments, some at a time.
func (p *pass) each(ctx context.Context, deployments []target.Deployment, write func(context.Context, *target.Deployment) error) error {
	return each(deployments, p.atOnce(), func(deployment *target.Deployment) error {
		defer p.told.Wrote(clusterOf(deployment))
		return write(ctx, deployment)
	})
}

// atOnce is how many deployments are worked on at a time: all of those that wait to be written together with others'.
func (p *pass) atOnce() int {
	if p.places.needed {
		return -1
	}
	return writers
}

// request does something that takes requests of its own; what takes none is not to wait for a slot. A bundle's wait for
// each other first, so that those of a large one do not stand before a small one's.
func (p *pass) request(do func() error) error {
	for _, slots := range []chan struct{}{p.slots, p.Executor.slots} {
		slots <- struct{}{}
		defer func() { <-slots }()
	}
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
	return p.request(func() error { return p.options.Values.Write(ctx, deployment.Object, deployment.Values) })
}

// create writes the values first, so that no agent sees a hash without its values.
func (p *pass) create(ctx context.Context, deployment *target.Deployment) error {
	object, made := deployment.Object, false
	if object.Spec.OCIContents || deployment.Values != nil {
		err := p.request(func() (err error) {
			if err = p.access.Give(ctx, object); err == nil {
				made, err = p.createValues(ctx, deployment)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	place := p.places.Of(object)
	err := p.write(place != nil, func() error { return p.options.Deployments.Create(ctx, object, place) })
	if apierrors.IsAlreadyExists(err) {
		// Made by a pass that did not live to see it, or somebody else's.
		if object, err = p.present(ctx, deployment); err == nil && object == nil {
			return fault.New(fault.Transient, "DeploymentVanished", "create deployment %s/%s: it came and went", deployment.Object.Namespace, deployment.Object.Name)
		}
	}
	if err != nil {
		if made && fault.NeedsPerson(err) {
			err = errors.Join(err, p.options.Values.Delete(ctx, client.ObjectKeyFromObject(deployment.Object), fleet.DeploymentValuesSecretType))
		}
		return fmt.Errorf("create deployment %s/%s: %w", deployment.Object.Namespace, deployment.Object.Name, err)
	}
	p.options.Count("create")
	p.options.Ledger.Wrote(p.bundle, object.Namespace, object.ResourceVersion)
	return nil
}

// createValues stores the values of a new deployment, over those that were left behind, and says whether
// there were none.
func (p *pass) createValues(ctx context.Context, deployment *target.Deployment) (made bool, err error) {
	if deployment.Values == nil {
		return false, nil
	}
	object := deployment.Object
	err = p.options.Values.Create(ctx, object, deployment.Values)
	if err == nil {
		return true, nil
	}
	if apierrors.IsAlreadyExists(err) {
		if _, err = p.present(ctx, deployment); err == nil {
			err = p.options.Values.Replace(ctx, object, deployment.Values)
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
	found, err := carrier.Find(ctx, p.options.Reader, client.ObjectKeyFromObject(deployment.Object))
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if owner := target.BundleOf(found.Labels); owner != p.bundle {
		return nil, fault.New(fault.Stalled, "DeploymentOwnedByOther",
			"on Cluster %s it exists already and belongs to bundle %s; rename one of the two bundles, or keep one of them away from the cluster",
			deployment.Cluster, owner)
	}
	p.options.Ledger.Exists(found)
	return found, nil
}

// update patches only what changed: the agent writes the status of the same object all the time, and a
// resource version would make both fail.
func (p *pass) update(ctx context.Context, deployment *target.Deployment) error {
	object, before := deployment.Object, p.current[deployment.Object.Namespace]
	if object.Spec.OCIContents || deployment.NeedsCurrentValues || deployment.Values != nil {
		if err := p.request(func() error { return p.prepare(ctx, deployment, before) }); err != nil {
			return err
		}
	}
	err := p.write(merge.InMerged(before), func() error { return p.options.Deployments.Update(ctx, object, before) })
	if err != nil {
		return fmt.Errorf("update deployment %s/%s: %w", object.Namespace, object.Name, err)
	}
	p.options.Count("patch")
	p.options.Ledger.Wrote(p.bundle, object.Namespace, object.ResourceVersion)
	if before.Spec.ValuesHash != "" && deployment.Values == nil {
		return p.deleteValues(ctx, object)
	}
	return nil
}

// prepare writes what an update needs beside the deployment.
func (p *pass) prepare(ctx context.Context, deployment *target.Deployment, before *fleet.BundleDeployment) error {
	object := deployment.Object
	if err := p.access.Give(ctx, object); err != nil {
		return err
	}
	if deployment.NeedsCurrentValues {
		values, err := p.options.Values.Current(ctx, object)
		if err != nil {
			return err
		}
		deployment.KeepValues(values)
	}
	if before.Spec.ValuesHash != object.Spec.ValuesHash && deployment.Values != nil {
		return p.options.Values.Write(ctx, object, deployment.Values)
	}
	return nil
}

func (p *pass) deleteValues(ctx context.Context, object *fleet.BundleDeployment) error {
	return p.request(func() error {
		return p.options.Values.Delete(ctx, client.ObjectKeyFromObject(object), fleet.DeploymentValuesSecretType)
	})
}

func (p *pass) delete(ctx context.Context, deployment *target.Deployment) error {
	object := deployment.Object
	err := p.write(merge.InMerged(object), func() error {
		if err := p.options.Deployments.Release(ctx, object); err != nil {
			return err
		}
		return p.options.Deployments.Delete(ctx, object)
	})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete deployment %s/%s: %w", object.Namespace, object.Name, err)
	}
	p.options.Count("delete")
	p.options.Ledger.Removed(p.bundle, object.Namespace)
	if object.Spec.ValuesHash != "" {
		return p.deleteValues(ctx, object)
	}
	return nil
}

// each calls work for every item, for so many at a time (-1 for all), in order, and joins the errors in order. Those who
// work go from item to item, so that their stacks grow once.
func each[T any](items []T, atOnce int, work func(*T) error) error {
	if atOnce < 0 {
		atOnce = len(items)
	}
	problems := make([]error, len(items))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(atOnce, len(items)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(items)); i = next.Add(1) - 1 {
				problems[i] = work(&items[i])
			}
		})
	}
	workers.Wait()
	return fault.Join(problems...)
}
