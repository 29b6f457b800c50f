package rkey

import (
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/regcache"
	"github.com/weft-fabric/weft/provider/internal/hmem"
)

// Local is memory of this side that a device knows, from [Device.Use] to [Device.Leave]. The zero value is none.
type Local struct {
	addr, n uint64
	memory  hw.Memory
	entry   *regcache.Entry  // of memory of this process, where registrations are kept
	buffer  *regcache.Buffer // of another device's
	owner   *regcache.Owner  // of the entry, nil: none
	part    bool             // of another Local, which has the registration
}

// Use has the device know n bytes at an address of any kind, until Leave. Errors as of hw.MemoryDomain, and those of
// regcache.Buffers for memory of another device.
func (d Device) Use(addr, n uint64, access hw.Access) (l Local, err error) {
	l.addr, l.n = addr, n
	at := *(*unsafe.Pointer)(unsafe.Pointer(&addr)) // memory that the caller names by its address
	switch {
	case hmem.OnDevice(addr):
		if d.Cache == nil || d.Cache.Buffers() == nil {
			return l, hw.ErrNoDMABuf
		}
		if l.buffer, err = d.Cache.Buffers().Get(addr, n, access); err == nil {
			l.memory = l.buffer.Memory()
		}
	case d.Cache != nil:
		if l.entry, err = d.Cache.Get(at, int(n), access); err == nil {
			l.memory = l.entry.Memory()
		}
	default:
		l.memory, err = d.Domain.Register(hw.Region{Addr: at, Len: int(n), Access: access})
	}
	return l, err
}

// Leave ends a Use that succeeded.
func (d Device) Leave(l *Local) {
	switch {
	case l.part:
	case l.buffer != nil:
		d.Cache.Buffers().Put(l.buffer)
	case l.entry != nil:
		d.Cache.Unkeep(l.owner)
		d.Cache.Put(l.entry)
	case l.memory != nil:
		_ = l.memory.Close()
	}
	*l = Local{}
}

// Still reports whether the device knows the memory as it is now, which has not been unmapped since Use: without a lock
// or a system call. False: another Use finds out.
func (d Device) Still(l *Local) bool { return l.entry != nil && !l.part && d.Cache.Still(l.entry) }

// Keep has yield called when the device has no room for other memory, until Leave, and maybe once behind it: it is to
// call that if no operation uses the memory. The caller alone has the Local. See [regcache.Cache.Keep].
func (d Device) Keep(l *Local, yield func()) {
	if l.entry != nil && !l.part && l.owner == nil {
		l.owner = d.Cache.Keep(yield)
	}
}

// Part is n bytes at an address, which the memory has: it is registered as long as the memory is.
func (l *Local) Part(addr, n uint64) Local {
	return Local{addr: addr, n: n, memory: l.memory, part: true}
}

// Memory is the registration as the transport knows it.
func (l *Local) Memory() hw.Memory { return l.memory }

// Has reports whether n bytes at an address are part of the memory.
func (l *Local) Has(addr, n uint64) bool {
	return l.memory != nil && addr-l.addr <= l.n && n <= l.n-(addr-l.addr)
}
