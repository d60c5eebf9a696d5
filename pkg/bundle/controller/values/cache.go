package values

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// cache holds the newest values of each bundle.
type cache struct {
	mutex   sync.Mutex
	entries map[types.NamespacedName]entry
}

type entry struct {
	hash string
	data map[string][]byte
}

func (c *cache) get(key types.NamespacedName, hash string) (map[string][]byte, bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	found, ok := c.entries[key]
	return found.data, ok && found.hash == hash
}

func (c *cache) put(key types.NamespacedName, hash string, data map[string][]byte) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.entries == nil {
		c.entries = map[types.NamespacedName]entry{}
	}
	c.entries[key] = entry{hash: hash, data: data}
}

func (c *cache) drop(key types.NamespacedName) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	delete(c.entries, key)
}
