package rkey

import (
	"sync"

	"github.com/weft-fabric/weft/hw"
)

// Table has the regions of messages that are exposed, by request. The zero value is ready; any thread may use it. The
// lock is not on the path of messages on this host; a message to another one that takes it costs several system calls.
type Table struct {
	mu   sync.Mutex
	list map[uint64][]hw.Memory
}

// Add enters the regions of a request.
func (x *Table) Add(id uint64, regions []hw.Memory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.list == nil {
		x.list = map[uint64][]hw.Memory{}
	}
	x.list[id] = regions
}

// Remove takes out the regions of a request.
func (x *Table) Remove(id uint64) []hw.Memory {
	x.mu.Lock()
	defer x.mu.Unlock()
	regions := x.list[id]
	delete(x.list, id)
	return regions
}

// Of returns the regions of a request.
func (x *Table) Of(id uint64) []hw.Memory {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.list[id]
}

// Clear takes out all regions.
func (x *Table) Clear() (list []hw.Memory) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, regions := range x.list {
		list = append(list, regions...)
	}
	x.list = nil
	return list
}

// Any reports whether there is one.
func (x *Table) Any() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.list) != 0
}
