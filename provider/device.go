package provider

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/atomics"
)

// Memory that the processor does not simply read and write (FI_HMEM) is known
// by its address alone: bit 63 is set in all addresses of such memory that
// requests, posted receives and regions hold. So nothing that carries an
// address needs a second word, what does not know of devices faults instead
// of reading something else, and the copies of plain memory pay one test of a sign.
//
// Package cuda gives out those of GPUs. A dma-buf is mapped when it is
// registered, and is known by the mapping's address, with bits 57 to 63 set:
// the accesses to it have to be reported to the kernel.
//
// Applications name device memory by a descriptor besides the address;
// [Domain.Translate] makes one of the two.

// dmabufMark is set in addresses of mapped dma-bufs.
const dmabufMark = 0x7f << 57

// onDevice reports whether an address is of memory of a device.
func onDevice(addr uint64) bool { return int64(addr) < 0 }

func isDMABuf(addr uint64) bool { return addr&dmabufMark == dmabufMark }

// anyOnDevice reports whether a part of a vector is memory of a device.
func anyOnDevice(iov []fi.IOVec) bool {
	for i := range iov {
		if onDevice(uint64(iov[i].Base)) {
			return true
		}
	}
	return false
}

// mappedDMABuf is a registered dma-buf.
type mappedDMABuf struct {
	start, size uint64 // with dmabufMark; bytes
	app         uint64 // what the application calls the first byte
	mapping     *dmabuf.Mapping
}

// dmabufs are the registered ones, by start. The lock is held for reading by
// each copy, so that closing a region waits for those under way; nothing but
// copies of dma-bufs takes it on the data path.
var dmabufs struct {
	sync.RWMutex
	list []*mappedDMABuf
}

// findDMABuf returns the registered dma-buf that has n bytes at addr. The
// caller holds the lock.
func findDMABuf(addr, n uint64) *mappedDMABuf {
	i, exact := slices.BinarySearchFunc(dmabufs.list, addr, func(b *mappedDMABuf, a uint64) int {
		switch {
		case b.start < a:
			return -1
		case b.start > a:
			return 1
		}
		return 0
	})
	if !exact {
		i--
	}
	if i < 0 || addr-dmabufs.list[i].start > dmabufs.list[i].size || n > dmabufs.list[i].size-(addr-dmabufs.list[i].start) {
		return nil
	}
	return dmabufs.list[i]
}

var errClosedRegion = errors.New("the memory region is closed")

// accessDMABuf calls f with n bytes at addr. f has no lock of dmabufs to take.
func accessDMABuf(addr, n uint64, write bool, f func(b []byte) error) error {
	dmabufs.RLock()
	defer dmabufs.RUnlock()
	b := findDMABuf(addr, n)
	if b == nil {
		return errClosedRegion
	}
	at := addr - b.start
	var err error
	if e := b.mapping.Access(write, func() { err = f(b.mapping.Bytes()[at : at+n]) }); e != nil {
		return e
	}
	return err
}

// store copies bytes to an address of any kind. It fails only for memory of devices.
func store(addr uint64, from []byte) error {
	switch {
	case len(from) == 0:
		return nil
	case !onDevice(addr):
		copy(bytesAt(addr, uint64(len(from))), from)
		return nil
	case isDMABuf(addr):
		return accessDMABuf(addr, uint64(len(from)), true, func(b []byte) error { copy(b, from); return nil })
	}
	return cuda.Copy(addr, addressOfBytes(from), uint64(len(from)))
}

// load copies bytes from an address of any kind. It fails only for memory of devices.
func load(to []byte, addr uint64) error {
	switch {
	case len(to) == 0:
		return nil
	case !onDevice(addr):
		copy(to, bytesAt(addr, uint64(len(to))))
		return nil
	case isDMABuf(addr):
		return accessDMABuf(addr, uint64(len(to)), false, func(b []byte) error { copy(to, b); return nil })
	}
	return cuda.Copy(addressOfBytes(to), addr, uint64(len(to)))
}

// appAddress is what the application calls an address.
func appAddress(addr uint64) uint64 {
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

// mapDMABuf registers a dma-buf and returns where its registered range lies.
func (m *MR) mapDMABuf(d *fi.DMABuf) (fi.IOVec, error) {
	writable := m.access&(fi.Recv|fi.Read|fi.RemoteWrite) != 0
	mapping, err := dmabuf.Map(d.FD, writable)
	if err != nil {
		return fi.IOVec{}, dmabufError(err)
	}
	size := uint64(len(mapping.Bytes()))
	if d.Len == 0 || d.Offset > size || d.Len > size-d.Offset {
		_ = mapping.Close()
		return fi.IOVec{}, fmt.Errorf("%d bytes from %d of a dma-buf of %d: %w", d.Len, d.Offset, size, fi.EINVAL)
	}
	m.dmabuf = &mappedDMABuf{start: dmabufMark | addressOfBytes(mapping.Bytes()), size: size, app: uint64(d.Base), mapping: mapping}
	dmabufs.Lock()
	defer dmabufs.Unlock()
	i, _ := slices.BinarySearchFunc(dmabufs.list, m.dmabuf, func(a, b *mappedDMABuf) int {
		if a.start < b.start {
			return -1
		}
		return 1
	})
	dmabufs.list = slices.Insert(dmabufs.list, i, m.dmabuf)
	return fi.IOVec{Base: uintptr(m.dmabuf.start + d.Offset), Len: d.Len}, nil
}

// dmabufError gives a refusal the errno that fits.
func dmabufError(err error) error {
	if errors.Is(err, dmabuf.ErrNotDMABuf) {
		return fmt.Errorf("%v: %w", err, fi.EINVAL)
	}
	if errno := unix.Errno(0); errors.As(err, &errno) {
		return fmt.Errorf("%v: %w", err, fi.Errno(errno))
	}
	return err
}

// unmapDMABuf undoes mapDMABuf; it waits for copies under way.
func (m *MR) unmapDMABuf() {
	dmabufs.Lock()
	dmabufs.list = slices.DeleteFunc(dmabufs.list, func(b *mappedDMABuf) bool { return b == m.dmabuf })
	dmabufs.Unlock()
	_ = m.dmabuf.mapping.Close()
}

// descSpecial is set in descriptors of regions of device memory. C reads it
// (WEFT_DESC_SPECIAL in cabi/objects.h); other descriptors mean nothing.
const descSpecial = 1

// Translate makes the addresses of a vector those of the regions that descs
// name, of which there are as many. Descriptors that no region of device memory
// has are passed over. Errors: fi.EINVAL for a region that is closed, or does
// not have the range.
func (d *Domain) Translate(iov []fi.IOVec, descs []uint64) error {
	for i := range iov {
		if i >= len(descs) || descs[i]&descSpecial == 0 {
			continue
		}
		d.regions.specialMu.RLock()
		m := d.regions.special[descs[i]]
		d.regions.specialMu.RUnlock()
		if m == nil {
			return fmt.Errorf("descriptor %#x: %w", descs[i], fi.EINVAL)
		}
		addr, ok := m.translate(uint64(iov[i].Base), iov[i].Len)
		if !ok {
			return fmt.Errorf("%d bytes at %#x are not in the region of the descriptor: %w", iov[i].Len, iov[i].Base, fi.EINVAL)
		}
		iov[i].Base = uintptr(addr)
	}
	return nil
}

// translate returns where n bytes that the application calls addr lie.
func (m *MR) translate(addr, n uint64) (uint64, bool) {
	for i, v := range m.named {
		if at := addr - uint64(v.Base); at <= v.Len && n <= v.Len-at {
			return uint64(m.parts[i].Base) + at, true
		}
	}
	return 0, false
}

// scatterDevice is target.scatter where part of the target is device memory.
func (t *target) scatterDevice(payload []byte) (done uint64, err error) {
	n := min(t.room(), uint64(len(payload)))
	if t.flags&hot.RecvIOV == 0 {
		return n, store(t.buf, payload[:n])
	}
	for _, v := range vectorAt(t.buf, int(t.len)) {
		part := min(v.Len, n-done)
		if e := store(uint64(v.Base), payload[done:done+part]); e != nil {
			err = e
		}
		done += part
	}
	return done, err
}

// storeFailed completes a receive whose message could not be copied to a
// device, and returns the outcome.
func (e *leasedEP) storeFailed(t *target, a *arrived, err error) fi.Errno {
	log.Warnf(log.EPData, "copy %d bytes to a device: %v", a.length, err)
	e.recvError(cq.Entry{
		Context: t.context, Flags: recvKind(t.flags) | t.flags&fi.MultiRecv, Buf: t.buffer(), Data: a.data,
		Tag: a.tag, Src: e.addrOf(a.source),
	}, t.flags, cq.ErrorInfo{Err: fi.EIO})
	return fi.EIO
}

// deviceAtomics makes atomic operations on memory of GPUs atomic with each
// other in this process: such memory is read, changed here, and written back.
// Taken by nothing else.
var deviceAtomics sync.Mutex

// applyAtomic performs a job whose target is n bytes at addr.
func applyAtomic(j *atomics.Job, addr, n uint64) error {
	switch {
	case !onDevice(addr):
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
	if err := load(b, addr); err != nil {
		return err
	}
	j.Target = unsafe.Pointer(unsafe.SliceData(b))
	atomics.Apply(j)
	if j.Op == fi.OpRead {
		return nil
	}
	return store(addr, b)
}
