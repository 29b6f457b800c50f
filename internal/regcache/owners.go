package regcache

import "slices"

// Owners that use an entry again and again keep it in use between two of their operations, to take no lock. They do so
// as long as the device has room for other registrations.

// Owner is one that keeps entries of a cache in use at times at which it has no operation that uses them.
type Owner struct{ yield func() } // immutable

// Keep makes an owner, until Unkeep. When the device has no room for a registration, yield is called, which is to put
// the entries that are not needed now: by the thread that registers, without a lock of the cache, also at once, and
// still once after Unkeep.
func (c *Cache) Keep(yield func()) *Owner {
	k := &Owner{yield}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.owners = append(c.owners, k)
	return k
}

// Unkeep ends an owner. nil is none.
func (c *Cache) Unkeep(k *Owner) {
	if k == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := slices.Index(c.owners, k); at >= 0 {
		c.owners = slices.Delete(c.owners, at, at+1)
	}
}

// ask has all owners yield. False: there are none.
func (c *Cache) ask() bool {
	c.mu.Lock()
	owners := slices.Clone(c.owners)
	c.mu.Unlock()
	for _, k := range owners {
		k.yield()
	}
	return len(owners) != 0
}

// Still reports whether an entry in use stands for the pages of its memory now, without a lock or a system call, if the
// memory has not been unmapped since the entry was got: that may not have been seen yet. False: Get finds out.
func (c *Cache) Still(e *Entry) bool {
	since := e.since.Load()
	return since != notKept && c.cfg.Watch.Quiet(since)
}
