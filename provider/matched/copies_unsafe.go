package matched

import (
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
)

// copies are buffers that the device reads. A send that is longer than what the device takes with its command, and no
// longer than a buffer, goes from a copy: a registration, also one that is kept, costs more.
type copies struct {
	mu     sync.Mutex // guards free
	memory hw.Memory  // of all buffers, nil: there are none. Immutable from open to close
	first  unsafe.Pointer
	free   []uint16 // numbers of buffers, from 1
}

const (
	copyBytes = 2048
	copyCount = 256
)

// open allocates the buffers from a memory domain. Where it has no room there are none.
func (c *copies) open(d hw.MemoryDomain) {
	if d == nil {
		return
	}
	m, err := d.Alloc(hw.Region{Len: copyCount * copyBytes})
	if err != nil {
		log.Warnf(log.EPCtrl, "sends are not copied: %v", err)
		return
	}
	c.memory, c.first = m, m.Region().Addr
	for n := copyCount; n > 0; n-- {
		c.free = append(c.free, uint16(n))
	}
}

// take copies a message of length bytes at an address into a buffer. 0: there is none for it.
func (c *copies) take(addr, length uint64) (n uint16, at hw.Segment) {
	if length > copyBytes {
		return 0, hw.Segment{}
	}
	c.mu.Lock()
	if len(c.free) > 0 {
		n = c.free[len(c.free)-1]
		c.free = c.free[:len(c.free)-1]
	}
	c.mu.Unlock()
	if n == 0 {
		return 0, hw.Segment{}
	}
	at = hw.Segment{Addr: unsafe.Add(c.first, int(n-1)*copyBytes), Len: int(length), Memory: c.memory}
	copy(unsafe.Slice((*byte)(at.Addr), length), bytesAt(addr, length))
	return n, at
}

// put gives a buffer back, which the device is done with; 0: none.
func (c *copies) put(n uint16) {
	if n == 0 {
		return
	}
	c.mu.Lock()
	c.free = append(c.free, n)
	c.mu.Unlock()
}

// close gives the memory back, once the device is done with it.
func (c *copies) close() error {
	if c.memory == nil {
		return nil
	}
	return c.memory.Close()
}
