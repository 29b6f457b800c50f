package loopback

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/outbound"
)

// An operation on pieces is one system call for as many of them as are in a few
// regions. All these are claimed while it lasts, and checked before it.

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
	self := &e.iface.host.self
	claimant := outbound.Claimant{PID: self.pid, Start: self.start, First: e.claimHint.Load()}
	hint := claimant.First
	var regions outbound.Regions
	defer regions.Release()
	end, total, why := regions.Locate(e.keys(), &claimant, p, first, right)
	if claimant.First != hint {
		e.claimHint.Store(claimant.First)
	}
	if end != first {
		if moved, err = e.transferPieces(p, first, end, total, write); err != nil {
			return 0, moved, err
		}
	}
	return end - first, moved, refusal(p, first, end, why)
}

// refusal is the error of the piece at which what is claimed for those from one on ends, nil: it goes on behind them.
func refusal(p *hw.Pieces, first, end int, why outbound.Refusal) error {
	switch {
	case why == outbound.Later && end == first:
		return hw.ErrNoResource
	case why == outbound.Refused:
		return hw.ErrKey
	case why == outbound.Mismatch:
		return fmt.Errorf("loopback: a piece of %d bytes there, %d here: %w", p.Remote[end].Len, p.Local[end].Len,
			hw.ErrInvalid)
	}
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
		if n == 0 || errno != 0 {
			return moved, e.stopped(errno, moved, total)
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
