package rendezvous

import (
	"errors"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Rendezvous of FI_WEFT_ASSIST_SIZE or more on one host, copied by both sides. The receiver cuts the message into
// chunks and offers the sender a share (wire.AMAssist); the words of package claim say which chunks each has taken. The
// receiver reads chunks from the front (process_vm_readv), the sender writes chunks from the back (process_vm_writev),
// each with its own progress. A sender that makes none costs nothing: the receiver takes all chunks then.

// WaitPolls is how often a step of progress reads the count of a helper before it ends: about the time of a chunk.
const WaitPolls = 5000

// AbandonTime bounds how long an endpoint that is closed waits for its senders to complete the chunks that they are at.
const AbandonTime = time.Second

// chunkSize is the size of a chunk of a message of n bytes, whole pages.
func chunkSize(n uint64) uint64 {
	return min(max(n/8, wire.MinChunk), wire.MaxChunk) &^ 4095
}

// long reports whether an operation is long enough for its sender to help with, and in one piece on both sides.
func (p *Protocol) long(op *operation) bool {
	least := uint64(p.cfg.AssistSize)
	return least != 0 && op.want >= least && op.count == 1 && !op.Target.Vector()
}

// shareable reports whether an operation is one to share.
func (p *Protocol) shareable(op *operation) bool {
	return p.long(op) && p.ep.Words(op.Src) != nil && !p.shared[op.Src].Refused() && // of this host only
		claim.Chunks(op.want, chunkSize(op.want)) <= claim.MaxChunks
}

// offer begins a round with a shareable operation. It reports false when that has to wait for an earlier round.
func (p *Protocol) offer(op *operation) bool {
	s := &p.shared[op.Src]
	if !s.Ready() {
		return false
	}
	op.share = false
	words := p.ep.Words(op.Src)
	path, err := p.ep.Back(&op.Message)
	if err != nil || words == nil {
		return true // alone
	}
	chunk := chunkSize(op.want)
	round, ok := s.Begin(words, claim.Chunks(op.want, chunk))
	if !ok {
		return true
	}
	o := wire.Offer{Round: round, Addr: op.Target.Buf, Want: op.want, Chunk: chunk}
	if path.AMShort(wire.AMAssist, op.Request, o.Put(p.rx.head[:]), nil) != nil {
		s.Cancel()
		return true
	}
	op.round, op.chunk = round, chunk
	return true
}

// stepShared reads the next chunks of a shared operation and reports whether progress is done with it. polls is how
// often the sender's count is read before the step ends.
func (p *Protocol) stepShared(op *operation, polls int) bool {
	words := p.ep.Words(op.Src)
	path, err := p.ep.Back(&op.Message)
	if errors.Is(err, fi.EAGAIN) {
		return false // the sender is there, and no path leads to it for the moment
	}
	if words == nil {
		op.status = fi.ECONNRESET
		return p.endShared(op)
	}
	if err != nil { // a sender that is there has to stop writing before the buffer is the program's again
		op.status = fi.ECONNRESET
	}
	if !op.taken && !p.takeChunks(op, path, words) {
		return false
	}
	done, failed := words.Wait(op.needs, polls)
	if !done {
		return false
	}
	s := &p.shared[op.Src]
	if failed {
		s.Refuse()
	}
	for i, n := op.back, claim.Chunks(op.want, op.chunk); failed && i < n && op.status == fi.Success; i++ {
		p.readChunk(path, op, i)
	}
	if op.status == fi.EACCES {
		// The kernel lets this side not read. The sender is stopped: begin anew, in fragments.
		s.Refuse()
		s.End()
		op.round, op.status = 0, fi.Success
		p.pull(op)
		return true
	}
	return p.endShared(op)
}

// takeChunks reads chunks until all are taken, which ends the round, or Burst bytes are: then it reports false.
func (p *Protocol) takeChunks(op *operation, path Path, words *claim.Words) bool {
	n := claim.Chunks(op.want, op.chunk)
	for budget := int64(Burst); budget > 0 && op.status == fi.Success; budget -= int64(op.chunk) {
		i, ok := words.TakeFront(op.round, n)
		if !ok {
			break
		}
		p.readChunk(path, op, i)
	}
	back, left := words.Left(op.round, n)
	if op.status != fi.Success {
		back = words.Stop(op.round, n)
	} else if left {
		return false
	}
	p.endRound(op, back, n)
	return true
}

// endRound notes what the sender took of an operation: the chunks from back to n.
func (p *Protocol) endRound(op *operation, back, n uint64) {
	op.taken, op.back, op.needs = true, back, p.shared[op.Src].Taken(n-back)
}

// endShared completes a shared operation.
func (p *Protocol) endShared(op *operation) bool {
	s := &p.shared[op.Src]
	s.End()
	if !op.taken {
		s.Close()
	}
	if op.status == fi.Success {
		op.done = op.want
	}
	p.end(op)
	return true
}

// abandonShared ends a shared operation whose endpoint is closed: the sender must not write into the buffer any more.
func (p *Protocol) abandonShared(op *operation) {
	words := p.ep.Words(op.Src)
	if op.round == 0 || words == nil {
		return
	}
	if n := claim.Chunks(op.want, op.chunk); !op.taken {
		p.endRound(op, words.Stop(op.round, n), n)
	}
	for end := time.Now().Add(AbandonTime); time.Now().Before(end); {
		if done, _ := words.Wait(op.needs, WaitPolls); done {
			return
		}
	}
}

// readChunk reads chunk i of the message.
func (p *Protocol) readChunk(path Path, op *operation, i uint64) {
	off := i * op.chunk
	n := min(op.chunk, op.want-off)
	local := op.Target.Segments(p.rx.local[:0], off, n)
	p.rx.remote[0] = hw.RemoteSegment{Addr: op.iov[0].Addr + off, Len: n}
	if _, err := path.Transport().(hw.PeerMemory).ReadPeer(local, p.rx.remote[:1]); err != nil {
		op.status = outcome.OfRead(err)
		if errors.Is(err, hw.ErrPermission) {
			op.status = fi.EACCES
		}
	}
}
