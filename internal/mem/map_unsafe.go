package mem

import (
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Flags choose how Map maps.
type Flags uint

const (
	// NoReserve asks the kernel not to set aside swap or commit space for the mapping (MAP_NORESERVE), for
	// mappings that are made large and used in part.
	NoReserve Flags = 1 << iota
	// Huge aligns the mapping to HugeSize and asks for huge pages there (MADV_HUGEPAGE). Without it the kernel is
	// asked for small pages only, so that one object does not cost 2 MiB where huge pages are the default.
	Huge

	// noAccess maps address space that may not be accessed.
	noAccess
)

// HugeSize is the size in bytes of the huge pages that Huge asks for, and what it aligns mappings to.
const HugeSize = 2 << 20

// ErrSize is returned, wrapped, when a size is not positive or is more than an address space holds.
var ErrSize = errors.New("size out of range")

var pageSize = os.Getpagesize()

// maxMap bounds one mapping: half of the user addresses of the smallest address space weft runs on (39 bits).
const maxMap = 1 << 38

// fault is what InjectFaults set, or nil. Tests write it, Map reads it; both atomically, because a test may map from
// several threads.
var fault atomic.Pointer[func(bytes int) error]

// InjectFaults makes every Map in the process ask f first, and fail with the error f returns if it is not nil. It is
// for tests of what happens when memory is exhausted; restore undoes it.
func InjectFaults(f func(bytes int) error) (restore func()) {
	fault.Store(&f)
	return func() { fault.Store(nil) }
}

// fenced says that Fence holds. Written by tests, read by Unmap, in any thread; sequentially consistent.
var fenced atomic.Bool

// Fence makes every Unmap in the process leave the addresses taken and inaccessible until restore is called, so that
// a use of the memory afterwards faults, and does not write to what would have been mapped there since. It is for
// tests.
func Fence() (restore func()) {
	fenced.Store(true)
	return func() { fenced.Store(false) }
}

// Round returns n rounded up to whole pages. n must not be negative.
func Round(n int) int { return (n + pageSize - 1) &^ (pageSize - 1) }

// Map returns n bytes, rounded up to whole pages, of zeroed private memory that is not on the Go heap. The caller
// hands the same slice to Unmap. The error wraps ErrSize, or the errno of mmap (ENOMEM when memory or the number of
// mappings is exhausted).
func Map(n int, flags Flags) ([]byte, error) {
	align := pageSize
	if flags&Huge != 0 {
		align = max(align, HugeSize)
	}
	return mapAligned(n, align, flags)
}

// mapAligned is Map with an address that is a multiple of align, a power of two of at least a page.
func mapAligned(n, align int, flags Flags) ([]byte, error) {
	if n <= 0 || n > maxMap {
		return nil, fmt.Errorf("map %d bytes: %w", n, ErrSize)
	}
	if f := fault.Load(); f != nil {
		if err := (*f)(n); err != nil {
			return nil, fmt.Errorf("map %d bytes: %w", n, err)
		}
	}
	n = Round(n)
	span := n + align - pageSize // room to move the start to a multiple of align
	mode := unix.MAP_PRIVATE | unix.MAP_ANON
	if flags&NoReserve != 0 {
		mode |= unix.MAP_NORESERVE
	}
	access := unix.PROT_READ | unix.PROT_WRITE
	if flags&noAccess != 0 {
		access = unix.PROT_NONE
	}
	p, err := unix.MmapPtr(-1, 0, nil, uintptr(span), access, mode)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", n, err)
	}
	lead := int(-uintptr(p) & uintptr(align-1))
	whole := unsafe.Slice((*byte)(p), span)
	b := whole[lead : lead+n : lead+n]
	if err := trim(whole, lead, lead+n); err != nil {
		return nil, fmt.Errorf("map %d bytes: align: %w", n, errors.Join(err, Unmap(whole)))
	}
	// Advice is a wish: a kernel built without huge pages refuses it, and the memory is as good.
	advice := unix.MADV_NOHUGEPAGE
	if flags&Huge != 0 {
		advice = unix.MADV_HUGEPAGE
	}
	_ = unix.Madvise(b, advice)
	return b, nil
}

// trim unmaps what lies outside [from, to) of a fresh mapping.
func trim(whole []byte, from, to int) error {
	if from > 0 {
		if err := Unmap(whole[:from:from]); err != nil {
			return err
		}
	}
	if to < len(whole) {
		return Unmap(whole[to:])
	}
	return nil
}

// Unmap gives memory from Map, or mapped otherwise, back to the kernel. No pointer into it may be used afterwards.
func Unmap(b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if fenced.Load() {
		if err := unix.Mprotect(b, unix.PROT_NONE); err != nil {
			return fmt.Errorf("fence %d bytes: %w", len(b), err)
		}
		return nil
	}
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b))); err != nil {
		return fmt.Errorf("unmap %d bytes: %w", len(b), err)
	}
	return nil
}

// Bytes views n bytes of off-heap memory at addr, as returned by Pool.Get, as a slice. It is valid until the memory
// is put back or unmapped. It must not be used for addresses of Go memory.
func Bytes[N int | uint64](addr uint64, n N) []byte {
	return unsafe.Slice((*byte)(Pointer(addr)), n)
}

// Address is where a slice that is not empty begins. The caller keeps it alive, and in place: memory of the Go heap
// does not move.
func Address(b []byte) uint64 { return uint64(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) }

// Pointer turns the address of off-heap or C memory into a pointer. The detour through memory shows vet that this is no
// arithmetic on a Go pointer. It must not be used for addresses of Go memory that nothing else keeps alive.
func Pointer(addr uint64) unsafe.Pointer {
	u := uintptr(addr)
	return *(*unsafe.Pointer)(unsafe.Pointer(&u))
}
