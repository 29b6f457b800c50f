package provider

import (
	"fmt"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/cuda"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/target"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/provider/match"
)

// Long messages are package rendezvous's. Here are their matching, and the endpoint as rendezvous have it.

// readMax is the longest message of a rendezvous, in bytes, that the data plane has the shim read (hot.EP.ReadMax), 0
// for none: shorter than what the sender copies a share of and what is cut into segments; none where a progress thread
// does the copies.
func (e *peering) readMax() uint32 {
	p := e.ports[0]
	if p.attr.Caps&hw.CapPeerMemory == 0 || e.rx.offload {
		return 0
	}
	return uint32(e.wholeMax(p, rendezvous.Burst, e.domain.cfg.AssistSize))
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

// startRendezvous begins to read a matched message into t. multi is the multi-receive buffer that t is part of, or nil.
func (r *leasedRx) startRendezvous(t target.Target, multi *match.Recv, a *arrived, rts *wire.RTS) {
	m := rendezvous.Message{
		Target: t, Src: a.src, Sender: a.source, Number: a.number, Tag: a.tag, Data: a.data, Flags: a.flags,
		Length: rts.Length, Request: a.request, Multi: uint64(uintptr(unsafe.Pointer(multi))),
	}
	if !a.ep.rendezvous.Start(m, rts) {
		r.sendAck(a, fi.ENOMEM)
		t.Flags |= r.endPiece(multi, a.flags)
		r.endRecv(t, a.tag, fi.ENOMEM)
	}
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

// rendezvousHost is an endpoint as rendezvous have it.
type rendezvousHost struct{ *leasedEP }

// arrivedAs is a message as it was when it arrived.
func (e rendezvousHost) arrivedAs(m *rendezvous.Message) arrived {
	return arrived{ep: e.leasedEP, source: m.Sender, number: m.Number, src: m.Src, tag: m.Tag, data: m.Data,
		length: m.Length, request: m.Request, flags: m.Flags}
}

// Closed reports whether the endpoint closes or has closed.
func (e rendezvousHost) Closed() bool { return e.state.Load() == stateClosed }

// Count adds to a counter of the lease holder's.
func (e rendezvousHost) Count(counter int, n uint64) { e.stats.Rx(counter, n) }

// Malformed counts and logs a message that a peer should not have sent.
func (e rendezvousHost) Malformed(src hw.Source, format string, args ...any) {
	e.malformed(src, format, args...)
}

// TakeKeys reads the keys of an RTS.
func (e rendezvousHost) TakeKeys(src hw.Source, rts *wire.RTS, payload []byte) bool {
	return e.takeKeys(src, rts, payload)
}

// Arrived matches the message of an RTS and begins to read it, or keeps the RTS as unexpected.
func (e rendezvousHost) Arrived(src hw.Source, header uint64, m *wire.RTS) {
	from := e.senderOf(src)
	e.fillBack(src) // the data plane acknowledges the next one
	a := arrived{ep: e.leasedEP, source: from.id, number: from.number, src: src, tag: header, data: m.Data,
		length: m.Length, request: m.Request, flags: msgRTS}
	if m.Flags&wire.FlagTagged != 0 {
		a.flags |= msgTagged
	}
	if m.Flags&wire.FlagData != 0 {
		a.flags |= msgData
	}
	r := e.rx
	if r.owner != nil {
		if !r.offerPeer(&a, nil, m) {
			e.postpone(src)
		}
		return
	}
	eng := r.Engine(a.flags&msgTagged != 0)
	switch rv := r.find(eng, a.source, a.tag); {
	case rv == nil:
		if !r.holdRTS(eng, &a, m) {
			e.postpone(src)
		}
	case rv.Kept():
		r.rendezvousMulti(eng, rv, &a, m)
	default:
		t := targetIn(rv)
		eng.Release(rv)
		r.startRendezvous(t, nil, &a, m)
	}
}

// IsFrom reports whether a source is the sender of a message.
func (e rendezvousHost) IsFrom(src hw.Source, m *rendezvous.Message) bool {
	return e.senderOf(src) == sender{m.Sender, m.Number}
}

// Back connects to the sender of a message.
func (e rendezvousHost) Back(m *rendezvous.Message) (rendezvous.Path, error) {
	p, err := e.connectBack(m.Src, sender{m.Sender, m.Number})
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Answer sends a message about the sender's request.
func (e rendezvousHost) Answer(m *rendezvous.Message, id hw.AMID, head []byte) {
	e.rx.answer(e.leasedEP, m.Src, sender{m.Sender, m.Number}, id, m.Request, head)
}

// Words are the words of messages that a source shares with this side.
func (e rendezvousHost) Words(src hw.Source) *claim.Words {
	return claim.MessageWords(e.sourceWords(src))
}

// Reads reports whether the memory of a source's process can be read.
func (e rendezvousHost) Reads(src hw.Source) bool { return e.reads(src) }

// Gets reports whether memory that a source exposes can be read.
func (e rendezvousHost) Gets(src hw.Source) bool { return e.gets(src) }

// Maps reports whether memory of devices may be moved from process to process.
func (e rendezvousHost) Maps() bool { return e.p2p.Load() != fi.HMEMP2PDisabled }

// Offload reports whether the progress thread does the copies.
func (e rendezvousHost) Offload() bool { return e.rx.offload }

// Segmented reports whether n bytes over a port are cut into segments.
func (e rendezvousHost) Segmented(port uint32, n uint64) bool { return e.segmented(e.ports[port], n) }

// Flow returns the flow over the path to a message's sender.
func (e rendezvousHost) Flow(m *rendezvous.Message, p rendezvous.Path) *rendezvous.Flow {
	n := e.flowOf(e.linkBack(sender{m.Sender, m.Number}), p.(*path))
	if n == nil {
		return nil
	}
	return n.reads
}

// Fetch begins to map memory of another process's device.
func (e rendezvousHost) Fetch(pid uint32, token, near uint64) rendezvous.Memory {
	a := cuda.Foreign{PID: int(pid), Token: token}
	device := e.info.Caps&fi.HMEM != 0 && cuda.Load() == nil
	return foreignMemory{e.domain.mappings.Fetch(a, near, device, e.rx.ring)}
}

// foreignMemory is memory of another process's device as rendezvous have it.
type foreignMemory struct{ *hmem.Memory }

// Do calls f with the mapping.
func (m foreignMemory) Do(f func(rendezvous.Mapping) error) bool {
	return m.Memory.Do(func(x *hmem.Mapping) error { return f(x) })
}

// Finish completes a message on both sides.
func (e rendezvousHost) Finish(m *rendezvous.Message, done uint64, status fi.Errno) {
	r, a, t := e.rx, e.arrivedAs(m), &m.Target
	flags := t.Flags | r.endPiece((*match.Recv)(pointerAt(m.Multi)), m.Flags)
	if status != fi.Success {
		e.recvError(cq.Entry{
			Context: t.Context, Flags: recvKind(flags) | flags&fi.MultiRecv, Len: done, Buf: t.Named(),
			Data: m.Data, Tag: m.Tag, Src: e.addrOf(m.Sender),
		}, flags, cq.ErrorInfo{Err: status})
	} else {
		e.completeRecv(t.Context, flags, t.Named(), done, &a)
	}
	// On another host a connection may be lost and the sender not.
	if status != fi.ECONNRESET || a.src > sourceMask && e.lives(a.src, a.sender()) {
		r.sendAck(&a, status)
	}
	r.release(*t)
}

// Abandon ends the receive of a message whose endpoint has left the receive context: it was posted to the context, and
// fails at an endpoint that stays.
func (e rendezvousHost) Abandon(m *rendezvous.Message) {
	r, t := e.rx, m.Target
	t.Flags |= r.endPiece((*match.Recv)(pointerAt(m.Multi)), m.Flags)
	r.endRecv(t, m.Tag, fi.ECANCELED)
}

// SenderOf names the sender of a message.
func (e rendezvousHost) SenderOf(m *rendezvous.Message) fmt.Stringer {
	return e.rx.addressOf(sender{m.Sender, m.Number})
}

// Request returns a request of the endpoint.
func (e rendezvousHost) Request(id uint64) (*dataplane.Request, bool) { return e.requests.Lookup(id) }

// Owns reports whether a source is the peer of a link.
func (e rendezvousHost) Owns(src hw.Source, link uint32) bool { return e.ownsLink(src, link) }

// CameOver reports whether a source is of the port that a path leads over.
func (e rendezvousHost) CameOver(src hw.Source, p rendezvous.Path) bool {
	return p.Port() == uint32(src>>sourcePortShift)
}

// Path returns the path of a link if it works.
func (e rendezvousHost) Path(link uint32) (rendezvous.Path, bool) {
	p, ok := e.linkAt(link).ready()
	if !ok {
		return nil, false
	}
	return p, true
}

// Send sends a message to the peer of a link.
func (e rendezvousHost) Send(link uint32, id hw.AMID, header uint64, head []byte) {
	e.rx.send(e.leasedEP, e.linkAt(link), id, header, head)
}

// Fragment sends a part of a request, and counts it.
func (e rendezvousHost) Fragment(p rendezvous.Path, req *dataplane.Request, from, n uint64) error {
	lease := e.progressStripe
	sc := &e.scratch[lease]
	iov := vector.Window(sc.frag[:0], req.IOV[:req.Count], from, n)
	err := e.sendPayload(p.(*path), wire.AMFrag, req.Fragments.Op, wire.PutWord(sc.head[:], from), iov, int(n), lease)
	if err == nil {
		e.counts.Add(lease, stats.StripeFragments, 1)
		e.counts.Add(lease, stats.StripeFragmentBytes, n)
	}
	return err
}

// Exposed are the regions of a request that its receiver may read.
func (e rendezvousHost) Exposed(request uint64) []hw.Memory { return e.exposed.Of(request) }

// PeerOf names the peer of a link.
func (e rendezvousHost) PeerOf(link uint32) fmt.Stringer { return e.linkAt(link).to }

// Port is the number of the path's port.
func (p *path) Port() uint32 { return p.port.number }

// Attr is what the port can.
func (p *path) Attr() *hw.Attr { return &p.port.attr }

// PortDevice registers memory with the port.
func (p *path) PortDevice() rkey.Device { return p.port.device() }
