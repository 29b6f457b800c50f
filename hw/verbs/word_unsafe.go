package verbs

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

// atomic performs an operation on a word of a region with this CPU. False: the
// word is not in the region, the region is closed, or without the right.
func (m *Memory) atomic(op hw.AtomicOp, size int, addr, operand, compare uint64) (old uint64, ok bool) {
	if m == nil {
		return 0, false
	}
	m.mu.RLock()
	defer m.mu.RUnlock()
	n := uint64(m.region.Len)
	if m.closed || m.region.Access&hw.RemoteAtomic == 0 || addr < m.addr || addr-m.addr > n || uint64(size) > n-(addr-m.addr) {
		return 0, false
	}
	p := unsafe.Add(m.region.Addr, addr-m.addr)
	if size == 4 {
		w := (*atomic.Uint32)(p)
		for {
			v := w.Load()
			if w.CompareAndSwap(v, uint32(applyOp(op, uint64(v), uint64(uint32(operand)), uint64(uint32(compare))))) {
				return uint64(v), true
			}
		}
	}
	w := (*atomic.Uint64)(p)
	for {
		v := w.Load()
		if w.CompareAndSwap(v, applyOp(op, v, operand, compare)) {
			return v, true
		}
	}
}
