package rendezvous

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/vector"
)

// Burst is the most that one step of a rendezvous copies, in bytes: progress serves other peers in between.
const Burst = flow.Burst

// stepRead reads the next piece of an operation from the memory of its sender's process, and reports whether progress
// is done with it.
func (p *Protocol) stepRead(op *operation) bool {
	if op.done < op.want {
		path, err := p.ep.Back(&op.Message)
		if errors.Is(err, fi.EAGAIN) {
			return false
		}
		if err == nil && op.done == 0 && p.startSegments(op, path) {
			return true
		}
		n := 0
		if err == nil {
			local, remote := p.rx.piece(op, op.done, min(op.want-op.done, Burst))
			n, err = path.Transport().(hw.PeerMemory).ReadPeer(local, remote)
		}
		op.done += uint64(n)
		switch {
		case err == nil:
		case errors.Is(err, hw.ErrPermission) && op.done == 0:
			p.pull(op)
			return true
		default:
			op.status = outcome.OfRead(err)
			log.Warnf(log.EPData, "read %d bytes of %s: %v", op.want-op.done, p.ep.SenderOf(&op.Message), err)
		}
	}
	if op.status == fi.Success && op.done < op.want {
		return false
	}
	p.end(op)
	return true
}

// startSegments begins to read an operation by copies in segments if it is to be cut.
func (p *Protocol) startSegments(op *operation, path Path) bool {
	if op.whole || p.ep.Offload() || !p.ep.Segmented(path.TransportNumber(), op.want) {
		return false
	}
	f := p.ep.Flow(&op.Message, path)
	if f == nil {
		return false
	}
	f.start(op, copyMover{f})
	return true
}

// piece returns the segments of a read of n bytes of the message from byte from on, of equal length on both sides.
func (r *Receiver) piece(op *operation, from, n uint64) ([]hw.Segment, []hw.RemoteSegment) {
	local := op.Target.Segments(r.local[:0], from, n)
	remote, span := r.remote[:0], vector.Span{Offset: from, N: n}
	for _, s := range op.iov[:op.count] {
		if at, n := span.Take(s.Len); n != 0 {
			remote = append(remote, hw.RemoteSegment{Addr: s.Addr + at, Len: n})
		}
	}
	return local, remote
}
