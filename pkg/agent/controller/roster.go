package controller

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/client-go/tools/cache"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// roster is the BundleDeployments of the cluster as the hub's list and watch have them, and whose object sets are known.
type roster struct {
	store     cache.Store
	namespace string // on the hub

	mu     sync.Mutex
	owners map[string]string // BundleDeployment by set hash
}

// Get returns a deployment, nil when there is none. It is the cache's: nobody may change it.
func (r *roster) Get(name string) (*fleet.BundleDeployment, error) {
	item, found, err := r.store.GetByKey(r.namespace + "/" + name)
	if err != nil || !found {
		return nil, err
	}
	deployment, ok := item.(*fleet.BundleDeployment)
	if !ok {
		return nil, fmt.Errorf("unexpected %T in the cache of the hub", item)
	}
	return deployment, nil
}

// all returns all deployments, by name.
func (r *roster) all() []*fleet.BundleDeployment {
	items := r.store.List()
	all := make([]*fleet.BundleDeployment, 0, len(items))
	for _, item := range items {
		if deployment, ok := item.(*fleet.BundleDeployment); ok {
			all = append(all, deployment)
		}
	}
	slices.SortFunc(all, func(a, b *fleet.BundleDeployment) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Active implements handover.Deployments.
func (r *roster) Active() []*fleet.BundleDeployment {
	return slices.DeleteFunc(r.all(), func(deployment *fleet.BundleDeployment) bool {
		return deployment.DeletionTimestamp != nil || !isFree(deployment)
	})
}

// Owner implements handover.Deployments.
func (r *roster) Owner(setHash string) (name string, known bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name, known = r.owners[setHash]
	return name, known
}

// own notes whose an object set is; "" is nobody.
func (r *roster) own(setHash, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if name == "" {
		delete(r.owners, setHash)
		return
	}
	r.owners[setHash] = name
}
