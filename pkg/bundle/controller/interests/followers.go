package interests

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	fleet "github.com/fairlead-dev/fairlead/pkg/apis/fleet.cattle.io/v1alpha1"
)

// Follow has a bundle woken up by what becomes of others, until a plan says which of them it waits for.
func (b *Bundles) Follow(key types.NamespacedName, others []*fleet.Bundle) {
	names := make([]types.NamespacedName, 0, len(others))
	for _, other := range others {
		names = append(names, client.ObjectKeyFromObject(other))
	}
	b.follow(key, names)
}

// follow notes which other bundles one waits for now.
func (b *Bundles) follow(key types.NamespacedName, others []types.NamespacedName) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.unfollow(key)
	if len(others) == 0 {
		return
	}
	b.awaited[key] = others
	for _, other := range others {
		if b.followers[other] == nil {
			b.followers[other] = map[types.NamespacedName]bool{}
		}
		b.followers[other][key] = true
	}
}

// unfollow notes that a bundle waits for none. The mutex is held.
func (b *Bundles) unfollow(key types.NamespacedName) {
	for _, other := range b.awaited[key] {
		if delete(b.followers[other], key); len(b.followers[other]) == 0 {
			delete(b.followers, other)
		}
	}
	delete(b.awaited, key)
}

// wakeFollowers wakes up the bundles that wait for another one, after a pause.
func (b *Bundles) wakeFollowers(queue requests, pause time.Duration, other types.NamespacedName) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for follower := range b.followers[other] {
		queue.AddAfter(reconcile.Request{NamespacedName: follower}, pause)
	}
}

// bundleEvents wakes up the bundles that wait for one that was planned, changes or goes.
func (b *Bundles) bundleEvents() handler.EventHandler {
	return handler.Funcs{
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, queue requests) {
			b.wakeFollowers(queue, deploymentPause, client.ObjectKeyFromObject(e.ObjectNew))
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, queue requests) {
			b.wakeFollowers(queue, deploymentPause, client.ObjectKeyFromObject(e.Object))
		},
	}
}
