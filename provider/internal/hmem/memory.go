package hmem

import (
	"fmt"
	"slices"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cuda"
)

// Region is the memory of a registered region. Immutable until Leave.
type Region struct {
	// Parts is where the memory is: addresses that the copies of this package take.
	Parts []fi.IOVec
	// Named is what the application calls it, part by part; nil: by Parts.
	Named []fi.IOVec
	// DMABuf is the dma-buf that it is, nil: it is none.
	DMABuf *DMABuf
	// Shares are the allocations that other processes may map.
	Shares []*Share
}

// EnterRegion takes in the memory that attr has with the flags of a registration; with writable something stores there.
// limit is how long other processes have to give up a mapping. Errors wrap fi.EINVAL for memory that is not of the
// kind, fi.ENOSYS for a kind that is not known or that this host does not have, and those of [Register].
func EnterRegion(attr *fi.MRAttr, flags uint64, writable bool, limit time.Duration) (Region, error) {
	if flags&fi.MRDMABuf != 0 {
		return enterDMABuf(attr, writable, limit)
	}
	r := Region{Parts: slices.Clone(attr.IOV)}
	switch attr.Iface {
	case fi.HMEMSystem:
		if flags&(fi.HMEMDeviceOnly|fi.HMEMHostAlloc) != 0 {
			return r, fmt.Errorf("flags %#x for memory of the process itself: %w", flags, fi.EINVAL)
		}
		return r, nil
	case fi.HMEMCUDA:
		if err := cuda.Load(); err != nil {
			return r, fmt.Errorf("%w: %w", err, fi.ENOSYS)
		}
		if flags&fi.HMEMHostAlloc != 0 {
			return r, nil // the processor reads and writes it
		}
		return r, r.enterCUDA(int(int32(attr.Device)), limit)
	}
	return r, fmt.Errorf("memory interface %d: %w", attr.Iface, fi.ENOSYS)
}

func enterDMABuf(attr *fi.MRAttr, writable bool, limit time.Duration) (Region, error) {
	if len(attr.IOV) > 1 {
		return Region{}, fmt.Errorf("%d dma-bufs, one is possible: %w", len(attr.IOV), fi.EINVAL)
	}
	b, part, err := Register(attr.DMABuf, writable)
	if err != nil {
		return Region{}, err
	}
	return Region{
		Parts:  []fi.IOVec{part},
		Named:  []fi.IOVec{{Base: attr.DMABuf.Base + uintptr(attr.DMABuf.Offset), Len: part.Len}},
		DMABuf: b,
		Shares: []*Share{b.Share(limit)},
	}, nil
}

func (r *Region) enterCUDA(device int, limit time.Duration) error {
	parts := slices.Clone(r.Parts)
	special := false
	for i, v := range parts {
		addr, err := cuda.Register(uint64(v.Base), v.Len, device)
		if err != nil {
			r.Leave(limit)
			return fmt.Errorf("%d bytes at %#x: %w: %w", v.Len, v.Base, err, fi.EINVAL)
		}
		parts[i].Base = uintptr(addr)
		if !OnDevice(addr) {
			continue
		}
		special = true
		base, size, err := cuda.Allocation(addr)
		if err != nil {
			r.Leave(limit)
			return fmt.Errorf("%d bytes at %#x: %w: %w", v.Len, v.Base, err, fi.EINVAL)
		}
		buffer, err := cuda.Buffer(addr)
		if err != nil {
			r.Leave(limit)
			return fmt.Errorf("%d bytes at %#x: %w: %w", v.Len, v.Base, err, fi.EINVAL)
		}
		r.Shares = append(r.Shares, Enter(base, size, buffer, limit))
	}
	if special {
		r.Parts, r.Named = parts, r.Parts
	}
	return nil
}

// App is what the application calls the memory.
func (r *Region) App() []fi.IOVec {
	if r.Named != nil {
		return r.Named
	}
	return r.Parts
}

// Translate returns where n bytes of memory with names of their own lie that the application calls addr.
func (r *Region) Translate(addr, n uint64) (uint64, bool) {
	for i, v := range r.Named {
		if at := addr - uint64(v.Base); at <= v.Len && n <= v.Len-at {
			return uint64(r.Parts[i].Base) + at, true
		}
	}
	return 0, false
}

// Leave takes the memory out. When it returns no other process has it mapped, or the limit is over.
func (r *Region) Leave(limit time.Duration) {
	if len(r.Shares) != 0 {
		leave(r.Shares, limit)
	}
	r.Shares = nil
	if r.DMABuf != nil {
		r.DMABuf.Close()
	}
}
