package regcache

import "slices"

// Owners that use an entry again and again keep it in use between two of their operations, to take no lock. They do so
// as long as the device has room for other registrations.

// Keeper is one that keeps entries of a cache in use at times at which it has no operation that uses them.
type Keeper struct{ yield func() } // immutable

// Keep makes a keeper, until Unkeep. When the device has no room for a registration, yield is called, which is to put
// the entries that are not needed now: by the thread that registers, without a lock of the cache, also at once, and
// still once after Unkeep.
func (c *Cache) Keep(yield func()) *Keeper {
	k := &Keeper{yield}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keepers = append(c.keepers, k)
	return k
}

// Unkeep ends a keeper. nil is none.
func (c *Cache) Unkeep(k *Keeper) {
	if k == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := slices.Index(c.keepers, k); at >= 0 {
		c.keepers = slices.Delete(c.keepers, at, at+1)
	}
}

// ask has all keepers yield. False: there are none.
func (c *Cache) ask() bool {
	c.mu.Lock()
	keepers := slices.Clone(c.keepers)
	c.mu.Unlock()
	for _, k := range keepers {
		k.yield()
	}
	return len(keepers) != 0
}

// Still reports whether an entry in use stands for the pages of its memory now, without a lock or a system call, if the
// memory has not been unmapped since the entry was got: that may not have been seen yet. False: Get finds out.
func (c *Cache) Still(e *Entry) bool {
	since := e.since.Load()
	return since != notKept && c.cfg.Watch.Quiet(since)
}
