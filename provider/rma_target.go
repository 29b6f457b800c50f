package provider

import (
	"fmt"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/pending"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/hmem"
	"github.com/weft-fabric/weft/provider/vector"
	"github.com/weft-fabric/weft/provider/wire"
)

// The target's side of one-sided operations, where its process performs them:
// everything is checked against the region of the key at the moment of access,
// and what is refused leaves the memory untouched.

// rmaTarget is the target's side of an endpoint's one-sided operations, for the lease holder.
type rmaTarget struct {
	*leasedEP
	replies      pending.List[reply] // to peers' reads and atomics, that wait for room
	helps        pending.List[help]  // reads and writes of others that this side helps with, one of a source
	elements     elementsTarget
	atomicResult [atomicBytes]byte
	// scratch of copyChunk
	local  [1]hw.Segment
	remote [1]hw.RemoteSegment
}

// onWrite places a piece of a write.
func (e *rmaTarget) onWrite(src hw.Source, addr uint64, head, payload []byte) {
	var w wire.Write
	if !w.Parse(head) {
		e.malformed(src, "write of %d bytes does not parse", len(payload))
		return
	}
	if w.Flags&wire.WriteElements != 0 {
		e.writeElements(src, &w, addr, payload)
		return
	}
	e.endWrite(src, &w, 1, &wire.Done{Status: e.perform(src, &w, addr, payload), At: wire.NoPlace})
}

// perform checks a piece of a write against the region of its key, copies it, and counts it. What ends an element is
// refused as all of that is.
func (e *leasedEP) perform(src hw.Source, w *wire.Write, addr uint64, payload []byte) fi.Errno {
	start, length, ok := w.Span(addr, uint64(len(payload)))
	if !ok {
		e.stats.Rx(stats.RxServedWrites, 1)
		return e.refuseAccess(src, "write", w.Key, addr, uint64(len(payload)),
			fmt.Errorf("the end of %d bytes: %w", w.Length, fi.EACCES))
	}
	to := placement{key: w.Key, start: start, length: length, at: addr - start, ends: w.Ends()}
	return to.place(e, src, payload)
}

// placement is where bytes of a write go.
type placement struct {
	key           uint64
	start, length uint64 // what the peer is to be admitted to
	at            uint64 // bytes of that before those at hand
	ends          wire.Ends
}

// place checks a piece of a write against the region of its key, copies it, and counts it.
func (to *placement) place(e *leasedEP, src hw.Source, payload []byte) fi.Errno {
	e.stats.Rx(stats.RxServedWrites, 1)
	n := uint64(len(payload))
	if n == 0 {
		if to.ends.Operation() {
			e.noticed(src, to.key, 0)
		}
		return fi.Success
	}
	m, offset, err := e.access(src, to.key, to.start, to.length, fi.RemoteWrite)
	if err != nil {
		return e.refuseAccess(src, "write", to.key, to.start+to.at, n, err)
	}
	defer m.Gate.Leave()
	for _, v := range vector.Window(e.regionIOV[:0], m.Memory.Parts, offset+to.at, n) {
		if err := hmem.Store(uint64(v.Base), payload[:v.Len]); err != nil {
			return e.refuseAccess(src, "write to a device", to.key, to.start+to.at, n,
				fmt.Errorf("%v: %w", err, fi.EIO))
		}
		payload = payload[v.Len:]
	}
	e.written(m, n, to.ends)
	return fi.Success
}

// onNotify counts, reports and answers a write whose payload the initiator has put in place.
func (e *rmaTarget) onNotify(src hw.Source, addr uint64, head, payload []byte) {
	var w wire.Write
	if !w.Parse(head) || w.Flags&wire.WriteElements != 0 {
		e.malformed(src, "notice of a write does not parse")
		return
	}
	e.noticed(src, w.Key, w.Length)
	e.endWrite(src, &w, 1, &wire.Done{At: wire.NoPlace})
}

// noticed counts a write of n bytes that this side has not put in place: one without
// bytes, or one that the initiator has done.
func (e *leasedEP) noticed(src hw.Source, key, n uint64) {
	m := e.domain.regions.Find(key)
	if m != nil && e.reaches(m, src) && m.Rights&fi.RemoteWrite != 0 && n <= m.Length && m.Gate.Enter() {
		e.written(m, n, wire.EndsOperation)
		m.Gate.Leave()
	}
}

// written counts n bytes of a write that are in place: for the region an element of an operation is one.
func (e *bindings) written(m *peerRegion, n uint64, ends wire.Ends) {
	if c := m.Owner.counter.Load(); c != nil {
		c.Part(n, ends.Element())
	}
	if c := e.remoteWriteCntr.Load(); c != nil {
		c.Part(n, ends.Operation())
	}
	if ends.Region() {
		m.Owner.spend()
	}
}

// endWrite delivers the CQ data of a write and answers, for that many units.
func (e *rmaTarget) endWrite(src hw.Source, w *wire.Write, units uint64, d *wire.Done) {
	if w.Flags&wire.WriteData != 0 && d.Status == fi.Success && e.rxCQ != nil {
		e.rxCQ.Complete(cq.Entry{
			Flags: fi.RMA | fi.RemoteWrite | fi.RemoteCQData, Len: w.Length, Data: w.Data,
			Src: e.addrOf(e.senderOf(src).id),
		})
	}
	if w.Request != 0 && (d.Status != fi.Success || w.Flags&wire.WriteAck != 0) {
		if w.Flags&wire.WriteAck != 0 {
			d.Units = units
		}
		e.answer(src, w.Request, d)
		e.fillBack(src)
	}
}

// answer sends the initiator the outcome of an operation.
func (e *rmaTarget) answer(src hw.Source, request uint64, d *wire.Done) {
	r := e.rx
	r.answer(e.leasedEP, src, e.senderOf(src), wire.AMRMADone, request, d.Put(r.head[:]))
}

// SendDone sends a source word of the success of its request, an operation that the data plane has performed, or keeps
// it until there is room. The caller holds the progress lease.
func (e *Endpoint) SendDone(source uint32, request uint64) {
	t := &e.leased.Taken().target
	t.answer(hw.Source(source), request, &wire.Done{Units: 1, At: wire.NoPlace})
	t.fillBack(hw.Source(source))
	t.rx.sendSoon()
}

// refuseAccess logs an access that is refused and returns the errno for the initiator.
func (e *leasedEP) refuseAccess(src hw.Source, what string, key, addr, n uint64, err error) fi.Errno {
	log.Warnf(log.EPData, "%s by %s of %d bytes at %#x with key %#x: %v", what, e.rx.addressOf(e.senderOf(src)),
		n, addr, key, err)
	return fi.ErrnoOf(err)
}

// reply is what an initiator waits for: a piece of a region, or the result of an atomic, which is copied because the
// memory may change before there is room to send.
type reply struct {
	src     hw.Source // the source behind which to is
	to      sender
	request uint64
	key     uint64
	addr    uint64
	length  uint64
	at      uint64 // offset in the operation
	sent    uint64
	held    uint64 // address of the result, 0: read the region
	ends    wire.Ends
	// of a read of several elements: these, the next to be sent, and how many bytes of it are
	list []wire.Element
	next int
	in   uint64
}

// maxReplies bounds what initiators that do not take their answers cost.
const maxReplies = 1 << 16

// onRead begins to send what is asked for.
func (e *rmaTarget) onRead(src hw.Source, addr uint64, head, payload []byte) {
	var h wire.Read
	if !h.Parse(head) {
		e.malformed(src, "read does not parse")
		return
	}
	if h.Elements {
		e.readElements(src, &h, addr, payload)
		return
	}
	e.servedRead()
	if h.Length != 0 {
		m, _, err := e.access(src, h.Key, addr, h.Length, fi.RemoteRead)
		if err != nil {
			e.answer(src, h.Request, &wire.Done{Status: e.refuseAccess(src, "read", h.Key, addr,
				h.Length, err), Units: h.Length, At: h.At})
			return
		}
		m.Gate.Leave()
	}
	if len(e.replies) >= maxReplies {
		e.answer(src, h.Request, &wire.Done{Status: fi.ENOMEM, Units: max(1, h.Length), At: h.At})
		return
	}
	s := e.senderOf(src)
	e.reply(reply{src: src, to: s, request: h.Request, key: h.Key, addr: addr, length: h.Length, at: h.At,
		ends: h.Ends})
	e.fillBack(src) // the data plane answers the next one
}

// servedRead counts a read of a peer.
func (e *rmaTarget) servedRead() { e.stats.Rx(stats.RxServedReads, 1) }

// reply sends a reply as far as there is room and keeps the rest.
func (e *rmaTarget) reply(r reply) {
	if len(e.replies) == 0 && e.pumpReply(&r) {
		return
	}
	e.replies = append(e.replies, r)
}

// pumpReplies sends what waited for room.
func (e *rmaTarget) pumpReplies() {
	e.replies.Step(e.pumpReply)
}

// pumpReply reports whether the reply is done with.
func (e *rmaTarget) pumpReply(r *reply) bool {
	for {
		p, err := e.connectBack(r.src, r.to)
		if err == nil {
			err = e.sendReply(p, r)
		}
		switch {
		case err == fi.EAGAIN:
			return false
		case err == fi.ENOKEY || err == fi.EACCES || err == fi.EIO:
			// The region was closed meanwhile, or is of a device that fails.
			d := wire.Done{Status: fi.ErrnoOf(err), Units: r.length - r.sent, At: r.at + r.sent}
			e.rx.answer(e.leasedEP, r.src, r.to, wire.AMRMADone, r.request, d.Put(e.rx.head[:]))
			e.dropReply(r)
			return true
		case err != nil:
			e.dropReply(r)
			return true
		case r.sent == r.length:
			if r.held == 0 && r.list == nil {
				e.wasRead(r.src, r.key, r.length, r.ends)
			}
			e.dropReply(r)
			return true
		}
	}
}

// wasRead counts n bytes of a read that replies have sent.
func (e *rmaTarget) wasRead(src hw.Source, key, n uint64, ends wire.Ends) {
	if c := e.remoteReadCntr.Load(); c != nil {
		c.Part(n, ends.Operation())
	}
	if m := e.domain.regions.Find(key); m != nil && m.Single && ends.Region() && e.reaches(m, src) {
		m.Owner.spend()
	}
}

// sendReply sends the next piece of a reply.
func (e *rmaTarget) sendReply(p *path, r *reply) error {
	if r.list != nil {
		return e.sendElements(p, r)
	}
	n := min(r.length-r.sent, uint64(p.port.attr.MaxAMBcopy))
	sc := &e.scratch[e.progressStripe]
	head := wire.PutWord(sc.head[:], r.at+r.sent)
	iov := e.regionIOV[:0]
	switch {
	case r.held != 0:
		iov = append(iov, fi.IOVec{Base: uintptr(r.held + r.sent), Len: n})
	case n != 0:
		m, offset, err := e.accessFor(e.linkBack(r.to), r.key, r.addr+r.sent, n, fi.RemoteRead)
		if err != nil {
			return err
		}
		defer m.Gate.Leave()
		iov = vector.Window(iov, m.Memory.Parts, offset, n)
	}
	err := e.sendPayload(p, wire.AMReadData, r.request, head, iov, int(n), e.progressStripe)
	if err == nil {
		r.sent += n
	}
	return err
}

// dropReply frees the result, or the elements, that a reply keeps.
func (e *rmaTarget) dropReply(r *reply) {
	if r.list != nil {
		e.elements.drop(r.list)
		r.list = nil
	}
	if r.held != 0 {
		e.rx.Pool.Put(r.held, int(r.length))
		r.held = 0
	}
}

// onAtomic performs an atomic operation and answers.
func (e *rmaTarget) onAtomic(src hw.Source, addr uint64, head, payload []byte) {
	var h wire.Atomic
	if !h.Parse(head) {
		e.malformed(src, "atomic does not parse")
		return
	}
	n, ok := h.Bytes(len(payload))
	if !ok {
		e.malformed(src, "operation %d on %d elements of datatype %d with %d bytes", h.Op, h.Count,
			h.Datatype, len(payload))
		return
	}
	e.stats.Rx(stats.RxServedAtomics, 1)
	status := e.performAtomic(src, &h, addr, n, payload)
	switch {
	case h.Request == 0: // the initiator has completed it
	case h.Kind == atomics.Base:
		e.answer(src, h.Request, &wire.Done{Status: status, Units: 1, At: wire.NoPlace})
		e.fillBack(src)
	case status != fi.Success:
		e.answer(src, h.Request, &wire.Done{Status: status, Units: n, At: wire.NoPlace})
	default:
		e.replyResult(src, &h, n)
		e.fillBack(src)
	}
}

// performAtomic performs an atomic operation on n bytes and leaves what was there before in e.atomicResult.
func (e *rmaTarget) performAtomic(src hw.Source, h *wire.Atomic, addr, n uint64, payload []byte) fi.Errno {
	rights := fi.RemoteWrite
	if h.Kind != atomics.Base {
		rights |= fi.RemoteRead
	}
	if h.Op == fi.OpRead {
		rights = fi.RemoteRead
	}
	m, offset, err := e.access(src, h.Key, addr, n, rights)
	if err != nil {
		return e.refuseAccess(src, "atomic", h.Key, addr, n, err)
	}
	defer m.Gate.Leave()
	j := atomics.Job{Op: h.Op, Datatype: h.Datatype, Result: unsafe.Pointer(&e.atomicResult[0])}
	if h.Op != fi.OpRead {
		j.Operand = unsafe.Pointer(unsafe.SliceData(payload))
	}
	if h.Kind == atomics.Compare {
		j.Compare = unsafe.Pointer(unsafe.SliceData(payload[len(payload)-int(n):]))
	}
	if err := hmem.ApplyAll(&j, vector.Window(e.regionIOV[:0], m.Memory.Parts, offset, n)); err != nil {
		return e.refuseAccess(src, "atomic", h.Key, addr, n, err)
	}
	e.countAtomic(m, h, n)
	return fi.Success
}

// countAtomic counts n bytes of an atomic operation at its target, where one that
// writes is a write, as far as its bytes go.
func (e *bindings) countAtomic(m *peerRegion, h *wire.Atomic, n uint64) {
	if h.Op != fi.OpRead {
		e.written(m, n, h.Ends)
	}
	if c := e.remoteReadCntr.Load(); h.Kind != atomics.Base && c != nil && (h.Op == fi.OpRead || !c.Bytes()) {
		c.Part(n, h.Ends.Operation())
	}
	if h.Ends.Region() {
		m.Owner.spend()
	}
}

// replyResult sends what an atomic operation fetched, or keeps it until there
// is room.
func (e *rmaTarget) replyResult(src hw.Source, h *wire.Atomic, n uint64) {
	s := e.senderOf(src)
	r := reply{src: src, to: s, request: h.Request, length: n, at: uint64(h.At),
		held: uint64(uintptr(unsafe.Pointer(&e.atomicResult[0])))}
	if len(e.replies) == 0 {
		p, err := e.connectBack(src, s)
		if err == nil {
			err = e.sendReply(p, &r)
		}
		if err != fi.EAGAIN {
			return
		}
	}
	if len(e.replies) < maxReplies {
		if addr, err := e.rx.Pool.Get(int(n)); err == nil {
			copy(bytesAt(addr, n), e.atomicResult[:n])
			r.held = addr
			e.replies = append(e.replies, r)
			return
		}
	}
	log.Warnf(log.EPData, "no memory for the result of an atomic operation")
	e.answer(src, h.Request, &wire.Done{Status: fi.ENOMEM, Units: n, At: wire.NoPlace})
}
