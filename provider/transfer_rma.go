package provider

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/provider/wire"
)

// Reads and writes in segments. Where the initiator reaches the target's memory by itself, a segment is a copy; else it
// is messages, which the target answers.

// startTransfer gives a queued request to the flow of its link. It reports false if there is no path.
func (e *leasedEP) startTransfer(req *rmaRequest, id uint64) bool {
	l := e.linkAt(req.link)
	p, ok := l.ready()
	if !ok {
		return false
	}
	n := e.flowOf(l, p)
	if n == nil {
		return false
	}
	t := e.newTransfer(id, e.moverOf(req, id, l, p))
	if e.transfers == nil {
		e.transfers = map[uint64]*transfer{}
	}
	e.transfers[id] = t
	t.Grain = n.grain(req.flags&rmaIsRead != 0)
	n.start(t, req.total)
	return true
}

// rmaMover moves the data of requests.
type rmaMover struct{}

func (rmaMover) lost() bool { return true }

func (rmaMover) finish(t *transfer) {
	delete(t.e.transfers, t.id)
	if req, ok := t.e.rmas.Lookup(t.id); ok {
		t.e.finishRMA(req, t.id, t.status)
	}
}

// locate returns the remote element in which byte at of an operation is: its
// number, itself, where in it, and how much of it follows.
func (req *rmaRequest) locate(at uint64) (number int, part *fi.RMAIOVec, offset, left uint64) {
	for i := range req.remote[:req.parts] {
		number, part = i, &req.remote[i]
		if at < part.Len {
			break
		}
		at -= part.Len
	}
	return number, part, at, part.Len - at
}

func (rmaMover) post(t *transfer, seg congestion.Segment) (ended, posted bool) {
	req, ok := t.e.rmas.Lookup(t.id)
	if !ok || t.flow.path.Err() != nil {
		return t.fail(seg, fi.ECONNRESET)
	}
	_, _, _, left := req.locate(uint64(seg.Offset))
	if left < uint64(seg.Length) {
		t.flow.Trim(&t.Operation, &seg, int64(left))
	}
	if done, err := t.direct(req, seg); err != nil {
		return t.fail(seg, fi.ECONNRESET)
	} else if done {
		t.ended(seg, 0)
		return true, true
	}
	if req.flags&rmaIsRead != 0 {
		return t.postRead(req, seg)
	}
	t.part, t.sent, t.flow.sending = flight{segment: seg}, 0, t
	return false, t.proceed()
}

// direct copies a segment if the transport can. The last segment of a write with CQ data is a message, which carries
// it.
func (t *transfer) direct(req *rmaRequest, seg congestion.Segment) (bool, error) {
	e, p := t.e, t.flow.path
	if p.port.attr.Caps&directCaps != directCaps || req.flags&rmaMessages != 0 || anyOnDevice(req.iov[:req.count]) {
		return false, nil
	}
	if req.flags&rmaHasData != 0 && uint64(seg.Offset+seg.Length) == req.total {
		return false, nil
	}
	if e.putPending(p, fi.Addr(req.dest)) {
		return false, nil
	}
	_, part, at, _ := req.locate(uint64(seg.Offset))
	key, err := p.Endpoint.(hw.KeyDirectory).FindKey(part.Key)
	if err == nil {
		a := RMAArgs{IOV: req.iov[:req.count], Read: req.flags&rmaIsRead != 0}
		piece := fi.RMAIOVec{Addr: part.Addr + at, Len: uint64(seg.Length), Key: part.Key}
		err = e.directPart(&a, p, &piece, key, uint64(seg.Offset))
	}
	if errors.Is(err, hw.ErrPeerDead) {
		return false, err
	}
	if err != nil {
		req.flags |= rmaMessages // refused or not possible: the peer says why, or does it
	}
	return err == nil, nil
}

// postRead asks for a segment.
func (t *transfer) postRead(req *rmaRequest, seg congestion.Segment) (ended, posted bool) {
	_, part, at, _ := req.locate(uint64(seg.Offset))
	h := wire.Read{Key: part.Key, Request: t.id, Length: uint64(seg.Length), At: uint64(seg.Offset),
		Last: uint64(seg.Offset+seg.Length) == req.total}
	head := h.Put(t.e.scratch[t.e.progressStripe].head[:])
	err := sendError(t.flow.path.AMShort(wire.AMRead, part.Addr+at, head, nil))
	switch {
	case err == fi.EAGAIN:
		return t.unpost(seg)
	case err != nil:
		return t.fail(seg, fi.ErrnoOf(err))
	}
	req.left.Add(uint64(seg.Length))
	t.flying = append(t.flying, flight{seg, uint64(seg.Length)})
	return false, true
}

// proceed sends the messages of a write's segment, as far as there is room, and
// reports whether it is done with it.
func (t *transfer) proceed() bool {
	e, n, seg := t.e, t.flow, t.part.segment
	req, ok := e.rmas.Lookup(t.id)
	for ok && t.sent < uint64(seg.Length) {
		err := t.sendWrite(req, uint64(seg.Offset)+t.sent, uint64(seg.Length)-t.sent)
		if err == fi.EAGAIN {
			return false
		}
		if err != nil {
			n.sending = nil
			t.fail(seg, fi.ErrnoOf(err))
			return true
		}
	}
	n.sending = nil
	t.flying = append(t.flying, flight{seg, 1})
	return true
}

// sendWrite sends the next message of a segment of which most bytes are left.
// The last asks for an answer.
func (t *transfer) sendWrite(req *rmaRequest, at, most uint64) error {
	e, p := t.e, t.flow.path
	_, part, offset, _ := req.locate(at)
	n := min(most, uint64(p.port.attr.MaxAMBcopy))
	sc := &e.scratch[e.progressStripe]
	h := wire.Write{Key: part.Key, Request: t.id, Data: req.data, Length: req.total}
	if n == most {
		h.Flags |= wire.WriteAck
	}
	if at+n == req.total {
		h.Flags |= wire.WriteLast
		if req.flags&rmaHasData != 0 {
			h.Flags |= wire.WriteData
		}
	}
	err := e.sendPayload(p, wire.AMWrite, part.Addr+offset, h.Put(sc.head[:]), window(sc.frag[:0],
		req.iov[:req.count], at, n), int(n), e.progressStripe)
	if err == nil {
		t.sent += n
		if n == most {
			req.left.Add(1)
		}
	}
	return err
}

// segmentAnswered takes in the target's answer to a request in segments: bytes of a read, or segments of a write, which
// are answered in order. It reports false if no segment waits for it.
func (e *leasedEP) segmentAnswered(req *rmaRequest, id uint64, d *wire.Done) bool {
	t := e.transfers[id]
	if t == nil {
		return false
	}
	if d.Status != fi.Success && t.status == fi.Success {
		t.status = d.Status
	}
	n, units := t.flow, d.Units
	for units > 0 {
		i := t.flightAt(d.At)
		if i < 0 {
			return false
		}
		f := &t.flying[i]
		took := min(units, f.left)
		units -= took
		req.left.Add(-took)
		if f.left -= took; f.left > 0 {
			continue
		}
		seg := f.segment
		t.flying = append(t.flying[:i], t.flying[i+1:]...)
		last := len(t.flying) == 0
		t.ended(seg, 0)
		if last {
			break // the transfer may have ended
		}
	}
	n.pump(e)
	return true
}

// flightAt returns which segment in flight byte at of the operation is of: the
// first for noPlace; -1 for none.
func (t *transfer) flightAt(at uint64) int {
	for i := range t.flying {
		s := &t.flying[i].segment
		if at == wire.NoPlace || at >= uint64(s.Offset) && at < uint64(s.Offset+s.Length) {
			return i
		}
	}
	return -1
}
