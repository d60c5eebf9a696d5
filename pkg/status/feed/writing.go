package feed

import (
	"sync"

	"github.com/fairlead-dev/fairlead/pkg/status/tally"
)

// Writing is a work under way that writes deployments. No wave is over meanwhile, and Clusters are not told before
// theirs were written.
type Writing struct {
	feed *Feed

	mutex sync.Mutex
	left  map[tally.Ref]bool
}

// Writing says that deployments of some Clusters are about to be written, until End is called.
func (f *Feed) Writing(clusters ...tally.Ref) *Writing {
	w := &Writing{feed: f, left: make(map[tally.Ref]bool, len(clusters))}
	parents := make([]tally.Parent, 0, len(clusters))
	for _, cluster := range clusters {
		if !w.left[cluster] {
			w.left[cluster] = true
			parents = append(parents, tally.Parent{Kind: tally.KindCluster, Ref: cluster})
		}
	}
	f.calm.began(parents...)
	return w
}

// Wrote says that a Cluster's deployment was written.
func (w *Writing) Wrote(cluster tally.Ref) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.left[cluster] {
		delete(w.left, cluster)
		w.feed.calm.come(tally.Parent{Kind: tally.KindCluster, Ref: cluster})
	}
}

// End says that nothing more will be written.
func (w *Writing) End() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	for cluster := range w.left {
		w.feed.calm.come(tally.Parent{Kind: tally.KindCluster, Ref: cluster})
	}
	w.left = nil
	w.feed.calm.ended()
	w.feed.stir()
}
