package cq

import (
	"structs"
	"sync"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/cqring"
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

// keep stores info and returns the error's entry, which names it. One of which the entry says all has the error
// numbers in Src, and no record; so has one for which there is no memory.
func (l *errorList) keep(e Entry, info *ErrorInfo) Entry {
	if info.ProvErrno == 0 {
		info.ProvErrno = int32(info.Err)
	}
	e.Flags |= hot.CQEError
	brief := fi.Addr(cqring.Brief(int32(info.Err), info.ProvErrno))
	if e.Buf == 0 && e.Src == fi.AddrNotAvail && info.OLen == 0 && len(info.ErrData) == 0 {
		e.Src = brief
		return e
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r, _ := l.slab.Alloc()
	if r == nil {
		e.Buf, e.Src = 0, brief
		return e
	}
	r.CQError = hot.CQError{Buf: e.Buf, OLen: info.OLen, Err: int32(info.Err), ProvErrno: info.ProvErrno,
		Src: uint64(e.Src)}
	r.n = uint32(copy(r.data[:], info.ErrData))
	e.Buf = uint64(uintptr(unsafe.Pointer(r)))
	return e
}

// take turns an error's entry back into what was kept, copies its data to data, as many as it has room for, and frees
// the record.
func (l *errorList) take(e Entry, data []byte) ErrEntry {
	e.Flags &^= hot.CQEError
	if e.Buf == 0 {
		err, provErrno := cqring.OfBrief(uint64(e.Src))
		out := ErrEntry{Entry: e, Err: fi.Errno(err), ProvErrno: provErrno}
		out.Src = fi.AddrNotAvail
		return out
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r := recordAt(e.Buf)
	out := ErrEntry{Entry: e, OLen: r.OLen, Err: fi.Errno(r.Err), ProvErrno: r.ProvErrno}
	out.Buf, out.Src = r.Buf, fi.Addr(r.Src)
	if r.n > 0 {
		out.ErrData = data[:copy(data, r.data[:r.n])]
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
