package provider

import (
	"errors"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/proc"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/claim"
	"github.com/weft-fabric/weft/provider/match"
	"github.com/weft-fabric/weft/provider/outcome"
	"github.com/weft-fabric/weft/provider/target"
	"github.com/weft-fabric/weft/provider/wire"
)

// Rendezvous at the receiver: an RTS finds its receive (onRTS) or is kept as unexpected (holdRTS); a matched one is an
// operation (recvOp) that progress steps until all is read, and that finishOp ends on both sides. The ways to read are
// in files of their own: the memory of a process of this host here and, shared with the sender, in
// rendezvous_assist.go; segments in segment_get.go; registered memory in rendezvous_get.go; device memory in
// device_foreign.go; fragments in rendezvous_fragments.go.

// getChunk is the most that one step of a rendezvous reads, in bytes: progress
// serves other peers in between.
const getChunk = 4 << 20

// recvOp is a rendezvous at the receiver: a matched message whose payload is
// being read. It lies off the Go heap and belongs to the lease holder.
type recvOp struct {
	index   uint32 // in the slab
	gen     uint32 // with index, the id that fragments carry
	next    uint32 // in the active list
	pulled  bool   // in fragments, or by gets that are all posted: not in the active list but in rxContext.pulls
	keyed   bool   // by gets (rendezvous_get.go)
	status  fi.Errno
	ep      uint32 // endpoint number
	source  uint32 // identity
	number  uint8  // which of the source's interfaces
	src     uint32 // hw.Source that it came from
	t       target.Target
	multi   uint64 // address of the match.Recv of a multi-receive buffer, 0: none
	tag     uint64
	data    uint64
	flags   uint64 // msg* bits
	request uint64
	length  uint64 // of the message
	want    uint64 // bytes to read: length, or less when the buffer is shorter
	done    uint64
	count   uint32
	iov     [wire.IOVLimit]hw.RemoteSegment

	// of a shared operation (rendezvous_assist.go)
	share bool   // it is to be offered to the sender before it is read
	round uint64 // 0: not shared
	chunk uint64 // bytes
	taken bool   // all chunks are; then
	back  uint64 // the first that the sender took, and
	needs uint32 // its count when it has finished them

	lost bool // the sender is gone

	asked   uint64 // bytes for which gets were posted
	pending uint32 // gets under way
	landed  bool   // leasedEP.landings has regions of the target
	open    bool   // into one of which the sender may put (rendezvous_assist_device.go):
	help    helpState
	tail    uint64 // bytes at the end that are left to the sender
	owed    uint64 // bytes of those that it is at
	keys    [wire.IOVLimit]hw.RemoteKey

	whole   bool // not in segments: it comes in fragments
	foreign bool // the sender's memory is mapped (device_share.go)
}

// sender is the interface that the message comes from.
func (op *recvOp) sender() sender { return sender{op.source, op.number} }

// readMax is the longest message of a rendezvous, in bytes, that the data plane has the shim read (hot.EP.ReadMax), 0
// for none: shorter than what the sender copies a share of and what is cut into segments; none where a progress thread
// does the copies.
func (e *peering) readMax() uint32 {
	p := e.ports[0]
	if p.attr.Caps&hw.CapPeerMemory == 0 || e.rx.offload {
		return 0
	}
	return uint32(e.wholeMax(p, getChunk, e.domain.cfg.AssistSize))
}

// wholeMax is the longest copy over a port, in bytes, that one thread does in one piece: at most most, not cut into
// segments, and shorter than assist, from which on the peer copies a share (0: it never does).
func (e *attributes) wholeMax(p *port, most uint64, assist int) uint64 {
	if p.segments {
		most = min(most, uint64(e.domain.cfg.MinSegment))
	}
	if assist != 0 {
		most = min(most, uint64(assist)-1)
	}
	return most
}

// opList is a queue of operations, linked by index.
type opList struct{ head, tail uint32 }

// onRTS matches the message of an RTS and begins to read it, or keeps the RTS as unexpected.
func (e *leasedEP) onRTS(src hw.Source, header uint64, head, payload []byte) {
	var m wire.RTS
	if !m.Parse(head) || !e.takeKeys(src, &m, payload) {
		e.malformed(src, "RTS of %d bytes does not parse", len(head))
		return
	}
	from := e.senderOf(src)
	e.fillBack(src) // the data plane acknowledges the next one
	a := arrived{ep: e, source: from.id, number: from.number, src: src, tag: header, data: m.Data, length: m.Length,
		request: m.Request, flags: msgRTS}
	if m.Flags&wire.FlagTagged != 0 {
		a.flags |= msgTagged
	}
	if m.Flags&wire.FlagData != 0 {
		a.flags |= msgData
	}
	r := e.rx
	if r.owner != nil {
		if !r.offerPeer(&a, nil, &m) {
			e.postpone(src)
		}
		return
	}
	eng := r.Engine(a.flags&msgTagged != 0)
	switch rv := r.find(eng, a.source, a.tag); {
	case rv == nil:
		if !r.holdRTS(eng, &a, &m) {
			e.postpone(src)
		}
	case rv.Kept():
		r.rendezvousMulti(eng, rv, &a, &m)
	default:
		t := targetIn(rv)
		eng.Release(rv)
		r.startRendezvous(t, nil, &a, &m)
	}
}

// holdRTS keeps an RTS that matches no receive. False: there is no memory, and nothing has happened.
func (r *receiving) holdRTS(eng *match.Engine, a *arrived, rts *wire.RTS) bool {
	addr, err := r.Pool.Get(rtsSize)
	if err != nil {
		return r.noMemory(err)
	}
	*rtsAt(addr) = *rts
	m := eng.Hold(a.source, a.tag)
	if m == nil {
		r.Pool.Put(addr, rtsSize)
		return r.noMemory(eng.Err())
	}
	m.Len, m.Data, m.Payload, m.Request = a.length, a.data, addr, a.request
	m.Flags = keptFlags(a)
	a.ep.counts.Unexpected(0)
	r.hold(0, dataplane.KeptMemory(dataplane.MessageRTS, 0))
	return true
}

// startRendezvous makes the operation that reads a matched message into t, and takes its first step. multi is the
// multi-receive buffer that t is part of, or nil.
func (r *leasedRx) startRendezvous(t target.Target, multi *match.Recv, a *arrived, rts *wire.RTS) {
	op, index := r.ops.Alloc()
	if op == nil {
		r.sendAck(a, fi.ENOMEM)
		t.Flags |= r.endPiece(multi, a.flags)
		r.endRecv(t, a.tag, fi.ENOMEM)
		return
	}
	r.opGen++
	*op = recvOp{
		index: index, gen: r.opGen, ep: a.ep.number, source: a.source, number: a.number, src: uint32(a.src), t: t,
		multi: uint64(uintptr(unsafe.Pointer(multi))), tag: a.tag, data: a.data, flags: a.flags, request: a.request,
		length: rts.Length, want: min(rts.Length, t.Room()), count: rts.Count,
		iov: rts.IOV,
	}
	switch {
	case op.want != 0 && a.ep.mayMap(a.src, rts):
		r.startForeign(&a.ep.Endpoint, op, rts)
		return
	case rts.Flags&wire.FlagKeyed != 0 && a.ep.gets(a.src) && t.Flags&hot.RecvDevice == 0:
		op.keyed, op.keys = true, rts.Keys
	case rts.Flags&(wire.FlagNoGet|wire.FlagKeyed) != 0 || !a.ep.reads(a.src) || t.Flags&hot.RecvDevice != 0:
		r.pull(a.ep, op)
		return
	default:
		op.share = !a.ep.segmented(a.ep.ports[0], op.want) && r.shareable(a.ep, op)
	}
	if r.offload || !r.step(a.ep, op, 1) {
		r.activate(op)
	}
}

// step reads the next piece of an operation and reports whether progress is done
// with it: it is complete, failed, or waits for fragments. patience is that of
// stepAssisted.
func (r *leasedRx) step(e *leasedEP, op *recvOp, patience int) bool {
	if op.keyed {
		return r.stepGet(e, op)
	}
	if op.lost {
		op.status = fi.ECONNRESET
		r.finishOp(e, op)
		return true
	}
	if op.share && !r.offerAssist(e, op) {
		return false
	}
	if op.round != 0 {
		return r.stepAssisted(e, op, patience)
	}
	if op.foreign {
		return r.stepForeign(e, op)
	}
	if op.done < op.want {
		p, err := e.connectBack(hw.Source(op.src), op.sender())
		if err == fi.EAGAIN {
			return false
		}
		if err == nil && op.done == 0 && !op.whole && !r.offload && e.segmented(p.port, op.want) {
			if n := e.flowOf(e.linkBack(op.sender()), p); n != nil {
				r.startSegmented(op, n, copyMover{n})
				return true
			}
		}
		n := 0
		if err == nil {
			local, remote := r.piece(op, op.done, min(op.want-op.done, getChunk))
			n, err = p.Endpoint.(hw.PeerMemory).ReadPeer(local, remote)
		}
		op.done += uint64(n)
		switch {
		case err == nil:
		case errors.Is(err, hw.ErrPermission) && op.done == 0:
			r.pull(e, op)
			return true
		default:
			op.status = outcome.OfRead(err)
			log.Warnf(log.EPData, "read %d bytes of %s: %v", op.want-op.done, r.addressOf(op.sender()), err)
		}
	}
	if op.status == fi.Success && op.done < op.want {
		return false
	}
	r.finishOp(e, op)
	return true
}

// driverError is the outcome of a copy that the driver of a device failed: the allocation may have gone with its
// owner's process, of which the driver says nothing.
func driverError(owner proc.Process) fi.Errno {
	if owner.Ending() {
		return fi.ECONNRESET
	}
	return fi.EIO
}

// piece returns the segments of a read of n bytes of the message from byte from
// on, of equal length on both sides.
func (r *leasedRx) piece(op *recvOp, from, n uint64) ([]hw.Segment, []hw.RemoteSegment) {
	local := op.t.Segments(r.local[:0], from, n)
	remote := r.remote[:0]
	skip, left := from, n
	for _, s := range op.iov[:op.count] {
		if skip >= s.Len {
			skip -= s.Len
			continue
		}
		take := min(s.Len-skip, left)
		if take == 0 {
			break
		}
		remote = append(remote, hw.RemoteSegment{Addr: s.Addr + skip, Len: take})
		skip = 0
		left -= take
	}
	return local, remote
}

// finishOp completes a rendezvous on both sides.
func (r *leasedRx) finishOp(e *leasedEP, op *recvOp) {
	clear(r.local[:]) // the application has its memory back, and may free it
	r.dropForeign(op) // before the sender may free it
	if op.landed {
		e.landings.drop(op)
	}
	a := arrived{ep: e, source: op.source, number: op.number, src: hw.Source(op.src), tag: op.tag, data: op.data,
		length: op.length, request: op.request, flags: op.flags}
	flags := op.t.Flags
	flags |= r.endPiece((*match.Recv)(pointerAt(op.multi)), op.flags)
	if op.status != fi.Success {
		e.recvError(cq.Entry{
			Context: op.t.Context, Flags: recvKind(flags) | flags&fi.MultiRecv, Len: op.done, Buf: op.t.Named(),
			Data: op.data, Tag: op.tag, Src: e.addrOf(op.source),
		}, flags, cq.ErrorInfo{Err: op.status})
	} else {
		e.stats.Rx(stats.RxRendezvous, 1)
		e.stats.Rx(stats.RxRendezvousBytes, op.done)
		e.completeRecv(op.t.Context, flags, op.t.Named(), op.done, &a)
	}
	// On another host a connection may be lost and the sender not.
	if op.status != fi.ECONNRESET || a.src > sourceMask && e.lives(a.src, a.sender()) {
		r.sendAck(&a, op.status)
	}
	r.release(op.t)
	if op.pulled || op.help != helpNone {
		delete(r.pulls, op.id())
	}
	r.ops.Free(op.index)
}

// endPiece ends a message's part of a multi-receive buffer, nil: it has none. It returns what the last completion of
// the buffer says (Retire). flags are those of the message.
func (r *receiving) endPiece(multi *match.Recv, flags uint64) uint64 {
	if multi == nil {
		return 0
	}
	multi.User[dataplane.MultiPending]--
	return r.Retire(r.Engine(flags&msgTagged != 0), multi)
}

// dropOp ends an operation whose endpoint has left the receive context: its receive, posted to the context, fails at an
// endpoint that stays.
func (r *leasedRx) dropOp(op *recvOp) {
	op.t.Flags |= r.endPiece((*match.Recv)(pointerAt(op.multi)), op.flags)
	r.endRecv(op.t, op.tag, fi.ECANCELED)
	r.ops.Free(op.index)
}

// activate puts an operation on the list that progress steps.
func (r *leasedRx) activate(op *recvOp) {
	op.next = 0
	if r.active.tail != 0 {
		r.ops.At(r.active.tail).next = op.index
	} else {
		r.active.head = op.index
	}
	r.active.tail = op.index
}

// stepActive steps every active operation once.
func (r *leasedRx) stepActive() {
	i := r.active.head
	r.active, r.helpTurn = opList{}, false
	for i != 0 {
		op := r.ops.At(i)
		i = op.next
		if !r.step(r.byNumber(op.ep), op, helperPatience) {
			r.activate(op)
		}
	}
}

// loseOps ends the reads from a source that is gone, and the help for it, before another has its
// place and its shared words.
func (r *leasedRx) loseOps(e *leasedEP, src hw.Source) {
	if int(src) < len(e.assisted) { // a peer on this host
		e.assisted[src] = claim.Rounds{}
	}
	e.target.dropHelp(src)
	for i := r.active.head; i != 0; {
		op := r.ops.At(i)
		if op.ep == e.number && hw.Source(op.src) == src {
			op.lost = true
		}
		i = op.next
	}
}

// onAck completes a tracked transmit.
func (e *leasedEP) onAck(src hw.Source, header uint64, head, payload []byte) {
	status, ok := wire.ParseAck(head)
	e.ackReceived(src, header, status, ok)
}

// ackReceived completes a tracked transmit with the status in an acknowledgement of src. ok is false for one that does
// not parse.
func (e *leasedEP) ackReceived(src hw.Source, header uint64, status fi.Errno, ok bool) {
	req, known := e.requests.Lookup(header)
	if !ok || !known || !e.ownsLink(src, req.Link) {
		e.malformed(src, "acknowledgement of unknown request %#x", header)
		return
	}
	if status == fi.Success {
		if todo, done := dataplane.EndRequest(e.hot, nil, req, header); done {
			e.act(todo)
			return
		}
	}
	if !req.Live.CompareAndSwap(uint32(header>>32), 0) {
		e.malformed(src, "acknowledgement of request %#x, which has not gone out", header)
		return
	}
	e.stopStream(header)
	e.finishTx(req, header, status)
}

// AckReceived is onAck of an ACK that the data plane has taken in. The caller holds the progress lease.
func (e *Endpoint) AckReceived(source uint32, request, status uint64) {
	outcome, ok := wire.AckStatus(status)
	e.leased.Taken().ackReceived(hw.Source(source), request, outcome, ok)
}

// SendAck sends a source the ACK of its request, whose message the data plane has taken in, or keeps the ACK until
// there is room. The caller holds the progress lease.
func (e *Endpoint) SendAck(source uint32, request uint64) {
	e.leased.Taken().sendAck(source, request)
}

func (e *leasedEP) sendAck(source uint32, request uint64) {
	s := e.senderOf(hw.Source(source))
	e.rx.sendAck(&arrived{ep: e, source: s.id, number: s.number, src: hw.Source(source), request: request}, fi.Success)
	e.fillBack(hw.Source(source)) // the data plane sends the next one
	e.rx.sendSoon()
}

// malformed counts a message that a peer should not have sent, and logs why.
func (e *leasedEP) malformed(src hw.Source, format string, args ...any) {
	e.malformedHere++
	log.Warnf(log.EPData, "from %s: "+format, append([]any{e.rx.addressOf(e.senderOf(src))}, args...)...)
}
