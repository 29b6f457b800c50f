package hmem

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dmabuf"
	"github.com/weft-fabric/weft/internal/mem"
)

// dmabufMark is set in addresses of mapped dma-bufs.
const dmabufMark = 0x7f << 57

func isDMABuf(addr uint64) bool { return addr&dmabufMark == dmabufMark }

// DMABuf is a registered dma-buf. Immutable.
type DMABuf struct {
	start, size uint64 // with dmabufMark; bytes
	app         uint64 // what the application calls the first byte
	number      uint64 // that of no other
	mapping     *dmabuf.Mapping
}

// dmabufs are the registered ones, by start. The lock is taken for reading by
// each copy, so that closing a region waits for those under way; nothing but
// copies of dma-bufs takes it on the data path.
var dmabufs struct {
	sync.RWMutex
	list []*DMABuf
	last uint64 // number
}

// findDMABuf returns the registered dma-buf that has n bytes at addr. The
// caller holds the lock.
func findDMABuf(addr, n uint64) *DMABuf {
	i, exact := slices.BinarySearchFunc(dmabufs.list, addr, func(b *DMABuf, a uint64) int {
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
	if i < 0 || addr-dmabufs.list[i].start > dmabufs.list[i].size ||
		n > dmabufs.list[i].size-(addr-dmabufs.list[i].start) {
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

// Register maps a dma-buf and returns where its registered range lies. Errors: fi.EINVAL for a range that is empty or
// not in the dma-buf, or a descriptor of something else; what the kernel refuses it with.
func Register(d *fi.DMABuf, writable bool) (*DMABuf, fi.IOVec, error) {
	mapping, err := dmabuf.Map(d.FD, writable)
	if err != nil {
		return nil, fi.IOVec{}, dmabufError(err)
	}
	size := uint64(len(mapping.Bytes()))
	if d.Len == 0 || d.Offset > size || d.Len > size-d.Offset {
		_ = mapping.Close()
		return nil, fi.IOVec{}, fmt.Errorf("%d bytes from %d of a dma-buf of %d: %w", d.Len, d.Offset, size, fi.EINVAL)
	}
	b := &DMABuf{start: dmabufMark | mem.Address(mapping.Bytes()), size: size, app: uint64(d.Base), mapping: mapping}
	dmabufs.Lock()
	defer dmabufs.Unlock()
	dmabufs.last++
	b.number = dmabufs.last
	i, _ := slices.BinarySearchFunc(dmabufs.list, b, func(a, b *DMABuf) int {
		if a.start < b.start {
			return -1
		}
		return 1
	})
	dmabufs.list = slices.Insert(dmabufs.list, i, b)
	return b, fi.IOVec{Base: uintptr(b.start + d.Offset), Len: d.Len}, nil
}

// dmabufError gives a refusal the errno that fits.
func dmabufError(err error) error {
	if errors.Is(err, dmabuf.ErrNotDMABuf) {
		return fmt.Errorf("%w: %w", err, fi.EINVAL)
	}
	if errno := unix.Errno(0); errors.As(err, &errno) {
		return fmt.Errorf("%w: %w", err, fi.Errno(errno))
	}
	return err
}

// Close undoes Register; it waits for copies under way.
func (b *DMABuf) Close() {
	dmabufs.Lock()
	dmabufs.list = slices.DeleteFunc(dmabufs.list, func(o *DMABuf) bool { return o == b })
	dmabufs.Unlock()
	_ = b.mapping.Close()
}

// Share counts a region in the dma-buf, as [Enter] does.
func (b *DMABuf) Share(limit time.Duration) *Share {
	return enter(b.start, b.size, 0, b.mapping, limit)
}
