package fetch

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// cache keeps files in a folder, the least recently used first to go. Keys are digested, so names of
// files reveal nothing. It is an optimization: what cannot be kept or read counts as not there.
type cache struct {
	dir   string
	limit int64
	now   func() time.Time
	mutex sync.Mutex
}

// validators are what a server wants to be asked with whether a file changed.
type validators struct {
	ETag         string `json:"etag,omitempty"`
	LastModified string `json:"lastModified,omitempty"`
	// SHA256 of the file, so that a damaged one is not used.
	SHA256 string `json:"sha256"`
}

func validatorsOf(response *http.Response) validators {
	return validators{ETag: response.Header.Get("ETag"), LastModified: response.Header.Get("Last-Modified")}
}

// entry is what is kept under a key.
type entry struct {
	validators
	file  string
	cache *cache
}

func (c *cache) path(key string) string {
	digest := sha256.Sum256([]byte(key))
	return filepath.Join(c.dir, hex.EncodeToString(digest[:]))
}

// find returns what is kept under a key; its file is empty when there is nothing.
func (c *cache) find(key string) entry {
	none := entry{cache: c}
	if c.dir == "" {
		return none
	}
	file := c.path(key)
	data, err := os.ReadFile(file + ".json")
	if err != nil {
		return none
	}
	found := entry{file: file, cache: c}
	if json.Unmarshal(data, &found.validators) != nil {
		return none
	}
	if _, err := os.Stat(file); err != nil {
		return none
	}
	return found
}

// condition makes a request one for changes only.
func (e entry) condition(req *http.Request) {
	if e.file == "" {
		return
	}
	if e.ETag != "" {
		req.Header.Set("If-None-Match", e.ETag)
	}
	if e.LastModified != "" {
		req.Header.Set("If-Modified-Since", e.LastModified)
	}
}

// read returns the kept file, if it is whole and within the limit.
func (e entry) read(limit int64) ([]byte, bool) {
	if e.file == "" {
		return nil, false
	}
	info, err := os.Stat(e.file)
	if err != nil || info.Size() > limit {
		return nil, false
	}
	data, err := os.ReadFile(e.file)
	if err != nil || digestOf(data) != e.SHA256 {
		return nil, false
	}
	// Only the order of use is lost if this fails.
	_ = os.Chtimes(e.file, time.Time{}, e.cache.now())
	return data, true
}

// drop removes what is kept, so that the next request is not one for changes.
func (e entry) drop() {
	if e.file != "" {
		_ = os.Remove(e.file + ".json")
		_ = os.Remove(e.file)
	}
}

// keep stores a file, and removes others to stay within the limit.
func (c *cache) keep(key string, how validators, data []byte) {
	if c.dir == "" || int64(len(data)) > c.limit/2 {
		return
	}
	how.SHA256 = digestOf(data)
	description, err := json.Marshal(how)
	if err != nil || os.MkdirAll(c.dir, 0o700) != nil {
		return
	}
	file := c.path(key)
	// The file first: a description of another file is found out by the digest.
	if c.write(file, data) == nil && c.write(file+".json", description) == nil {
		_ = os.Chtimes(file, time.Time{}, c.now())
		c.shrink()
	}
}

func (c *cache) write(file string, data []byte) error {
	temporary, err := os.CreateTemp(c.dir, "new-*")
	if err != nil {
		return err
	}
	_, err = temporary.Write(data)
	if closed := temporary.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(temporary.Name(), file)
	}
	if err != nil {
		_ = os.Remove(temporary.Name())
	}
	return err
}

func (c *cache) shrink() {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	entries, err := os.ReadDir(c.dir)
	if err != nil {
		return
	}
	var files []fs.FileInfo
	var total int64
	for _, one := range entries {
		info, err := one.Info()
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		total += info.Size()
		if !strings.HasSuffix(info.Name(), ".json") {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range files {
		if total <= c.limit {
			return
		}
		file := filepath.Join(c.dir, info.Name())
		_ = os.Remove(file + ".json")
		if os.Remove(file) == nil {
			total -= info.Size()
		}
	}
}

func digestOf(data []byte) string {
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:])
}
