package serve

import (
	"io/fs"
	"sync"
)

// cache keeps what was made of files, up to limit bytes: what was asked for least recently goes first.
type cache[V any] struct {
	limit int
	mu    sync.Mutex
	items map[string]*item[V]
	size  int
	clock uint64
}

// item is what was made of a file with info.
type item[V any] struct {
	info fs.FileInfo
	v    V
	size int
	used uint64
}

// get returns what was made of f if f has not changed since.
func (c *cache[V]) get(f file) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	it := c.items[f.name]
	if it == nil || !same(it.info, f.info) {
		return v, false
	}
	c.clock++
	it.used = c.clock
	return it.v, true
}

// put keeps v, of size bytes, in the place of what was made of f before. More than the limit alone is not kept.
func (c *cache[V]) put(f file, v V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(f.name)
	if size > c.limit {
		return
	}
	for c.size+size > c.limit {
		c.drop(c.oldest())
	}
	if c.items == nil {
		c.items = map[string]*item[V]{}
	}
	c.clock++
	c.items[f.name] = &item[V]{f.info, v, size, c.clock}
	c.size += size
}

// drop forgets the item called name, if there is one.
func (c *cache[V]) drop(name string) {
	if it := c.items[name]; it != nil {
		c.size -= it.size
		delete(c.items, name)
	}
}

// oldest is the name of the item that was used least recently.
func (c *cache[V]) oldest() (name string) {
	var first uint64
	for n, it := range c.items {
		if name == "" || it.used < first {
			name, first = n, it.used
		}
	}
	return name
}
