package loopback

import (
	"errors"
	"fmt"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/loopback/outbound"
	"github.com/weft-fabric/weft/internal/hot"
)

// An operation on pieces is one system call for as many of them as are in a few
// regions. All these are claimed while it lasts, and checked before it.

// pieceRegions is how many regions the pieces of one system call are in at most.
// Their claims are of a table that all peers of the owner share.
const pieceRegions = 4

// pieceRegion is a region that is claimed.
type pieceRegion struct {
	name      uint64
	claim     *hot.Claim
	base, len uint64 // of the addresses by which the owner names it
	shift     uint64 // what is added to make them addresses in its process
}

// MovePieces moves pieces. See [hw.PieceMover].
func (e *Endpoint) MovePieces(p *hw.Pieces, write bool) (uint64, error) {
	if err := e.beginPieces(p); err != nil {
		return 0, err
	}
	defer e.end()
	moved := uint64(0)
	for at := 0; at < p.N; {
		n, bytes, err := e.moveSome(p, at, write)
		moved += bytes
		if err != nil {
			return moved, err
		}
		at += n
	}
	return moved, nil
}

// MovePeer moves pieces by addresses in the peer's process. See [hw.PieceMover].
func (e *Endpoint) MovePeer(p *hw.Pieces, write bool) (uint64, error) {
	if err := e.beginPieces(p); err != nil {
		return 0, err
	}
	defer e.end()
	total := uint64(0)
	for i := range p.N {
		local, remote := &p.Local[i], &p.Remote[i]
		if local.Len != remote.Len || local.Len > maxOneSided-total || remote.Addr+remote.Len < remote.Addr {
			return 0, fmt.Errorf("loopback: a piece of %d bytes at %#x there, %d here: %w",
				remote.Len, remote.Addr, local.Len,
				hw.ErrInvalid)
		}
		total += local.Len
	}
	return e.transferPieces(p, 0, p.N, total, write)
}

// beginPieces is begin for pieces, which it checks the number of.
func (e *Endpoint) beginPieces(p *hw.Pieces) error {
	if p.N < 0 || p.N > hw.MaxPieces {
		return fmt.Errorf("loopback: %d pieces: %w", p.N, hw.ErrInvalid)
	}
	if err := e.begin(); err != nil {
		return err
	}
	if e.iface.cfg.UseCMA == CMANo || e.noCMA.Load() {
		e.end()
		return hw.ErrPermission
	}
	return nil
}

// moveSome moves pieces from one on with one set of claims. It returns how many, and
// the bytes that are moved.
func (e *Endpoint) moveSome(p *hw.Pieces, first int, write bool) (n int, moved uint64, err error) {
	right := uint32(hot.KeyRead)
	if write {
		right = hot.KeyWrite
	}
	var s claimSet
	defer s.release()
	end, total, err := s.locate(e, p, first, right)
	if end != first {
		var failed error
		if moved, failed = e.transferPieces(p, first, end, total, write); failed != nil {
			return 0, moved, failed
		}
	}
	return end - first, moved, err
}

// claimSet are the regions that are claimed for one system call.
type claimSet struct {
	regions [pieceRegions]pieceRegion
	used    int
	last    int // that find returned
}

func (s *claimSet) release() {
	for i := range s.used {
		outbound.Release(s.regions[i].claim)
	}
}

// locate makes the remote addresses of pieces from one on those of the peer's process, as far as
// the regions are few and the pieces lie in them. It returns where it ends, how many bytes
// precede it, and if the piece there is refused why.
func (s *claimSet) locate(e *Endpoint, p *hw.Pieces, first int, right uint32) (end int, total uint64, err error) {
	for end = first; end < p.N; end++ {
		local, remote := &p.Local[end], &p.Remote[end]
		r, err := s.find(e, p.Keys[end], right)
		switch {
		case errors.Is(err, hw.ErrNoResource) && end != first: // with what is claimed
			return end, total, nil
		case err != nil:
			return end, total, err
		}
		if offset := remote.Addr - r.base; offset > r.len || remote.Len > r.len-offset {
			return end, total, hw.ErrKey
		}
		if local.Len != remote.Len || local.Len > maxOneSided-total {
			return end, total, fmt.Errorf("loopback: a piece of %d bytes there, %d here: %w", remote.Len, local.Len, hw.ErrInvalid)
		}
		remote.Addr += r.shift
		total += local.Len
	}
	return end, total, nil
}

// find returns the region of a name, which it claims if need be. hw.ErrNoResource: no claim is left, here or
// in the table.
func (s *claimSet) find(e *Endpoint, name uint64, right uint32) (*pieceRegion, error) {
	if s.used != 0 && s.regions[s.last].name == name {
		return &s.regions[s.last], nil
	}
	for s.last = range s.used {
		if s.regions[s.last].name == name {
			return &s.regions[s.last], nil
		}
	}
	if s.used == pieceRegions {
		s.last = 0
		return nil, hw.ErrNoResource
	}
	if err := e.claimRegion(&s.regions[s.used], name, right); err != nil {
		s.last = 0
		return nil, err
	}
	s.last = s.used
	s.used++
	return &s.regions[s.last], nil
}

// claimRegion claims the region of a name, and checks that it has a right. Errors as of claim.
func (e *Endpoint) claimRegion(r *pieceRegion, name uint64, right uint32) error {
	key, err := e.FindKey(name)
	if err != nil {
		return err
	}
	entry := uint32(key[keyEntry]) - 1
	c := e.takeClaim(entry)
	if c == nil {
		return hw.ErrNoResource
	}
	k := e.seg.key(entry)
	state := atomic.LoadUint64(&k.State)
	r.base, r.len = atomic.LoadUint64(&k.Base), atomic.LoadUint64(&k.Len)
	r.shift = atomic.LoadUint64(&k.Addr) - r.base
	if state != key[keyState] || atomic.LoadUint32(&k.Access)&right != right || atomic.LoadUint64(&k.State) != state {
		outbound.Release(c)
		return hw.ErrKey
	}
	r.name, r.claim = name, c
	return nil
}

// transferPieces moves the pieces from first to end, total bytes, whose remote addresses are those
// of the peer's process, with one system call for every longChunk bytes.
func (e *Endpoint) transferPieces(p *hw.Pieces, first, end int, total uint64, write bool) (moved uint64, err error) {
	call := uintptr(unix.SYS_PROCESS_VM_READV)
	if write {
		call = unix.SYS_PROCESS_VM_WRITEV
	}
	l, r := iovecs(p.Local[first:end]), iovecs(p.Remote[first:end])
	for l, r = advance(l, 0), advance(r, 0); moved < total; {
		count, cut := bounded(r)
		r[count-1].len -= cut
		n, errno := vmTransfer(call, e.pid, l[:count], r[:count], total <= rawChunk)
		r[count-1].len += cut
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return moved, e.getError(errno)
		case n == 0 && e.ending():
			return moved, hw.ErrPeerDead
		case n == 0:
			return moved, fmt.Errorf("loopback: pieces stopped at %d of %d bytes: %w", moved, total, hw.ErrInvalid)
		}
		moved += uint64(n)
		l, r = advance(l, n), advance(r, n)
	}
	return moved, nil
}

// bounded returns how many pieces, of which the last without cut bytes, are no more than longChunk bytes.
func bounded(v []iovec) (count int, cut uintptr) {
	room := uintptr(longChunk)
	for i := range v {
		if v[i].len >= room {
			return i + 1, v[i].len - room
		}
		room -= v[i].len
	}
	return len(v), 0
}

// iovecs are spans as the system call takes them.
func iovecs(s []hw.Span) []iovec {
	return unsafe.Slice((*iovec)(unsafe.Pointer(unsafe.SliceData(s))), len(s))
}
