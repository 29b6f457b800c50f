package hmem

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/regcache"
)

// Allocations are allocations of devices that other devices may reach, by dma-bufs. It implements regcache.Allocations.
type Allocations struct{}

// At returns the allocation that n bytes at an address lie in.
func (Allocations) At(addr, n uint64) (a regcache.Allocation, err error) {
	if isDMABuf(addr) {
		dmabufs.RLock()
		defer dmabufs.RUnlock()
		b := findDMABuf(addr, n)
		if b == nil {
			return a, errClosedRegion
		}
		return regcache.Allocation{Base: b.start, Size: b.size, Number: b.number}, nil
	}
	if a.Base, a.Size, err = cuda.Allocation(addr); err != nil {
		return a, err
	}
	if at := addr - a.Base; at > a.Size || n > a.Size-at {
		return a, fmt.Errorf("%d bytes at %d of an allocation of %d", n, at, a.Size)
	}
	a.Number, err = cuda.Buffer(addr)
	return a, err
}

// Number is that of the memory at an address now. False: there is none.
func (Allocations) Number(addr uint64) (uint64, bool) {
	if isDMABuf(addr) {
		dmabufs.RLock()
		defer dmabufs.RUnlock()
		b := findDMABuf(addr, 0)
		if b == nil {
			return 0, false
		}
		return b.number, true
	}
	n, err := cuda.Buffer(addr)
	return n, err == nil
}

// Export returns a dma-buf of an allocation. The caller closes its descriptor. It fails for memory that has gone, and
// where the driver exports none.
func (Allocations) Export(a regcache.Allocation) (d hw.DMABuf, err error) {
	if !isDMABuf(a.Base) {
		d.At = cuda.Pointer(a.Base)
		d.FD, d.Offset, err = cuda.DMABuf(a.Base, a.Size)
		return d, err
	}
	dmabufs.RLock()
	defer dmabufs.RUnlock()
	b := findDMABuf(a.Base, a.Size)
	if b == nil || b.number != a.Number {
		return d, errClosedRegion
	}
	d.At = a.Base &^ dmabufMark
	d.FD, err = unix.FcntlInt(uintptr(b.mapping.FD()), unix.F_DUPFD_CLOEXEC, 0)
	return d, err
}

// InDMABuf returns where the region, which is one part of a device's memory, is in a dma-buf. The caller closes its
// descriptor. It fails for memory that was freed under the region, and where the driver exports none.
func (r *Region) InDMABuf() (d hw.DMABuf, err error) {
	at, n := uint64(r.Parts[0].Base), r.Parts[0].Len
	a, err := Allocations{}.At(at, n)
	if err != nil {
		return d, err
	}
	if s := r.Shares[0]; s.Buffer() != 0 && s.Buffer() != a.Number {
		return d, fmt.Errorf("memory %d was freed, and %d is there", s.Buffer(), a.Number)
	}
	d, err = Allocations{}.Export(a)
	d.Offset += at - a.Base
	d.At += at - a.Base
	return d, err
}
