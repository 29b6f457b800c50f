package cq

import (
	"structs"
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// record is an error's part beyond its completion, off the Go heap: what C
// knows, then the data.
type record struct {
	_ structs.HostLayout
	hot.CQError
	n    uint32
	data [MaxErrData]byte
}

// Two cache lines: MaxErrData is what is left of them.
const _ = uint(128-unsafe.Sizeof(record{})) + uint(unsafe.Sizeof(record{})-128)

// errorList allocates records. mu: errors are not the data path.
type errorList struct {
	mu   sync.Mutex
	slab *mem.Slab[record]
}

func (l *errorList) open() (err error) {
	l.slab, err = mem.NewSlab[record]()
	return err
}

// keep stores info and returns the error's entry, which names it. Without
// memory for a record the entry keeps the error numbers alone, in Src.
func (l *errorList) keep(e Entry, info *ErrorInfo) Entry {
	if info.ProvErrno == 0 {
		info.ProvErrno = int32(info.Err)
	}
	e.Flags |= hot.CQEError
	l.mu.Lock()
	defer l.mu.Unlock()
	r, _ := l.slab.Alloc()
	if r == nil {
		e.Buf, e.Src = 0, fi.Addr(uint64(uint32(info.Err))<<32|uint64(uint32(info.ProvErrno)))
		return e
	}
	r.CQError = hot.CQError{Buf: e.Buf, OLen: info.OLen, Err: int32(info.Err), ProvErrno: info.ProvErrno, Src: uint64(e.Src)}
	r.n = uint32(copy(r.data[:], info.ErrData))
	e.Buf = uint64(uintptr(unsafe.Pointer(r)))
	return e
}

// take turns an error's entry back into what was kept, copies its data to last
// and frees the record.
func (l *errorList) take(e Entry, last []byte) ErrEntry {
	e.Flags &^= hot.CQEError
	if e.Buf == 0 {
		out := ErrEntry{Entry: e, Err: fi.Errno(e.Src >> 32), ProvErrno: int32(uint32(e.Src))}
		out.Src = fi.AddrNotAvail
		return out
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := recordAt(e.Buf)
	out := ErrEntry{Entry: e, OLen: r.OLen, Err: fi.Errno(r.Err), ProvErrno: r.ProvErrno}
	out.Buf, out.Src = r.Buf, fi.Addr(r.Src)
	if r.n > 0 {
		out.ErrData = last[:copy(last, r.data[:r.n])]
	}
	l.slab.Free(l.slab.Index(r))
	return out
}

// recordAt returns the record at an address that keep has stored. The detour
// through memory shows vet that this is no arithmetic on a Go pointer.
func recordAt(addr uint64) *record {
	p := uintptr(addr)
	return *(**record)(unsafe.Pointer(&p))
}
