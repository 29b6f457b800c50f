package rma

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Reads and writes in segments. A segment is an operation of a device where that reaches the region (deviceMover in
// segments_device.go), a copy where the initiator reaches the target's memory by itself, and else messages, which the
// target answers (messageMover).

// startTransfer gives a queued request to the flow of its link. It reports false if there is no path.
func (pr *Protocol) startTransfer(req *Request, id uint64) bool {
	l := pr.in.host.Link(req.link)
	p, ok := pr.in.host.Ready(l)
	if !ok {
		return false
	}
	f := pr.FlowOf(l, p)
	if f == nil {
		return false
	}
	t := pr.flows.Transfer(id, pr.moverOf(req, id, l, f))
	if pr.transfers == nil {
		pr.transfers = map[uint64]*flow.Transfer{}
	}
	pr.transfers[id] = t
	t.Grain = flow.Grain(p.Endpoint, req.flags&flagIsRead != 0)
	f.Begin(t, req.total)
	return true
}

// moverOf chooses how the segments of a request move: by the device, as messages, or as copies.
func (pr *Protocol) moverOf(req *Request, id uint64, l *Link, f *Flow) flow.Mover {
	in, listed := pr.in, req.flags&flagListed != 0
	if req.flags&(flagDelivers|flagMessages) != 0 { // messages are answered when they are in place
		return in.moverByMessages(req, l, f)
	}
	a := Operation{
		Listed: listed, IOV: req.iov[:req.count], Remote: req.remote[:req.parts],
		Read: req.flags&flagIsRead != 0, HasData: req.flags&flagHasData != 0,
	}
	op, _ := in.newDeviceOp(&a, l, f.path, req.total)
	if op == nil {
		return in.moverByMessages(req, l, f)
	}
	op.id = id
	in.counts.Shared(stats.SharedDevice, 1)
	in.took(l, listed, list.WayRDMA, req.total)
	return &deviceMover{Flow: f, op: op}
}

// moverByMessages moves a request's segments as messages, or copies them.
func (in *Initiator) moverByMessages(req *Request, l *Link, f *Flow) flow.Mover {
	listed, way := req.flags&flagListed != 0, list.WayMessage
	if f.path.On.Attr.Caps&DirectCaps == DirectCaps {
		if in.mayTake(listed, list.WayIPC) {
			way = list.WayIPC
		} else {
			req.flags |= flagMessages
		}
	}
	in.took(l, listed, way, req.total)
	return messageMover{f}
}

// messageMover moves the data of requests.
type messageMover struct{ *Flow }

// Lost is true: a peer that is gone answers nothing.
func (messageMover) Lost() bool { return true }

// End completes the request.
func (m messageMover) End(t *flow.Transfer) {
	delete(m.pr.transfers, t.ID)
	if req, ok := m.pr.in.requests.Lookup(t.ID); ok {
		m.pr.end(req, t.ID, t.Status)
	}
}

// Post copies a segment, or sends the messages that move it.
func (m messageMover) Post(t *flow.Transfer, seg congestion.Segment) (ended, posted bool) {
	req, ok := m.pr.in.requests.Lookup(t.ID)
	if !ok || m.path.Err() != nil {
		return t.Fail(seg, fi.ECONNRESET)
	}
	_, _, _, left := req.locate(uint64(seg.Offset))
	if left < uint64(seg.Length) {
		t.Trim(&seg, int64(left))
	}
	if req.dataWaits() && uint64(seg.Offset+seg.Length) == req.total && t.Flying() {
		return t.Unpost(seg)
	}
	if done, err := m.direct(req, seg); err != nil {
		return t.Fail(seg, fi.ECONNRESET)
	} else if done {
		t.Ended(seg, 0)
		return true, true
	}
	if req.flags&flagIsRead != 0 {
		return m.postRead(t, req, seg)
	}
	return t.SendSegment(seg)
}

// direct copies a segment if the transport can. The last segment of a write with CQ data is a message, which carries
// it.
func (m messageMover) direct(req *Request, seg congestion.Segment) (bool, error) {
	in, p := m.pr.in, m.path
	if p.On.Attr.Caps&DirectCaps != DirectCaps || req.flags&flagMessages != 0 ||
		hmem.AnyOnDevice(req.iov[:req.count]) {
		return false, nil
	}
	if req.flags&flagHasData != 0 && uint64(seg.Offset+seg.Length) == req.total {
		return false, nil
	}
	if in.host.Overtakes(p, fi.Addr(req.dest)) {
		return false, nil
	}
	_, part, at, _ := req.locate(uint64(seg.Offset))
	a := Operation{IOV: req.iov[:req.count], Read: req.flags&flagIsRead != 0}
	piece := fi.RMAIOVec{Addr: part.Addr + at, Len: uint64(seg.Length), Key: part.Key}
	err := copyPart(&a, p, &piece, uint64(seg.Offset))
	if errors.Is(err, hw.ErrPeerDead) {
		return false, err
	}
	if err != nil {
		req.flags |= flagMessages // refused or not possible: the peer says why, or does it
	}
	return err == nil, nil
}

// postRead asks for a segment.
func (m messageMover) postRead(t *flow.Transfer, req *Request, seg congestion.Segment) (ended, posted bool) {
	number, part, at, _ := req.locate(uint64(seg.Offset))
	h := wire.Read{Key: part.Key, Request: t.ID, Length: uint64(seg.Length), At: uint64(seg.Offset),
		Ends: req.ends(uint32(number), at+uint64(seg.Length) == part.Len)}
	head := h.Put(m.pr.in.scratch[m.pr.in.progress].head[:])
	err := outcome.OfPost(m.path.AMShort(wire.AMRead, part.Addr+at, head, nil))
	switch {
	case errors.Is(err, fi.EAGAIN):
		return t.Unpost(seg)
	case err != nil:
		return t.Fail(seg, fi.ErrnoOf(err))
	}
	req.left.Add(uint64(seg.Length))
	t.Flies(seg, uint64(seg.Length))
	return false, true
}

// Send sends the next message of a write's segment. The last asks for an answer.
func (m messageMover) Send(t *flow.Transfer, at, most uint64) (n uint64, err error) {
	in, p := m.pr.in, m.path
	req, ok := in.requests.Lookup(t.ID)
	if !ok {
		return 0, fi.ECONNRESET
	}
	number, part, offset, _ := req.locate(at)
	n = min(most, uint64(p.On.Attr.MaxAMBcopy))
	sc := &in.scratch[in.progress]
	h := wire.Write{Key: part.Key, Request: t.ID, Data: req.data, Length: req.total}
	if n == most {
		h.Flags |= wire.WriteAck
	}
	req.mark(&h, uint32(number), offset, offset+n == part.Len)
	err = in.host.Send(p, wire.AMWrite, part.Addr+offset, h.Put(sc.head[:]), vector.Window(sc.frag[:0],
		req.iov[:req.count], at, n), int(n), in.progress)
	if err == nil && n == most {
		req.left.Add(1)
	}
	return n, err
}

// segmentAnswered takes in the target's answer to a request in segments: bytes of a read, or segments of a write, which
// are answered in order. It reports false if no segment waits for it.
func (pr *Protocol) segmentAnswered(req *Request, id, at, units uint64, status fi.Errno) bool {
	t := pr.transfers[id]
	return t != nil && t.Answered(at, units, status, &req.left)
}
