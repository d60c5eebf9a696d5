package feed

import (
	"sync"

	"github.com/fairlead-dev/fairlead/pkg/status"
)

// Writing is a work under way that writes deployments. No wave is over meanwhile, and Clusters are not told before
// theirs were written.
type Writing struct {
	feed *Feed

	mutex sync.Mutex
	left  map[status.Ref]bool
}

// Writing says that deployments of some Clusters are about to be written, until End is called.
func (f *Feed) Writing(clusters ...status.Ref) *Writing {
	w := &Writing{feed: f, left: make(map[status.Ref]bool, len(clusters))}
	parents := make([]status.Parent, 0, len(clusters))
	for _, cluster := range clusters {
		if !w.left[cluster] {
			w.left[cluster] = true
			parents = append(parents, status.Parent{Kind: status.KindCluster, Ref: cluster})
		}
	}
	f.calm.began(parents...)
	return w
}

// Wrote says that a Cluster's deployment was written.
func (w *Writing) Wrote(cluster status.Ref) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.left[cluster] {
		delete(w.left, cluster)
		w.feed.calm.come(status.Parent{Kind: status.KindCluster, Ref: cluster})
	}
}

// End says that nothing more will be written.
func (w *Writing) End() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for cluster := range w.left {
		w.feed.calm.come(status.Parent{Kind: status.KindCluster, Ref: cluster})
	}
	w.left = nil
	w.feed.calm.ended()
	w.feed.stir()
}
