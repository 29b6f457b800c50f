package provider

import (
	"errors"
	"slices"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/claim"
	"github.com/weft-fabric/weft/provider/outcome"
	"github.com/weft-fabric/weft/provider/wire"
)

// Rendezvous of FI_WEFT_ASSIST_SIZE or more on one host, copied by both sides. The receiver cuts the message into
// chunks and offers the sender a share (wire.AMAssist); the words of package claim say which chunks each has taken. The
// receiver reads chunks from the front (process_vm_readv), the sender writes chunks from the back (process_vm_writev),
// each with its own progress. A sender that makes none costs nothing: the receiver takes all chunks then.

// assistBurst is how many bytes one step of either side copies: progress serves
// other peers in between.
const assistBurst = getChunk

// chunkSize is the size of a chunk of a message of n bytes, whole pages.
func chunkSize(n uint64) uint64 {
	return min(max(n/8, wire.MinChunk), wire.MaxChunk) &^ 4095
}

// shareable reports whether an operation is one to share.
func (r *receiving) shareable(e *leasedEP, op *recvOp) bool {
	least := uint64(r.cfg.AssistSize)
	if least == 0 || op.want < least || op.count != 1 || op.t.Flags&hot.RecvIOV != 0 {
		return false
	}
	src := hw.Source(op.src) // of this host only
	return claim.MessageWords(e.sourceWords(src)) != nil && !e.assisted[src].Refused() &&
		claim.Chunks(op.want, chunkSize(op.want)) <= claim.MaxChunks
}

// offerAssist begins a round with a shareable operation. It reports false when
// that has to wait for an earlier round.
func (r *receiving) offerAssist(e *leasedEP, op *recvOp) bool {
	s := &e.assisted[op.src]
	if !s.Ready() {
		return false
	}
	op.share = false
	words := claim.MessageWords(e.sourceWords(hw.Source(op.src)))
	p, err := e.connectBack(hw.Source(op.src), op.sender())
	if err != nil || words == nil {
		return true // alone
	}
	chunk := chunkSize(op.want)
	round, ok := s.Begin(words, claim.Chunks(op.want, chunk))
	if !ok {
		return true
	}
	o := wire.Offer{Round: round, Addr: op.t.Buf, Want: op.want, Chunk: chunk}
	if p.AMShort(wire.AMAssist, op.request, o.Put(r.head[:]), nil) != nil {
		s.Cancel()
		return true
	}
	op.round, op.chunk = round, chunk
	return true
}

// stepAssisted reads the next chunks of a shared operation and reports whether
// progress is done with it. patience is how often the sender's count is read before the step ends.
func (r *leasedRx) stepAssisted(e *leasedEP, op *recvOp, patience int) bool {
	words := claim.MessageWords(e.sourceWords(hw.Source(op.src)))
	p, err := e.connectBack(hw.Source(op.src), op.sender())
	if err == fi.EAGAIN {
		return false // the sender is there, and no path leads to it for the moment
	}
	if words == nil {
		op.status = fi.ECONNRESET
		return r.endAssist(e, op)
	}
	if err != nil { // a sender that is there has to stop writing before the buffer is the program's again
		op.status = fi.ECONNRESET
	}
	if !op.taken && !r.takeChunks(e, op, p, words) {
		return false
	}
	done, failed := words.Wait(op.needs, patience)
	if !done {
		return false
	}
	s := &e.assisted[op.src]
	if failed {
		s.Refuse()
	}
	for i, n := op.back, claim.Chunks(op.want, op.chunk); failed && i < n && op.status == fi.Success; i++ {
		r.readChunk(p, op, i)
	}
	if op.status == fi.EACCES {
		// The kernel lets this side not read. The sender is stopped: begin anew, in fragments.
		s.Refuse()
		s.Finish()
		op.round, op.status = 0, fi.Success
		r.pull(e, op)
		return true
	}
	return r.endAssist(e, op)
}

// takeChunks reads chunks until all are taken, which ends the round, or assistBurst bytes are: then it reports false.
func (r *leasedRx) takeChunks(e *leasedEP, op *recvOp, p *path, words *claim.Words) bool {
	n := claim.Chunks(op.want, op.chunk)
	for budget := int64(assistBurst); budget > 0 && op.status == fi.Success; budget -= int64(op.chunk) {
		i, ok := words.TakeFront(op.round, n)
		if !ok {
			break
		}
		r.readChunk(p, op, i)
	}
	back, left := words.Left(op.round, n)
	if op.status != fi.Success {
		back = words.Stop(op.round, n)
	} else if left {
		return false
	}
	e.endRound(op, back, n)
	return true
}

// endRound notes what the sender took of an operation: the chunks from back to n.
func (e *leasedEP) endRound(op *recvOp, back, n uint64) {
	op.taken, op.back, op.needs = true, back, e.assisted[op.src].Taken(n-back)
}

// endAssist completes a shared operation.
func (r *leasedRx) endAssist(e *leasedEP, op *recvOp) bool {
	s := &e.assisted[op.src]
	s.Finish()
	if !op.taken {
		s.Close()
	}
	if op.status == fi.Success {
		op.done = op.want
	}
	r.finishOp(e, op)
	return true
}

// abandonTime bounds how long an endpoint that is closed waits for its senders to finish the chunks that they are at.
const abandonTime = time.Second

// abandonAssist ends a shared operation whose endpoint is closed: the sender must not write into the buffer any more.
func (r *receiving) abandonAssist(e *leasedEP, op *recvOp) {
	words := claim.MessageWords(e.sourceWords(hw.Source(op.src)))
	if op.round == 0 || words == nil {
		return
	}
	if n := claim.Chunks(op.want, op.chunk); !op.taken {
		e.endRound(op, words.Stop(op.round, n), n)
	}
	for end := time.Now().Add(abandonTime); time.Now().Before(end); {
		if done, _ := words.Wait(op.needs, helperPatience); done {
			return
		}
	}
}

// readChunk reads chunk i of the message.
func (r *leasedRx) readChunk(p *path, op *recvOp, i uint64) {
	off := i * op.chunk
	n := min(op.chunk, op.want-off)
	r.local[0] = hw.Segment{Addr: pointerAt(op.t.Buf + off), Len: int(n)}
	r.remote[0] = hw.RemoteSegment{Addr: op.iov[0].Addr + off, Len: n}
	if _, err := p.Endpoint.(hw.PeerMemory).ReadPeer(r.local[:1], r.remote[:1]); err != nil {
		op.status = outcome.OfRead(err)
		if errors.Is(err, hw.ErrPermission) {
			op.status = fi.EACCES
		}
	}
}

// helperPatience is how often a step of progress reads the sender's count before it ends: about the time of a chunk.
const helperPatience = 5000

// assist is a rendezvous of which this side, the sender, copies a share.
type assist struct {
	wire.Offer
	request uint64
}

// onAssist accepts a receiver's offer.
func (e *rendezvousHelp) onAssist(src hw.Source, header uint64, head, payload []byte) {
	var o wire.Offer
	req, known := rendezvousOf(e.leasedEP, src, header)
	if !o.Parse(head) || !known || o.Want > req.Length || req.Count != 1 || e.assisting(header) {
		e.malformed(src, "offer for request %#x", header)
		return
	}
	if a := (assist{o, header}); !e.stepAssist(&a) {
		e.assists = append(e.assists, a)
	}
}

// assisting reports whether this side copies a share of a request already.
func (e *rendezvousHelp) assisting(request uint64) bool {
	return slices.ContainsFunc(e.assists, func(a assist) bool { return a.request == request })
}

// stepAssist writes chunks into the receiver's buffer, and reports whether there is no more to do.
func (e *rendezvousHelp) stepAssist(a *assist) bool {
	req, known := e.requests.Lookup(a.request)
	if !known {
		return true
	}
	p, ok := e.linkAt(req.Link).ready()
	if !ok {
		return true
	}
	memory, ok := p.Endpoint.(hw.PeerMemory)
	if !ok {
		return true
	}
	words := claim.MessageWords(memory.SharedWords())
	if words == nil {
		return true
	}
	n := claim.Chunks(a.Want, a.Chunk)
	for budget := int64(assistBurst); budget > 0; budget -= int64(a.Chunk) {
		i, ok := words.TakeBack(a.Round, n)
		if !ok {
			return true
		}
		off := i * a.Chunk
		size := min(a.Chunk, a.Want-off)
		e.rx.local[0] = hw.Segment{Addr: pointerAt(uint64(req.IOV[0].Base) + off), Len: int(size)}
		e.rx.remote[0] = hw.RemoteSegment{Addr: a.Addr + off, Len: size}
		_, err := memory.WritePeer(e.rx.local[:1], e.rx.remote[:1])
		e.rx.local[0] = hw.Segment{}
		words.Count(err != nil)
	}
	return false
}
