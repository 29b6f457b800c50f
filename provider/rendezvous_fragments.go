package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/hmem"
	"github.com/weft-fabric/weft/provider/wire"
)

// Where the receiver cannot read the sender's memory (the kernel refuses, the transport has no gets, the receive is
// into device memory), a rendezvous goes through bounce buffers: the receiver asks for the payload (CTS), and the
// sender's progress streams it in fragments, as many at a time as it has buffers, while the receiver copies the earlier
// ones out.

// id names the operation in fragments. A late or forged fragment carries
// another generation and is refused.
func (op *recvOp) id() uint64 { return uint64(op.gen)<<32 | uint64(op.index) }

// fragBroken in place of an offset says that the sender cannot go on.
const fragBroken = 1 << 63

// pull asks the sender for the payload in fragments.
func (r *leasedRx) pull(e *leasedEP, op *recvOp) {
	if op.want == 0 {
		r.finishOp(e, op)
		return
	}
	op.pulled, op.whole = true, true
	r.pulls[op.id()] = op.index
	c := wire.CTS{Operation: op.id(), Length: op.want}
	r.answer(e, hw.Source(op.src), op.sender(), wire.AMCTS, op.request, c.Put(r.head[:]))
}

// onFrag takes in a fragment. Fragments of one operation arrive in order.
func (e *leasedEP) onFrag(src hw.Source, header uint64, head, payload []byte) {
	offset, ok := wire.ParseWord(head)
	index, known := e.rx.pulls[header]
	if !ok || !known {
		e.malformed(src, "fragment of unknown operation %#x", header)
		return
	}
	op := e.rx.ops.At(index)
	if offset == fragBroken && op.sender() == e.senderOf(src) && op.ep == e.number && !op.keyed {
		op.status = fi.EIO
		e.rx.finishOp(e, op)
		return
	}
	if op.keyed || op.sender() != e.senderOf(src) || op.ep != e.number || offset != op.done ||
		uint64(len(payload)) > op.want-op.done {
		e.malformed(src, "fragment of %d bytes at %d, expected at %d of %d", len(payload), offset, op.done, op.want)
		return
	}
	e.stats.Rx(stats.RxFragments, 1)
	e.stats.Rx(stats.RxFragmentBytes, uint64(len(payload)))
	for _, s := range op.t.Segments(e.rx.local[:0], op.done, uint64(len(payload))) {
		if err := hmem.Store(uint64(uintptr(s.Addr)), payload[:s.Len]); err != nil && op.status == fi.Success {
			log.Warnf(log.EPData, "copy %d bytes to a device: %v", s.Len, err)
			op.status = fi.EIO // later fragments are taken in and lost
		}
		payload = payload[s.Len:]
		op.done += uint64(s.Len)
	}
	if op.done == op.want {
		e.rx.finishOp(e, op)
	}
}

// rendezvousOf returns the request of a rendezvous whose RTS has gone out to the peer of a source. Nothing of another
// request is read for a peer: its buffer may be the program's again.
func rendezvousOf(e *leasedEP, src hw.Source, id uint64) (*txRequest, bool) {
	req, known := e.requests.Lookup(id)
	if !known || req.Live.Load() != uint32(id>>32) || req.Flags&dataplane.RequestRTS == 0 ||
		!e.ownsLink(src, req.Link) {
		return nil, false
	}
	return req, true
}

// onCTS begins to stream a rendezvous.
func (e *leasedEP) onCTS(src hw.Source, header uint64, head, payload []byte) {
	var c wire.CTS
	req, known := rendezvousOf(e, src, header)
	if !c.Parse(head) || !known || c.Length > req.Length || req.Fragments.Limit != 0 {
		e.malformed(src, "request %#x is not to be sent in fragments", header)
		return
	}
	req.Fragments = dataplane.Fragments{Op: c.Operation, Limit: c.Length}
	e.streams = append(e.streams, header)
}

// pumpStream sends fragments of a request as far as there is room, and reports whether the stream is done with.
func (e *leasedEP) pumpStream(id *uint64) bool {
	req, known := e.requests.Lookup(*id)
	if !known {
		return true
	}
	l := e.linkAt(req.Link)
	lease := e.progressStripe
	f := &req.Fragments
	for f.Sent < f.Limit {
		p, ok := l.ready()
		if !ok {
			return true // the peer event ends the request
		}
		n := min(f.Limit-f.Sent, uint64(p.port.attr.MaxAMBcopy))
		sc := &e.scratch[lease]
		iov := window(sc.frag[:0], req.IOV[:req.Count], f.Sent, n)
		err := e.sendPayload(p, wire.AMFrag, f.Op, wire.PutWord(sc.head[:], f.Sent), iov, int(n), lease)
		if err == fi.EAGAIN {
			return false
		}
		if err != nil {
			log.Warnf(log.EPData, "fragment of %d bytes at %d of %d to %s: %v", n, f.Sent, f.Limit, l.to, err)
			e.rx.send(e, l, wire.AMFrag, f.Op, wire.PutWord(e.rx.head[:], fragBroken))
			return true // the receiver's acknowledgement ends the request
		}
		e.counts.Add(lease, stats.StripeFragments, 1)
		e.counts.Add(lease, stats.StripeFragmentBytes, n)
		f.Sent += n
	}
	return true
}

// window appends the pieces of a vector from offset to offset+n.
func window(to, iov []fi.IOVec, offset, n uint64) []fi.IOVec {
	for _, v := range iov {
		if offset >= v.Len {
			offset -= v.Len
			continue
		}
		take := min(v.Len-offset, n)
		if take == 0 {
			break
		}
		to = append(to, fi.IOVec{Base: v.Base + uintptr(offset), Len: take})
		offset = 0
		n -= take
	}
	return to
}

// stopStream forgets a stream whose request ends.
func (e *leasedEP) stopStream(id uint64) {
	e.streams.Step(func(s *uint64) bool { return *s == id })
}
