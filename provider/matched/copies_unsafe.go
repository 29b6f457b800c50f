package matched

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
)

// copies are buffers that the device reads. A send that is longer than what the device takes with its command, and no
// longer than a buffer, goes from a copy: a registration, also one that is kept, costs more.
type copies struct {
	memory hw.Memory // of all buffers, nil: there are none. Immutable from open to close, as the next two
	first  unsafe.Pointer
	placed hw.Placed // of memory, where the device says
	free   []uint16  // numbers of buffers, from 1. Guarded by the table's lock; its capacity is their number
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
	if p, ok := m.(hw.Placer); ok {
		c.placed = p.Place()
	}
	for n := copyCount; n > 0; n-- {
		c.free = append(c.free, uint16(n))
	}
}

// take gives out a buffer for a message of length bytes, 0: there is none. The caller has the table's lock.
func (c *copies) take(length uint64) (n uint16) {
	if last := len(c.free) - 1; length <= copyBytes && last >= 0 {
		n, c.free = c.free[last], c.free[:last]
	}
	return n
}

// fill copies a message at an address into a buffer, and returns where it is from the first buffer on.
func (c *copies) fill(n uint16, addr, length uint64) (offset uintptr) {
	offset = uintptr(n-1) * copyBytes
	copy(unsafe.Slice((*byte)(unsafe.Add(c.first, offset)), length), bytesAt(addr, length))
	return offset
}

// segment names the copy for the device.
func (c *copies) segment(n uint16, addr, length uint64) hw.Segment {
	return hw.Segment{Addr: unsafe.Add(c.first, c.fill(n, addr, length)), Len: int(length), Memory: c.memory}
}

// put gives a buffer back, which the device is done with; 0: none. The caller has the table's lock.
func (c *copies) put(n uint16) {
	if n != 0 {
		c.free = c.free[:len(c.free)+1]
		c.free[len(c.free)-1] = n
	}
}

// close gives the memory back, once the device is done with it.
func (c *copies) close() error {
	if c.memory == nil {
		return nil
	}
	return c.memory.Close()
}
