package provider

import (
	"encoding/binary"
	"errors"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/onesided"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/rma"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
	"github.com/weft-fabric/weft/stripe"
)

// Sending messages that the data plane leaves to the runtime, of which the first to each peer is one: send connects the
// link of the address and fills its line (connect, fill), and chooses how the message goes: with its payload (sendShort
// in send_copy.go, sendEager), with it and an acknowledgement (sendTracked, sendSync), or as a rendezvous (sendTracked,
// sendRTS).

// SendArgs describes one transmit.
type SendArgs struct {
	IOV     []fi.IOVec
	Dest    fi.Addr
	Tag     uint64
	Data    uint64
	Flags   uint64 // of this operation: op_flags are merged in already where the call has no flags
	Context uint64
	Tagged  bool
	HasData bool      // Data goes with the message
	Inject  bool      // fi_inject forms: never a completion
	On      Threshold // with fi.Trigger in Flags

	work     uint64 // the number of the deferred work that this is, or 0
	reported bool   // its success is reported already: it writes no completion
}

// sendFlags are the flags that a transmit may carry.
const sendFlags = fi.Completion | fi.More | fi.Inject | fi.InjectComplete | fi.TransmitComplete |
	fi.DeliveryComplete | fi.MatchComplete | fi.RemoteCQData | fi.Fence | fi.Priority

// ackFlags ask for an acknowledgement by the receiver.
const ackFlags = fi.DeliveryComplete | fi.MatchComplete

// txRequests are the operations that an endpoint has begun, and the memory that they use, by stripe.
type txRequests struct {
	stripes        *stripe.Set
	requests       transmits
	exposed        rkey.Table
	pendings       onesided.Pendings
	scratch        []scratch
	progressStripe int // the bounce buffers of the lease holder
}

// tracked reports whether the message, sent with its payload over p, completes, or is counted, when its receiver
// acknowledges it. One that stands in the receiver's ring has left the sender; one that a transport keeps to send it
// again would be lost with the process.
func (s *SendArgs) tracked(p *path) bool {
	return s.Flags&ackFlags != 0 || s.Flags&fi.TransmitComplete != 0 && p.transport.attr.Caps&hw.CapDirectRing == 0
}

// Send posts one message. It returns nil when the message was posted, and
// fi.EAGAIN when nothing happened and the caller may try again after progress.
// Other errors: fi.EOPBADSTATE (not enabled), fi.EBADFLAGS, fi.EINVAL (an
// address not in the AV, too many elements, too long to inject), fi.EMSGSIZE,
// and those of a peer that cannot be reached. With fi.Trigger the message is
// posted when a counter reaches a value.
func (e *Endpoint) Send(s *SendArgs) error {
	if s.Flags&fi.Trigger != 0 {
		return e.domain.triggeredSend(e, s)
	}
	err := e.send(s)
	e.domain.work.PostReady()
	return err
}

func (e *initiator) send(s *SendArgs) error {
	total, err := e.checkSend(s)
	if err != nil {
		return err
	}
	if (s.Inject || s.Flags&fi.Inject != 0) && hmem.AnyOnDevice(s.IOV) {
		return log.Reject(log.EPData, fi.EINVAL, "inject: only memory of the process itself")
	}
	if e.lossy {
		return e.sendLossy(s, total)
	}
	l, err := e.linkOf(s.Dest)
	if err != nil {
		return log.Reject(log.EPData, err, "send to address %d: %v", s.Dest, noLink(err))
	}
	defer l.Release()
	p, err := e.connect(l)
	if err != nil {
		return e.counts.Refused(err)
	}
	e.fill(s.Dest, l, p)
	if s.Flags&fi.Fence != 0 && (l.awaited() != 0 || e.pendings.To(s.Dest)) {
		return fi.EAGAIN
	}
	if !e.inTurn(l, ordering.Send) {
		return fi.EAGAIN
	}
	open := p.EagerOpen()
	eager := p.transport.eager
	p.transport.wake()
	switch {
	case s.tracked(p):
		return e.sendTracked(s, l, p, total, open && total <= eager)
	case open && total <= eager:
		return e.sendShort(s, l, p, total)
	}
	return e.sendTracked(s, l, p, total, false)
}

// noLink is the text of an error of linkOf.
func noLink(err error) string {
	if errors.Is(err, fi.EINVAL) {
		return "not in the address vector"
	}
	return err.Error()
}

// checkSend validates the arguments and returns the message's length.
func (e *peering) checkSend(s *SendArgs) (total uint64, err error) {
	if e.state.Load() != stateEnabled {
		return 0, fi.EOPBADSTATE
	}
	if s.Flags&^sendFlags != 0 {
		return 0, log.Reject(log.EPData, fi.EBADFLAGS, "send: flags %#x are not for a transmit", s.Flags&^sendFlags)
	}
	if len(s.IOV) > wire.IOVLimit {
		return 0, log.Reject(log.EPData, fi.EINVAL, "send: %d elements, at most %d", len(s.IOV), wire.IOVLimit)
	}
	for _, v := range s.IOV {
		if v.Len > wire.MaxMessage || v.Base == 0 && v.Len != 0 {
			return 0, log.Reject(log.EPData, fi.EINVAL, "send: element of %d bytes at %#x", v.Len, v.Base)
		}
		total += v.Len
	}
	most, inject := fi.OptMaxMsgSize, fi.OptInjectMsgSize
	if s.Tagged {
		most, inject = fi.OptMaxTaggedSize, fi.OptInjectTaggedSize
	}
	if n := e.size(most); total > n {
		return 0, log.Reject(log.EPData, fi.EMSGSIZE, "send: %d bytes, at most %d", total, n)
	}
	if n := e.size(inject); (s.Inject || s.Flags&fi.Inject != 0) && total > n {
		return 0, log.Reject(log.EPData, fi.EINVAL, "inject: %d bytes, at most %d", total, n)
	}
	return total, nil
}

// completes reports whether the transmit writes a completion.
func (e *bindings) completes(s *SendArgs) bool {
	return !s.Inject && e.txCompletes(s.work, s.Flags)
}

// txCompletes reports whether an operation with flags writes a completion. work is
// its number if it is deferred, else 0.
func (e *bindings) txCompletes(work, flags uint64) bool {
	return e.txCQ != nil && (!e.txSelective && work == 0 || flags&fi.Completion != 0)
}

// sendEager sends a message with its payload and completes it. starved: it found no bounce buffer, and none has been
// free for hot.StarvedMillis.
func (e *initiator) sendEager(s *SendArgs, p *path, total uint64) (starved bool, err error) {
	lease, ok := e.stripes.Acquire(0)
	if !ok {
		e.stats.Shared(stats.SharedNoStripe, 1)
		return false, fi.EAGAIN
	}
	defer e.stripes.Release(lease)
	if e.completes(s) && !e.txCQ.Room(1+lease) {
		e.counts.Add(lease, stats.StripeNoCQ, 1)
		return false, fi.EAGAIN
	}
	id, head := wire.AMMsg, []byte(nil)
	if s.Tagged {
		id = wire.AMTag
	}
	sc := &e.scratch[lease]
	if s.HasData {
		id++
		head = binary.LittleEndian.AppendUint64(sc.head[:0], s.Data)
	}
	err = e.sendPayload(&p.Path, id, s.Tag, head, s.IOV, int(total), lease)
	starved = e.starve(p, lease, total, err)
	if err == nil {
		e.sent(s, 1+lease, total)
	}
	err = e.broken(err)
	e.counts.Posted(lease, stats.StripeEager, total, err)
	return starved, err
}

// sent completes and counts a message of total bytes that is sent, on a ring of the queue:
// a stripe's, or 0.
func (e *initiator) sent(s *SendArgs, ring int, total uint64) {
	if entry := txEntry(s.Context, s.Tagged); e.completes(s) && (ring == 0 || !e.txCQ.TryComplete(ring, entry)) {
		e.txCQ.Complete(entry) // another thread may have taken the room: nothing is lost
	}
	e.countWork(e.txCntr.Load(), s.work, s.Flags&fi.Completion != 0, false, total)
}

// maxShort is the most payload that is gathered before it is sent: that of the transport that takes most, a NIC of
// Slingshot. Longer ones are packed.
const maxShort = 192

// scratch is memory of one stripe for building messages, so that posting
// allocates nothing. The lease holder owns it.
type scratch struct {
	head [wire.RTSBytes]byte
	body [maxShort]byte
	host []byte                      // what was copied from devices, as long as a bounce buffer when it is needed
	frag [2 * wire.IOVLimit]fi.IOVec // the vector of a fragment, or of operands and comparands
	from vector.Gatherer             // what pack gathers
	pack func([]byte)                // bound once
	keys [wire.IOVLimit * rkey.MaxKey]byte
}

func newScratch(n int) []scratch {
	s := make([]scratch, n)
	for i := range s {
		sc := &s[i]
		sc.pack = sc.from.Next
	}
	return s
}

// sendPayload sends head and the vector's bytes in one active message over a
// leased stripe.
func (e *initiator) sendPayload(
	p *rma.Path, id hw.AMID, header uint64, head []byte, iov []fi.IOVec, total, lease int,
) error {
	sc := &e.scratch[lease]
	if hmem.AnyOnDevice(iov) {
		var err error
		if iov, err = sc.fetch(iov, total); err != nil {
			return log.Reject(log.EPData, fi.EIO, "copy %d bytes from a device: %v", total, err)
		}
	}
	if total <= len(sc.body) && total+len(head) <= p.On.Attr.MaxAMShort {
		vector.Gather(sc.body[:total], iov)
		return outcome.OfPost(p.AMShort(id, header, head, sc.body[:total]))
	}
	sc.from = vector.Gatherer{IOV: iov}
	err := p.AMBcopy(id, header, head, total, sc.pack, lease)
	sc.from = vector.Gatherer{}
	return outcome.OfPost(err)
}

// fetch copies a vector of which parts are device memory to the stripe's own,
// so that what fails does so before a message is begun.
func (sc *scratch) fetch(iov []fi.IOVec, total int) ([]fi.IOVec, error) {
	if len(sc.host) < total {
		sc.host = make([]byte, total)
	}
	at := sc.host
	for _, v := range iov {
		if err := hmem.Load(at[:v.Len], uint64(v.Base)); err != nil {
			return nil, err
		}
		at = at[v.Len:]
	}
	sc.frag[0] = fi.IOVec{Base: uintptr(addressOfBytes(sc.host)), Len: uint64(total)}
	return sc.frag[:1], nil
}

// txEntry is the completion of a transmit.
func txEntry(context uint64, tagged bool) cq.Entry {
	flags := fi.Send | fi.Msg
	if tagged {
		flags = fi.Send | fi.Tagged
	}
	return cq.Entry{Context: context, Flags: flags, Src: fi.AddrNotAvail}
}

// txRequest is a transmit that waits for its receiver's acknowledgement.
type txRequest = dataplane.Request

// Bits of its flags that only this package knows.
const (
	txExposed  uint64 = dataplane.RequestMore << iota // the receiver may get the payload
	txAsked                                           // deferred work for which a completion is asked, by fi.Completion
	txReported                                        // its success is reported already
)

// sendTracked sends a message that the receiver acknowledges: with its payload if eager, else as a rendezvous, of which
// the RTS goes out now.
func (e *initiator) sendTracked(s *SendArgs, l *link, p *path, total uint64, eager bool) error {
	lease, ok := e.stripes.Acquire(0)
	if !ok {
		e.stats.Shared(stats.SharedNoStripe, 1)
		return fi.EAGAIN
	}
	defer e.stripes.Release(lease)
	req, id, ok := e.requests.Alloc(lease)
	if !ok {
		e.counts.Add(lease, stats.StripeNoRequest, 1)
		return fi.EAGAIN
	}
	req.Begin(s.Context, total, dataplane.RequestFlags(s.Tagged, e.completes(s)), l.Index)
	req.Work, req.Count = s.work, uint32(copy(req.IOV[:], s.IOV))
	if s.work != 0 && s.Flags&fi.Completion != 0 {
		req.Flags |= txAsked
	}
	if s.reported {
		req.Flags |= txReported
	}
	if !eager {
		req.Flags |= dataplane.RequestRTS
		if s.Inject || s.Flags&fi.Inject != 0 {
			e.keepInject(req, id, s, total)
		}
	}
	l.transmits.Add(1)
	req.Live.Store(uint32(id >> 32))
	var err error
	word := stats.StripeRendezvous
	if eager {
		word = stats.StripeSync
		err = e.sendSync(s, p, id, int(total), lease)
	} else {
		err = e.sendRTS(s, p, req, id, total, lease)
	}
	if err != nil && req.Live.CompareAndSwap(uint32(id>>32), 0) { // else linkLost was faster, and has completed it
		l.transmits.Add(-1)
		e.conceal(req, id)
		e.requests.Free(id)
		err = e.broken(err)
	} else {
		err = nil
	}
	e.counts.Posted(lease, word, total, err)
	return err
}

// sendSync sends a message with its payload that the receiver acknowledges.
func (e *initiator) sendSync(s *SendArgs, p *path, id uint64, total, lease int) error {
	m := wire.Sync{Request: id, Data: s.Data, Flags: wireBits(s)}
	return e.sendPayload(&p.Path, wire.AMSync, s.Tag, m.Put(e.scratch[lease].head[:]), s.IOV, total, lease)
}

// sendRTS sends the RTS of a rendezvous. Its elements are addresses of this process where the transport reads a peer's
// memory (hw.CapPeerMemory), keys where it reads registered memory (package rkey); else the receiver asks for fragments
// (wire.FlagNoGet).
func (e *initiator) sendRTS(s *SendArgs, p *path, req *txRequest, id, total uint64, lease int) error {
	r := wire.RTS{Request: id, Length: total, Data: s.Data, Flags: wireBits(s) &^ wire.FlagMatch, Count: req.Count}
	for i, v := range req.IOV[:req.Count] {
		r.IOV[i] = hw.RemoteSegment{Addr: uint64(v.Base), Len: v.Len}
	}
	if p.transport.attr.Caps&hw.CapPeerMemory == 0 {
		r.Flags |= wire.FlagNoGet
		if p.transport.exposes() && !hmem.AnyOnDevice(s.IOV) {
			return e.sendExposed(s, p, req, id, &r, lease)
		}
	}
	if hmem.AnyOnDevice(s.IOV) {
		e.deviceRTS(&r, s, p)
	} else if r.Flags&wire.FlagNoGet == 0 {
		e.accesses.Own(req.IOV[:req.Count], atomic.SwapUint64(&e.hot.RTSBytes, 0))
	}
	return outcome.OfPost(p.AMShort(wire.AMRTS, s.Tag, r.Put(e.scratch[lease].head[:]), nil))
}

// sendExposed sends the RTS of a message whose payload the receiver gets (package rendezvous).
func (e *initiator) sendExposed(s *SendArgs, p *path, req *txRequest, id uint64, r *wire.RTS, lease int) error {
	sc := &e.scratch[lease]
	n := e.expose(p.transport.on.Device, req, id, r, sc.keys[:])
	payload := [1]fi.IOVec{{Base: uintptr(unsafe.Pointer(&sc.keys[0])), Len: uint64(n)}}
	return e.sendPayload(&p.Path, wire.AMRTS, s.Tag, r.Put(sc.head[:]), payload[:], n, lease)
}

// wireBits are the flags of an RTS or of an wire.AMSync for a message.
func wireBits(s *SendArgs) uint32 {
	flags := dataplane.RTSFlags(s.Tagged, s.HasData)
	if s.Flags&fi.MatchComplete != 0 {
		flags |= wire.FlagMatch
	}
	return flags
}

// keepInject copies an injected payload to the request's own buffer, because the caller may reuse its own at once.
func (e *txRequests) keepInject(req *txRequest, id uint64, s *SendArgs, total uint64) {
	if total == 0 {
		return
	}
	buf := e.requests.injectBuffer(id)
	vector.Gather(buf[:total], s.IOV)
	req.IOV[0] = fi.IOVec{Base: uintptr(unsafe.Pointer(&buf[0])), Len: total}
	req.Count = 1
}

// finishTx ends a tracked transmit that the caller has found and claimed, by changing its Live to 0.
func (e *leasedEP) finishTx(req *txRequest, id uint64, status fi.Errno) {
	e.conceal(req, id)
	e.rendezvous.Ended(id)
	e.linkAt(req.Link).transmits.Add(-1)
	entry := txEntry(req.Context, req.Flags&dataplane.RequestTagged != 0)
	switch {
	case status != fi.Success:
		e.counts.Failed(status)
		// one that is reported has succeeded: it stands in the ring of a peer that dies
		if e.txCQ != nil && req.Flags&txReported == 0 {
			e.txCQ.CompleteError(entry, cq.ErrorInfo{Err: status})
		}
	case req.Flags&dataplane.RequestCompletes != 0:
		e.txCQ.Complete(entry)
	}
	if req.Flags&txReported == 0 {
		e.countWork(e.txCntr.Load(), req.Work, req.Flags&txAsked != 0, status != fi.Success, req.Length)
	} else {
		e.requests.copies.Add(-1)
	}
	e.requests.Free(id)
}
