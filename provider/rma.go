package provider

import (
	"fmt"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Reads and writes that the data plane leaves to the runtime, at their initiator. rma chooses the way: a copy by this
// thread (rma_direct.go), mappings of memory of devices (rma_mapped.go), segments under a congestion window
// (segment_rma.go), a device (rma_device.go), or messages that the target performs and answers (postRMA here,
// provider/internal/onesided there).

// RMAArgs describes one read or write.
type RMAArgs struct {
	IOV     []fi.IOVec    // local memory
	Remote  []fi.RMAIOVec // the peer's, as long in all as IOV
	Dest    fi.Addr
	Data    uint64
	Flags   uint64 // of this operation: op_flags are merged in already where the call has no flags
	Context uint64
	Read    bool
	HasData bool      // Data goes with the write
	Inject  bool      // fi_inject_write forms: never a completion
	On      Threshold // with fi.Trigger in Flags

	work     uint64 // as in SendArgs
	listed   bool   // an element of a list: FI_WEFT_TOKEN_WAYS holds
	unmapped bool   // it has been tried by mappings, in vain
	// local is memory that the device of the path knows for all elements of a list, nil: none
	local *rkey.Local
	more  bool // another operation to the peer follows at once, or path.Uncork
	later bool // with fi.DeliveryComplete: what a device writes need not be in its place when it ends (flushDevice)
}

const (
	writeFlags = sendFlags &^ fi.MatchComplete
	readFlags  = fi.Completion | fi.More | fi.Fence | fi.Priority | fi.InjectComplete | fi.TransmitComplete |
		fi.DeliveryComplete
)

// RMA posts one read or write. It returns nil when the operation was posted,
// and fi.EAGAIN when nothing happened and the caller may try again after
// progress. What the target refuses (an unknown key, a range or a right that
// the region does not have) comes back in an error completion. Other errors:
// fi.EOPBADSTATE (not enabled), fi.EBADFLAGS, fi.EINVAL (an address not in the
// AV, too many elements, lengths that differ, too long to inject),
// fi.EMSGSIZE, and those of a peer that cannot be reached. With fi.Trigger the
// operation is posted when a counter reaches a value.
func (e *Endpoint) RMA(a *RMAArgs) error {
	if a.Flags&fi.Trigger != 0 {
		return e.domain.triggeredRMA(e, a)
	}
	err := e.rma(a)
	e.domain.work.PostReady()
	return err
}

func (e *Endpoint) rma(a *RMAArgs) error {
	total, err := e.checkRMA(a)
	if err != nil {
		return err
	}
	l, p, err := e.peerFor(a.Dest, a.Flags)
	if err != nil {
		return err
	}
	defer l.Release()
	return a.post(e, l, p, total)
}

// post posts a read or write of total bytes, which is checked, over a path. The caller holds its link.
func (a *RMAArgs) post(e *Endpoint, l *link, p *path, total uint64) error {
	kind := ordering.Update
	if a.Read {
		kind = ordering.Read
	}
	if !e.inTurn(l, kind) {
		return fi.EAGAIN
	}
	inject := a.Inject || a.Flags&fi.Inject != 0
	if !inject {
		if done, err := a.postMapped(e, l, p, total); done {
			return e.broken(err)
		}
	}
	// what is injected leaves the caller's memory at once
	segmented := !inject && !e.orderedRMA() && e.segmented(p.port, total) && e.mayTake(a, WayMessage)
	if !segmented && e.mayTake(a, WayIPC) {
		if done, err := e.direct(a, l, p, total); done {
			return err
		}
	}
	if !e.mayTake(a, WayMessage) && !e.deviceLeads(a, p) {
		return e.refuse(fi.EOPNOTSUPP,
			"%d bytes to address %d: the ways of FI_WEFT_TOKEN_WAYS do not lead there", total, a.Dest)
	}
	var r rmaRequest
	var err error
	e.describe(&r, a, l, total)
	if segmented {
		r.flags |= rmaSegmented
		if a.Flags&fi.DeliveryComplete != 0 && !a.Read {
			r.flags |= rmaDelivers
		}
		r.left.Store(0)
	} else if op, why := e.newDeviceOp(a, l, p, total); op != nil {
		err := e.postDevice(l, &r, op)
		l.countListed(&e.initiator, a, err, WayRDMA, total)
		return err
	} else if !e.mayTake(a, WayMessage) {
		return p.notByDevice(e, a, why)
	}
	err = e.postRMA(l, p, &r, inject)
	if !segmented {
		l.countListed(&e.initiator, a, err, WayMessage, total)
	}
	return err
}

// describe makes r, which is zero, the request for an operation of total bytes.
func (e *bindings) describe(r *rmaRequest, a *RMAArgs, l *link, total uint64) {
	r.context, r.work, r.dest, r.total, r.data = a.Context, a.work, uint64(a.Dest), total, a.Data
	r.link, r.count, r.parts = l.index, uint32(len(a.IOV)), uint32(len(a.Remote))
	copy(r.iov[:], a.IOV)
	copy(r.remote[:], a.Remote)
	switch {
	case a.Read:
		r.flags = rmaIsRead
	case a.hasData():
		r.flags = rmaHasData
	}
	r.left.Store(r.units())
	if r.parts == 0 {
		r.parts, r.remote[0] = 1, fi.RMAIOVec{} // an operation on nothing, which may carry data
	}
	if e.rmaCompletes(a) {
		r.flags |= rmaCompletes
	}
	if a.Flags&fi.Completion != 0 {
		r.flags |= rmaAsked
	}
	if a.listed {
		r.flags |= rmaListed
	}
}

// peerFor returns the path to an address for an operation with flags, and the
// link, which it holds for the caller unless there is an error. Errors as of
// Send.
func (e *initiator) peerFor(dest fi.Addr, flags uint64) (*link, *path, error) {
	l, err := e.linkOf(dest)
	if err != nil {
		return nil, nil, e.refuse(err, "operation to address %d: %v", dest, noLink(err))
	}
	p, err := e.connect(l)
	if err == nil && flags&fi.Fence != 0 && (l.awaited() != 0 || e.pendings.To(dest)) {
		err = fi.EAGAIN
	}
	if err != nil {
		l.Release()
		return nil, nil, e.counts.Refused(err)
	}
	p.port.wake()
	e.fill(dest, l, p)
	return l, p, nil
}

// checkRMA validates the arguments and returns the operation's length.
func (e *peering) checkRMA(a *RMAArgs) (uint64, error) {
	what, allowed := "write", writeFlags
	if a.Read {
		what, allowed = "read", readFlags
	}
	if e.state.Load() != stateEnabled {
		return 0, fi.EOPBADSTATE
	}
	if a.Flags&^allowed != 0 {
		return 0, e.refuse(fi.EBADFLAGS, "%s: flags %#x are not for it", what, a.Flags&^allowed)
	}
	if len(a.IOV) > wire.IOVLimit || len(a.Remote) > wire.IOVLimit {
		return 0, e.refuse(fi.EINVAL, "%s: %d local and %d remote elements, at most %d", what,
			len(a.IOV), len(a.Remote), wire.IOVLimit)
	}
	local, remote := uint64(0), uint64(0)
	for _, v := range a.IOV {
		if v.Len > wire.MaxMessage || v.Base == 0 && v.Len != 0 {
			return 0, e.refuse(fi.EINVAL, "%s: element of %d bytes at %#x", what, v.Len, v.Base)
		}
		local += v.Len
	}
	for _, v := range a.Remote {
		if v.Len > wire.MaxMessage {
			return 0, e.refuse(fi.EMSGSIZE, "%s: remote element of %d bytes, at most %d", what,
				v.Len, uint64(wire.MaxMessage))
		}
		remote += v.Len
	}
	if local != remote {
		return 0, e.refuse(fi.EINVAL, "%s: %d bytes here, %d there", what, local, remote)
	}
	if n := e.size(fi.OptMaxRMASize); local > n {
		return 0, e.refuse(fi.EMSGSIZE, "%s: %d bytes, at most %d", what, local, n)
	}
	if n := e.size(fi.OptInjectRMASize); (a.Inject || a.Flags&fi.Inject != 0) && local > n {
		return 0, e.refuse(fi.EINVAL, "inject: %d bytes, at most %d", local, n)
	}
	return local, nil
}

// hasData reports whether the operation is a write with CQ data.
func (a *RMAArgs) hasData() bool { return a.HasData || a.Flags&fi.RemoteCQData != 0 }

// roomFor reports whether the operation writes a completion, and whether there is room for that.
func (e *bindings) roomFor(a *RMAArgs) (completes, room bool) {
	completes = e.rmaCompletes(a)
	return completes, !completes || e.txCQ.Room(0)
}

// rmaCompletes reports whether the operation writes a completion.
func (e *bindings) rmaCompletes(a *RMAArgs) bool {
	return !a.Inject && e.txCompletes(a.work, a.Flags)
}

// postRMA puts a request into the table and sends its first messages. What
// does not fit into the peer's ring is left to progress.
func (e *initiator) postRMA(l *link, p *path, r *rmaRequest, inject bool) error {
	lease, ok := e.stripes.Acquire(0)
	if !ok {
		e.stats.Shared(stats.SharedNoStripe, 1)
		return fi.EAGAIN
	}
	defer e.stripes.Release(lease)
	req, id, ok := e.rmas.Alloc(lease)
	if !ok {
		e.counts.Add(lease, stats.StripeNoRequest, 1)
		return fi.EAGAIN
	}
	if r.flags&(rmaSegmented|rmaElements) == 0 {
		r.dropEmpty()
	}
	req.set(r)
	if inject && r.parts > 1 {
		e.keepRMAInject(req, id)
	}
	l.inFlight.Add(1)
	e.begun(l, req)
	if r.flags&rmaSegmented != 0 {
		e.queueRMA(id)
		e.counts.OneSided(lease, r.countedAs(), r.operations(), r.total)
		return nil
	}
	err := e.pumpRMA(p, req, id, lease)
	switch {
	case err == nil:
		// The peer may be gone by now, and its answer stand in the ring: the request ends with
		// that, or when the end is reported (linkLost), which is after the last message.
		e.counts.OneSided(lease, r.countedAs(), r.operations(), r.total)
		return nil
	case fi.ErrnoOf(err) == fi.EAGAIN && (req.sent != 0 || req.part != 0):
		e.held(l)
		e.queueRMA(id)
		e.counts.OneSided(lease, r.countedAs(), r.operations(), r.total)
		return nil
	case req.sent != 0 || req.part != 0:
		e.held(l)
		e.queueRMA(id) // progress finds the path broken and completes with an error
		return nil
	}
	l.inFlight.Add(-1)
	e.over(l, req)
	e.rmas.Free(id)
	err = e.broken(err)
	e.counts.Posted(lease, 0, 0, err) // it is an error
	return err
}

// errUnanswered is fi.EAGAIN where the last message of a request waits until what was sent before is answered.
var errUnanswered = fmt.Errorf("messages are not answered yet: %w", fi.EAGAIN)

// pumpRMA sends the rest of a request's messages, as far as there is room. nil says that all are sent: then the request
// may be gone. What carries CQ data may have to wait for answers to what was sent before (errUnanswered). The caller
// owns the request (it posts it, or holds the progress lease and found it queued) and the lease of the stripe.
func (e *initiator) pumpRMA(p *path, req *rmaRequest, id uint64, lease int) error {
	if req.part == 0 && req.sent == 0 {
		req.via = p.serial
	} else if req.via != p.serial {
		return fi.ECONNRESET // a later path is of a peer that knows nothing of the first messages
	}
	if req.flags&rmaElements != 0 {
		return e.sendElements(p, req, id, lease)
	}
	for {
		part := &req.remote[req.part]
		count, n := req.joined(p)
		if count == 1 {
			if n = part.Len - req.sent; req.flags&(rmaIsRead|rmaIsAtomic) == 0 {
				n = min(n, uint64(p.port.attr.MaxAMBcopy))
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
		if err := e.sendNext(p, req, id, count, n, lease); err != nil {
			if last && !e.claimRMA(id) {
				return nil // linkLost was faster
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
func (e *initiator) sendNext(p *path, req *rmaRequest, id uint64, count uint32, n uint64, lease int) error {
	if count > 1 {
		return e.sendJoined(p, req, id, count, n, lease)
	}
	return e.sendRMA(p, req, id, &req.remote[req.part], n, lease)
}

// sendRMA sends the message for the next n bytes of a part.
func (e *initiator) sendRMA(p *path, req *rmaRequest, id uint64, part *fi.RMAIOVec, n uint64, lease int) error {
	sc := &e.scratch[lease]
	addr := part.Addr + req.sent
	if req.flags&rmaIsRead != 0 {
		h := wire.Read{Key: part.Key, Request: id, Length: n, At: req.done,
			Ends: req.ends(req.part, n == part.Len)}
		return outcome.OfPost(p.AMShort(wire.AMRead, addr, h.Put(sc.head[:]), nil))
	}
	if req.flags&rmaIsAtomic != 0 {
		return e.sendAtomic(p, req, id, part, lease)
	}
	h := wire.Write{Key: part.Key, Request: id, Data: req.data, Length: req.total}
	if req.sent+n == part.Len {
		h.Flags |= wire.WriteAck
	}
	req.mark(&h, req.part, req.sent, req.sent+n == part.Len)
	return e.sendPayload(p, wire.AMWrite, addr, h.Put(sc.head[:]), vector.Window(sc.frag[:0], req.iov[:req.count],
		req.done, n), int(n), lease)
}

// keepRMAInject copies what a request sends to its own buffer when it may not be sent at once, because the caller may
// reuse its memory.
func (e *initiator) keepRMAInject(req *rmaRequest, id uint64) {
	n := int(e.hot.InjectMax)
	i := e.rmas.Index(id) * n
	room := e.rmaInject[i : i+n]
	keep := func(iov *[wire.IOVLimit]fi.IOVec, count *uint32) {
		size := uint64(0)
		for _, v := range iov[:*count] {
			size += v.Len
		}
		if size == 0 {
			return
		}
		vector.Gather(room[:size], iov[:*count])
		iov[0], *count = fi.IOVec{Base: uintptr(unsafe.Pointer(&room[0])), Len: size}, 1
		room = room[size:]
	}
	if req.flags&rmaIsAtomic != 0 {
		keep(&req.operand, &req.operands)
		return
	}
	keep(&req.iov, &req.count)
}
