package rma

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Post posts a read or write of total bytes over a path. The caller holds its link, and has found the operation to be
// in turn (package ordering). Errors: fi.EAGAIN while there is no room; fi.EOPNOTSUPP, fi.ENOMEM and others for an
// element of a list that no way leads for.
func (in *Initiator) Post(a *Operation, l *Link, p *Path, total uint64) error {
	inject := a.Injects()
	// what is injected leaves the caller's memory at once
	segmented := !inject && !in.rules.On() && in.Segmented(p.On, total) && in.mayTake(a.Listed, list.WayMessage)
	if !segmented && in.mayTake(a.Listed, list.WayIPC) {
		if done, err := in.direct(a, l, p, total); done {
			return err
		}
	}
	if !in.mayTake(a.Listed, list.WayMessage) && !in.deviceLeads(a, p) {
		return log.Reject(log.EPData, fi.EOPNOTSUPP,
			"%d bytes to address %d: the ways of FI_WEFT_TOKEN_WAYS do not lead there", total, a.Dest)
	}
	var r Request
	var err error
	in.describe(&r, a, l, total)
	if segmented {
		r.flags |= flagSegmented
		if a.Flags&fi.DeliveryComplete != 0 && !a.Read {
			r.flags |= flagDelivers
		}
		r.left.Store(0)
	} else if op, why := in.newDeviceOp(a, l, p, total); op != nil {
		if err = in.postDevice(l, &r, op); err == nil {
			in.took(l, a.Listed, list.WayRDMA, total)
		}
		return err
	} else if !in.mayTake(a.Listed, list.WayMessage) {
		return notByDevice(p, a, why)
	}
	if err = in.post(l, p, &r, inject); err == nil && !segmented {
		in.took(l, a.Listed, list.WayMessage, total)
	}
	return err
}

// Segmented reports whether an operation of n bytes over a transport is cut into segments.
func (in *Initiator) Segmented(on *Transport, n uint64) bool {
	return on.Segments && n > uint64(in.cfg.MinSegment)
}

// describe makes r, which is zero, the request for an operation of total bytes.
func (in *Initiator) describe(r *Request, a *Operation, l *Link, total uint64) {
	r.context, r.work, r.dest, r.total, r.data = a.Context, a.Work, uint64(a.Dest), total, a.Data
	r.link, r.count, r.parts = l.Index, uint32(len(a.IOV)), uint32(len(a.Remote))
	copy(r.iov[:], a.IOV)
	copy(r.remote[:], a.Remote)
	switch {
	case a.Read:
		r.flags = flagIsRead
	case a.WithData():
		r.flags = flagHasData
	}
	r.left.Store(r.units())
	if r.parts == 0 {
		r.parts, r.remote[0] = 1, fi.RMAIOVec{} // an operation on nothing, which may carry data
	}
	if in.completes(a) {
		r.flags |= flagCompletes
	}
	if a.Flags&fi.Completion != 0 {
		r.flags |= flagAsked
	}
	if a.Listed {
		r.flags |= flagListed
	}
}

// post puts a request into the table and sends its first messages. What
// does not fit into the peer's ring is left to progress.
func (in *Initiator) post(l *Link, p *Path, r *Request, inject bool) error {
	req, id, lease, ok := in.alloc()
	if !ok {
		return fi.EAGAIN
	}
	defer in.stripes.Release(lease)
	if r.flags&(flagSegmented|flagElements) == 0 {
		r.dropEmpty()
	}
	req.set(r)
	if inject && r.parts > 1 {
		in.keepInject(req, id)
	}
	l.InFlight.Add(1)
	in.begun(l, req)
	if r.flags&flagSegmented != 0 {
		in.leaveToProgress(id)
		in.counts.OneSided(lease, r.countedAs(), r.operations(), r.total)
		return nil
	}
	err := in.pump(p, req, id, lease)
	switch {
	case err == nil:
		// The peer may be gone by now, and its answer stand in the ring: the request ends with
		// that, or when the end is reported, which is after the last message.
		in.counts.OneSided(lease, r.countedAs(), r.operations(), r.total)
		return nil
	case fi.ErrnoOf(err) == fi.EAGAIN && (req.sent != 0 || req.part != 0):
		in.unsent(l)
		in.leaveToProgress(id)
		in.counts.OneSided(lease, r.countedAs(), r.operations(), r.total)
		return nil
	case req.sent != 0 || req.part != 0:
		in.unsent(l)
		in.leaveToProgress(id) // progress finds the path broken and completes with an error
		return nil
	}
	l.InFlight.Add(-1)
	in.over(l, req)
	in.requests.Free(id)
	err = in.host.Broken(err)
	in.counts.Posted(lease, 0, 0, err) // it is an error
	return err
}

// errUnanswered is fi.EAGAIN where the last message of a request waits until what was sent before is answered.
var errUnanswered = fmt.Errorf("messages are not answered yet: %w", fi.EAGAIN)

// pump sends the rest of a request's messages, as far as there is room. nil says that all are sent: then the request
// may be gone. What carries CQ data may have to wait for answers to what was sent before (errUnanswered). The caller
// owns the request (it posts it, or holds the progress lease and found it queued) and the lease of the stripe.
func (in *Initiator) pump(p *Path, req *Request, id uint64, lease int) error {
	if req.part == 0 && req.sent == 0 {
		req.by = p.Serial
	} else if req.by != p.Serial {
		return fi.ECONNRESET // a later path is of a peer that knows nothing of the first messages
	}
	if req.flags&flagElements != 0 {
		return in.sendElements(p, req, id, lease)
	}
	for {
		part := &req.remote[req.part]
		count, n := req.joined(p)
		if count == 1 {
			if n = part.Len - req.sent; req.flags&(flagIsRead|flagIsAtomic) == 0 {
				n = min(n, uint64(p.On.Attr.MaxAMBcopy))
			}
		}
		ends := count > 1 || n == part.Len-req.sent
		last := ends && req.part+count == req.parts
		if last && req.dataWaits() && req.left.Load() > uint64(count) {
			return errUnanswered
		}
		if last && req.dataWaits() && req.status != fi.Success {
			return req.status
		}
		if last {
			req.live.Store(uint32(id >> 32))
		}
		if err := in.sendNext(p, req, id, count, n, lease); err != nil {
			if last && !in.claim(id) {
				return nil // the report of the end was faster
			}
			return err
		}
		if last {
			return nil
		}
		req.sent += n
		req.done += n
		if ends {
			req.part += count
			req.sent = 0
		}
	}
}

// sendNext sends the next message of a request, of n bytes of so many parts.
func (in *Initiator) sendNext(p *Path, req *Request, id uint64, count uint32, n uint64, lease int) error {
	if count > 1 {
		return in.sendJoined(p, req, id, count, n, lease)
	}
	return in.sendPart(p, req, id, &req.remote[req.part], n, lease)
}

// sendPart sends the message for the next n bytes of a part.
func (in *Initiator) sendPart(p *Path, req *Request, id uint64, part *fi.RMAIOVec, n uint64, lease int) error {
	sc := &in.scratch[lease]
	addr := part.Addr + req.sent
	if req.flags&flagIsRead != 0 {
		h := wire.Read{Key: part.Key, Request: id, Length: n, At: req.done,
			Ends: req.ends(req.part, n == part.Len)}
		return outcome.OfPost(p.AMShort(wire.AMRead, addr, h.Put(sc.head[:]), nil))
	}
	if req.flags&flagIsAtomic != 0 {
		return in.sendAtomic(p, req, id, part, lease)
	}
	h := wire.Write{Key: part.Key, Request: id, Data: req.data, Length: req.total}
	if req.sent+n == part.Len {
		h.Flags |= wire.WriteAck
	}
	req.mark(&h, req.part, req.sent, req.sent+n == part.Len)
	return in.host.Send(p, wire.AMWrite, addr, h.Put(sc.head[:]), vector.Window(sc.frag[:0], req.iov[:req.count],
		req.done, n), int(n), lease)
}
