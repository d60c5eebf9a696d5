package roster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/fairlead-dev/fairlead/pkg/agent/hub"
	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
	"github.com/fairlead-dev/fairlead/pkg/confirm"
	"github.com/fairlead-dev/fairlead/pkg/merge"
)

// Handlers are told of changes. They must not block.
type Handlers struct {
	// Changed is told of a deployment that is new, or of which more than the status changed.
	Changed func(name string)
	// Moved is told that something changed, if only a status, that other deployments may wait for.
	Moved func()
	// Gone is told of a deployment that is not there any more: certainly, since the hub told of its deletion, or because
	// a new list lacks it.
	Gone func(name string, certain bool)
}

// Roster is the deployments of a cluster. Its methods may be called from several goroutines.
type Roster struct {
	// informers make the informer and doubt lists that lack much.
	informers *confirm.Informers
	informer  cache.SharedIndexInformer
	namespace string // on the hub

	mu     sync.Mutex
	owners map[string]string // BundleDeployment by set hash
}

// New returns a roster; Run fills it.
func New(from *hub.Hub, handlers Handlers, now func() time.Time) (*Roster, error) {
	r := &Roster{
		informers: confirm.NewInformers(metadataFrom(from), kindOf, now),
		namespace: from.Namespace(), owners: map[string]string{},
	}
	r.informer = r.informers.New(from.ListWatch(), &fleet.BundleDeployment{}, 0, cache.Indexers{})
	_, err := r.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(object any) {
			handlers.Changed(object.(*fleet.BundleDeployment).Name)
			handlers.Moved()
		},
		UpdateFunc: handlers.updated,
		DeleteFunc: handlers.deleted,
	})
	return r, err
}

// metadataFrom looks a BundleDeployment up on the hub.
func metadataFrom(from *hub.Hub) confirm.Lookup {
	return func(ctx context.Context, _ schema.GroupVersionKind, key types.NamespacedName) (*metav1.ObjectMeta, error) {
		deployment, err := from.Get(ctx, key.Name)
		return &deployment.ObjectMeta, err
	}
}

func kindOf(runtime.Object) (schema.GroupVersionKind, error) {
	return fleet.GroupVersion.WithKind("BundleDeployment"), nil
}

func (h Handlers) updated(before, after any) {
	old, current := before.(*fleet.BundleDeployment), after.(*fleet.BundleDeployment)
	if needsPass(old, current) {
		h.Changed(current.Name)
	}
	if old.ResourceVersion != current.ResourceVersion {
		h.Moved()
	}
}

// needsPass says whether anything but the status changed.
func needsPass(old, current *fleet.BundleDeployment) bool {
	return old.UID != current.UID || old.Generation != current.Generation ||
		(old.DeletionTimestamp == nil) != (current.DeletionTimestamp == nil) ||
		len(old.Finalizers) != len(current.Finalizers) || merge.Moved(old, current)
}

func (h Handlers) deleted(object any) {
	certain := true
	if unseen, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object, certain = unseen.Obj, false
	}
	if deployment, ok := object.(*fleet.BundleDeployment); ok {
		h.Gone(deployment.Name, certain)
		h.Moved()
	}
}

// Start begins to list and watch, until the context ends. It returns when the hub is listed, with false when the
// context ended before. While the hub is away it keeps trying to reach it.
func (r *Roster) Start(ctx context.Context) bool {
	go r.informer.RunWithContext(ctx)
	return cache.WaitForCacheSync(ctx.Done(), r.informer.HasSynced)
}

// Refresh lists the deployments anew: the hub has one that the list lacks, of which no event is to come.
func (r *Roster) Refresh() { r.informers.Refresh(&fleet.BundleDeployment{}) }

// Get returns a deployment, nil when there is none.
func (r *Roster) Get(name string) (*fleet.BundleDeployment, error) {
	item, found, err := r.informer.GetStore().GetByKey(r.namespace + "/" + name)
	if err != nil || !found {
		return nil, err
	}
	deployment, ok := item.(*fleet.BundleDeployment)
	if !ok {
		return nil, fmt.Errorf("unexpected %T in the cache of the hub", item)
	}
	return deployment, nil
}

// All returns all deployments, by name.
func (r *Roster) All() []*fleet.BundleDeployment {
	items := r.informer.GetStore().List()
	all := make([]*fleet.BundleDeployment, 0, len(items))
	for _, item := range items {
		if deployment, ok := item.(*fleet.BundleDeployment); ok {
			all = append(all, deployment)
		}
	}
	slices.SortFunc(all, func(a, b *fleet.BundleDeployment) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Active returns the deployments that stay and are free.
func (r *Roster) Active() []*fleet.BundleDeployment {
	return slices.DeleteFunc(r.All(), func(deployment *fleet.BundleDeployment) bool {
		return deployment.DeletionTimestamp != nil || !IsFree(deployment)
	})
}

// IsFree says whether the agent may change anything for a deployment.
func IsFree(deployment *fleet.BundleDeployment) bool {
	spec := deployment.Spec
	return !spec.Paused && !spec.OffSchedule && !spec.WaitingForValues && spec.DeploymentID != ""
}

// Owner returns whose an object set is, false when that is not known.
func (r *Roster) Owner(setHash string) (name string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, known = r.owners[setHash]
	return name, known
}

// Own notes whose an object set is.
func (r *Roster) Own(setHash, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[setHash] = name
}

// Disown notes that an object set is nobody's any more.
func (r *Roster) Disown(setHash string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.owners, setHash)
}
