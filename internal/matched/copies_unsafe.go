package matched

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
)

// copies are buffers that the device reads, numbered from 1: stripes of the table have those that are free. A send that
// is longer than what the device takes with its command, and no longer than a buffer, goes from a copy: a registration,
// also one that is kept, costs more.
type copies struct {
	memory hw.Memory // of all buffers, nil: there are none. Immutable from open to close, as the next two
	first  unsafe.Pointer
	placed hw.Placed // of memory, where the device says
}

const (
	copyBytes = 2048
	copyCount = 256
)

// open allocates the buffers from a memory domain, for the stripes of a table. Where it has no room there are none.
func (c *copies) open(d hw.MemoryDomain, t *table) {
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
	each := copyCount / len(t.stripes)
	for k := range t.stripes {
		t.stripes[k].copies.Open(uint32(k*each+1), uint32(each))
	}
}

// fill copies a message at an address into a buffer, and returns where it is from the first buffer on.
func (c *copies) fill(n uint16, addr, length uint64) (offset uintptr) {
	offset = uintptr(n-1) * copyBytes
	copy(unsafe.Slice((*byte)(unsafe.Add(c.first, offset)), length), mem.Bytes(addr, length))
	return offset
}

// segment names the copy for the device.
func (c *copies) segment(n uint16, addr, length uint64) hw.Segment {
	return hw.Segment{Addr: unsafe.Add(c.first, c.fill(n, addr, length)), Len: int(length), Memory: c.memory}
}

// close gives the memory back, once the device is done with it.
func (c *copies) close() error {
	if c.memory == nil {
		return nil
	}
	return c.memory.Close()
}
