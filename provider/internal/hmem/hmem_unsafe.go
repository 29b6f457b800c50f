package hmem

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/atomics"
)

// OnDevice reports whether an address is of memory of a device.
func OnDevice(addr uint64) bool { return int64(addr) < 0 }

// Nowhere reports whether no memory can be at an element, which has bytes: it is in the first page, as what a nil
// pointer leads to.
func Nowhere(v fi.IOVec) bool { return v.Base < 4096 && v.Len != 0 }

// touchMost is how many bytes of an element Touch reads at most: longer ones are not copied when they are posted.
const touchMost = 64 << 10

// Touch reads the host memory of a vector that is to be copied: a fault at it, which a Go program may recover from,
// comes before room is claimed that only a copy fills.
func Touch(iov []fi.IOVec) {
	for i := range iov {
		if v := &iov[i]; !OnDevice(uint64(v.Base)) {
			TouchOne(v)
		}
	}
}

// TouchOne is Touch of an element that is in host memory.
func TouchOne(v *fi.IOVec) {
	if v.Len <= touchMost {
		mem.Touch(v.Base, v.Len)
	}
}

// AnyOnDevice reports whether a part of a vector is memory of a device.
func AnyOnDevice(iov []fi.IOVec) bool {
	for i := range iov {
		if OnDevice(uint64(iov[i].Base)) {
			return true
		}
	}
	return false
}

// Store copies bytes to an address of any kind. It fails only for memory of devices.
func Store(addr uint64, from []byte) error {
	switch {
	case len(from) == 0:
		return nil
	case !OnDevice(addr):
		copy(mem.Bytes(addr, uint64(len(from))), from)
		return nil
	case isDMABuf(addr):
		return accessDMABuf(addr, uint64(len(from)), true, func(b []byte) error { copy(b, from); return nil })
	}
	return cuda.Copy(addr, mem.Address(from), uint64(len(from)))
}

// Load copies bytes from an address of any kind. It fails only for memory of devices.
func Load(to []byte, addr uint64) error {
	switch {
	case len(to) == 0:
		return nil
	case !OnDevice(addr):
		copy(to, mem.Bytes(addr, uint64(len(to))))
		return nil
	case isDMABuf(addr):
		return accessDMABuf(addr, uint64(len(to)), false, func(b []byte) error { copy(to, b); return nil })
	}
	return cuda.Copy(mem.Address(to), addr, uint64(len(to)))
}

// Copy copies between addresses of any kind, or begins to in the batch.
func Copy(batch *cuda.Batch, dst, src, n uint64) error {
	switch {
	case n == 0:
		return nil
	case isDMABuf(dst) && isDMABuf(src):
		return copyDMABufs(dst, src, n)
	case isDMABuf(dst):
		return accessDMABuf(dst, n, true, func(b []byte) error { return Load(b, src) })
	case isDMABuf(src):
		return accessDMABuf(src, n, false, func(b []byte) error { return Store(dst, b) })
	case OnDevice(dst) || OnDevice(src):
		return batch.Copy(dst, src, n)
	}
	copy(mem.Bytes(dst, n), mem.Bytes(src, n))
	return nil
}

// copyDMABufs copies from one registered dma-buf to another.
func copyDMABufs(dst, src, n uint64) error {
	dmabufs.RLock()
	defer dmabufs.RUnlock()
	to, from := findDMABuf(dst, n), findDMABuf(src, n)
	if to == nil || from == nil {
		return errClosedRegion
	}
	var inner error
	err := to.mapping.Access(true, func() {
		inner = from.mapping.Access(false, func() {
			copy(to.mapping.Bytes()[dst-to.start:][:n], from.mapping.Bytes()[src-from.start:][:n])
		})
	})
	return errors.Join(err, inner)
}

// AppAddress is what the application calls an address.
func AppAddress(addr uint64) uint64 {
	if !isDMABuf(addr) {
		return cuda.Pointer(addr)
	}
	dmabufs.RLock()
	defer dmabufs.RUnlock()
	if b := findDMABuf(addr, 0); b != nil {
		return b.app + (addr - b.start)
	}
	return 0
}

// deviceAtomics makes atomic operations on memory of GPUs atomic with each
// other in this process: such memory is read, changed here, and written back.
// Taken by nothing else.
var deviceAtomics sync.Mutex

// apply performs a job whose target is n bytes at an address of any kind. It fails only for memory of devices.
func apply(j *atomics.Job, addr, n uint64) error {
	switch {
	case !OnDevice(addr):
		atomics.Apply(j)
		return nil
	case isDMABuf(addr):
		return accessDMABuf(addr, n, true, func(b []byte) error {
			j.Target = unsafe.Pointer(unsafe.SliceData(b))
			atomics.Apply(j)
			return nil
		})
	}
	deviceAtomics.Lock()
	defer deviceAtomics.Unlock()
	words := make([]complex128, (n+15)/16) // aligned for every datatype
	b := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), n)
	if err := Load(b, addr); err != nil {
		return err
	}
	j.Target = unsafe.Pointer(unsafe.SliceData(b))
	atomics.Apply(j)
	if j.Op == fi.OpRead {
		return nil
	}
	return Store(addr, b)
}

// ApplyAll performs a job on memory in pieces of any kind, which its operands, comparands and results go through in
// their order; it sets the job's target and count. Errors: fi.EINVAL, and nothing is done, for a piece that does not
// begin or end with an element, fi.EIO for a device that fails.
func ApplyAll(j *atomics.Job, pieces []fi.IOVec) error {
	size := uint64(j.Datatype.Size())
	for _, v := range pieces {
		if v.Len%size != 0 || uint64(v.Base)%uint64(atomics.Align(j.Datatype)) != 0 {
			return fmt.Errorf("%d bytes at %#x are out of alignment: %w", v.Len, v.Base, fi.EINVAL)
		}
	}
	for i, v := range pieces {
		j.Target, j.Count = mem.Pointer(uint64(v.Base)), int(v.Len/size)
		if err := apply(j, uint64(v.Base), v.Len); err != nil {
			return fmt.Errorf("memory of a device: %w: %w", err, fi.EIO)
		}
		if i+1 == len(pieces) {
			break // no pointer leads behind what it was given for
		}
		for _, p := range []*unsafe.Pointer{&j.Result, &j.Operand, &j.Compare} {
			if *p != nil {
				*p = unsafe.Add(*p, v.Len)
			}
		}
	}
	return nil
}
