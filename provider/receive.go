package provider

import (
	"encoding/binary"
	"sync/atomic"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/match"
	"github.com/weft-fabric/weft/provider/names"
)

// defaultMinMultiRecv is the FI_OPT_MIN_MULTI_RECV of a new endpoint, bytes.
const defaultMinMultiRecv = 64

// RecvArgs describes one receive.
type RecvArgs struct {
	IOV     []fi.IOVec
	Src     fi.Addr
	Tag     uint64
	Ignore  uint64
	Flags   uint64
	Context uint64
	Tagged  bool
	On      Threshold // with fi.Trigger in Flags

	work uint64 // the number of the deferred work that this is, or 0
}

// entry is the receive as it stands on the post ring, but for its buffer.
func (a *RecvArgs) entry() hot.RecvEntry {
	e := hot.RecvEntry{Flags: a.Flags, Src: uint64(a.Src), Tag: a.Tag, Ignore: a.Ignore, Context: a.Context}
	if a.Tagged {
		e.Flags |= hot.RecvTagged
	}
	if anyOnDevice(a.IOV) {
		e.Flags |= hot.RecvDevice
	}
	if a.work != 0 {
		e.Flags |= hot.RecvWork
		e.Context = a.work
	}
	return e
}

// recvFlags are the flags that a receive may carry.
const recvFlags = fi.Completion | fi.More | fi.MultiRecv | fi.Peek | fi.Claim | fi.Discard

// postRecv validates a receive and pushes it on the post ring. Errors:
// fi.EAGAIN when the ring is full and another thread is making progress,
// fi.EBADFLAGS, fi.EINVAL.
func (r *rxContext) postRecv(a *RecvArgs) error {
	if r.owner != nil {
		return fi.ENOSYS // they are posted with the owner
	}
	if err := r.checkRecv(a); err != nil {
		return err
	}
	entry := a.entry()
	switch len(a.IOV) {
	case 0:
	case 1:
		entry.Buf, entry.Len = uint64(a.IOV[0].Base), a.IOV[0].Len
	default:
		return r.postVector(&entry, a.IOV)
	}
	var err error
	if a.Flags&urgentRecv != 0 {
		err = r.pushUrgent(&entry)
	} else {
		err = r.push(&entry)
	}
	if st := r.stats.Load(); err != nil && st != nil {
		st.Shared(stats.SharedNoPost, 1)
	}
	return err
}

// urgentRecv are the flags of entries that nobody may leave on the post ring
// until something arrives: they complete without an arrival.
const urgentRecv = hot.RecvCancel | fi.Peek | fi.Claim

// pushUrgent pushes an entry with one of the flags urgentRecv and acts on it at
// once. If another thread makes progress, that one or the next poll does.
func (r *rxContext) pushUrgent(entry *hot.RecvEntry) error {
	r.urgent.Add(1) // U1: before the entry is there, so that it is never too low
	if err := r.push(entry); err != nil {
		r.urgent.Add(-1)
		return err
	}
	atomic.StoreUint32(&r.hot.WantPosts, 1) // U2: pairs with publish
	if r.take() {
		r.drainPosts()
		r.publish()
		r.give()
	} else {
		r.ring() // the holder may be done already
	}
	return nil
}

// push puts an entry on the post ring, making room if this thread can.
func (r *rxContext) push(entry *hot.RecvEntry) error {
	for range 2 {
		slot, pos, ok := r.posts.Claim(0, r.hot.Flags&hot.RxExclusive != 0)
		if ok {
			seq := (*hot.RecvEntry)(slot).Seq
			entry.Seq = seq
			*(*hot.RecvEntry)(slot) = *entry
			r.posts.Publish(slot, 0, pos)
			if atomic.LoadUint32(&r.hot.WantPosts) != 0 {
				r.ring()
			}
			return nil
		}
		if !r.take() {
			return fi.EAGAIN
		}
		r.drainPosts()
		r.publish()
		r.give()
	}
	return fi.EAGAIN
}

// postVector posts a receive of several elements. Their list outlives the
// call, so it needs memory that the lease protects; the receives that are on
// the ring already come first.
func (r *rxContext) postVector(entry *hot.RecvEntry, iov []fi.IOVec) error {
	if !r.take() {
		return fi.EAGAIN
	}
	defer r.give()
	addr, err := r.pool.Get(len(iov) * iovBytes)
	if err != nil {
		return fi.ENOMEM
	}
	copy(vectorAt(addr, len(iov)), iov)
	entry.Buf, entry.Len = addr, uint64(len(iov))
	entry.Flags |= hot.RecvIOV
	r.drainPosts()
	r.post(entry)
	r.publish()
	return nil
}

func (r *rxContext) checkRecv(a *RecvArgs) error {
	bad := func(err error, format string, args ...any) error {
		log.Warnf(log.EPData, format, args...)
		return err
	}
	if a.Flags&^recvFlags != 0 {
		return bad(fi.EBADFLAGS, "receive: flags %#x are not for a receive", a.Flags&^recvFlags)
	}
	if len(a.IOV) > iovLimit {
		return bad(fi.EINVAL, "receive: %d elements, at most %d", len(a.IOV), iovLimit)
	}
	for _, v := range a.IOV {
		if v.Base == 0 && v.Len != 0 {
			return bad(fi.EINVAL, "receive: element of %d bytes at address 0", v.Len)
		}
	}
	search := a.Flags & (fi.Peek | fi.Claim | fi.Discard)
	switch {
	case a.Flags&fi.MultiRecv != 0 && (a.Tagged || len(a.IOV) != 1 || search != 0):
		return bad(fi.EINVAL, "receive: FI_MULTI_RECV takes one buffer for untagged messages")
	case a.Flags&fi.MultiRecv != 0 && a.IOV[0].Len < r.minMulti.Load():
		return bad(fi.ETOOSMALL, "receive: multi-receive buffer of %d bytes, at least %d", a.IOV[0].Len, r.minMulti.Load())
	case search != 0 && !a.Tagged:
		return bad(fi.EBADFLAGS, "receive: FI_PEEK, FI_CLAIM and FI_DISCARD are for tagged receives")
	case search == fi.Discard:
		return bad(fi.EBADFLAGS, "receive: FI_DISCARD needs FI_PEEK or FI_CLAIM")
	case search == fi.Peek|fi.Claim|fi.Discard:
		return bad(fi.EBADFLAGS, "receive: FI_CLAIM and FI_DISCARD exclude each other in a peek")
	}
	return nil
}

// simpleRecv are the flags of a receive that is only queued or matched.
const simpleRecv = hot.RecvTagged | hot.RecvIOV | hot.RecvDevice | fi.Completion | fi.More

// post acts on a receive that came off the ring.
func (r *rxContext) post(entry *hot.RecvEntry) {
	tagged := entry.Flags&hot.RecvTagged != 0
	eng := r.engine(tagged)
	switch {
	case entry.Flags&hot.RecvCancel != 0:
		r.cancel(entry.Context)
		return
	case entry.Flags&(fi.Peek|fi.Claim) != 0:
		r.search(eng, entry)
		return
	case entry.Flags&fi.MultiRecv != 0:
		r.postMulti(eng, entry)
		if r.ended {
			r.cancelRecvs()
		}
		return
	}
	rv, m := eng.Post(r.sourceOf(fi.Addr(entry.Src)), entry.Tag, entry.Ignore)
	switch {
	case m != nil:
		r.deliverHeld(eng, targetOf(entry), m)
	case rv != nil:
		rv.Buf, rv.Len, rv.Context, rv.Flags = entry.Buf, entry.Len, entry.Context, entry.Flags
	default:
		r.endRecv(targetOf(entry), entry.Tag, fi.ENOMEM)
	}
	if r.ended {
		r.cancelRecvs()
	}
}

// target is where a receive wants its message, and what its completion says.
type target struct {
	buf, len uint64 // the buffer, or with hot.RecvIOV a vector from the pool and its elements
	context  uint64
	flags    uint64
	entry    uint64 // of the owner of an imported context, 0: the receive is weft's
}

func targetOf(entry *hot.RecvEntry) target {
	return target{buf: entry.Buf, len: entry.Len, context: entry.Context, flags: entry.Flags}
}

func targetIn(rv *match.Recv) target {
	return target{buf: rv.Buf, len: rv.Len, context: rv.Context, flags: rv.Flags}
}

// buffer is the address that a completion names: the target's first byte.
func (t *target) buffer() uint64 {
	if t.flags&hot.RecvDevice != 0 {
		return appAddress(t.first())
	}
	return t.first()
}

// first is where the target's first byte is.
func (t *target) first() uint64 {
	if t.flags&hot.RecvIOV == 0 {
		return t.buf
	}
	return uint64(vectorAt(t.buf, 1)[0].Base)
}

// room is the target's length in bytes.
func (t *target) room() uint64 {
	if t.flags&hot.RecvIOV == 0 {
		return t.len
	}
	sum := uint64(0)
	for _, v := range vectorAt(t.buf, int(t.len)) {
		sum += v.Len
	}
	return sum
}

// scatter copies payload to the target as far as it reaches and returns the
// bytes copied. It fails only for memory of devices.
func (t *target) scatter(payload []byte) (uint64, error) {
	if t.flags&hot.RecvDevice != 0 {
		return t.scatterDevice(payload)
	}
	return t.scatterHost(payload), nil
}

func (t *target) scatterHost(payload []byte) uint64 {
	if t.flags&hot.RecvIOV == 0 {
		return uint64(copy(bytesAt(t.buf, min(t.len, uint64(len(payload)))), payload))
	}
	done := 0
	for _, v := range vectorAt(t.buf, int(t.len)) {
		done += copy(bytesAt(uint64(v.Base), v.Len), payload[done:])
	}
	return uint64(done)
}

// release frees the target's vector.
func (r *rxContext) release(t target) {
	if t.flags&hot.RecvIOV != 0 {
		r.pool.Put(t.buf, int(t.len)*iovBytes)
	}
	if t.entry != 0 {
		r.owner.Free(t.entry)
	}
}

// arrived is a message at the moment of its arrival or delivery.
type arrived struct {
	ep      *Endpoint
	source  uint32 // identity
	number  uint8  // which of the source's interfaces
	src     hw.Source
	tag     uint64
	data    uint64
	length  uint64 // bytes of the whole message
	request uint64 // the sender's, for the acknowledgement
	flags   uint64 // msg* bits
}

// Bits of arrived.flags and match.Message.Flags; the latter has the source and
// the number of the endpoint above them.
const (
	msgTagged uint64 = 1 << iota
	msgData          // data is valid
	msgRTS           // the payload is with the sender: Payload is the address of an rts
	msgSync          // the sender waits for an acknowledgement
)

const (
	msgSrcShift    = 8  // hw.Source, 24 bits
	msgNumberShift = 32 // 8 bits
	msgEPShift     = 40 // 24 bits
)

// onEager returns the handler of the active messages that carry a complete
// message.
func (e *Endpoint) onEager(flags uint64) hw.Handler {
	return func(src hw.Source, header uint64, head, payload []byte) {
		s := e.senderOf(src)
		a := arrived{ep: e, source: s.id, number: s.number, tag: header, length: uint64(len(payload)), flags: flags}
		switch {
		case flags&msgData == 0:
		case len(head) == 8:
			a.data = binary.LittleEndian.Uint64(head)
		default:
			e.malformed(src, "message with %d bytes of CQ data", len(head))
			return
		}
		e.rx.arrive(&a, payload)
	}
}

// onPlain returns the handler of complete messages without CQ data. It does
// the common case with as few steps as there can be, for an endpoint whose
// receives all complete on a queue and nowhere else; the rest is onEager's.
func (e *Endpoint) onPlain(eng *match.Engine, flags uint64) hw.Handler {
	rest := e.onEager(flags)
	kind := fi.Recv | fi.Msg
	if flags&msgTagged != 0 {
		kind = fi.Recv | fi.Tagged
	}
	return func(src hw.Source, header uint64, head, payload []byte) {
		from, met := e.known(src)
		if !e.plainRecv || !met {
			rest(src, header, head, payload)
			e.fillSource(src)
			return
		}
		id := from.id
		rv := eng.Arrive(id, header)
		if rv == nil || rv.Flags&(hot.RecvIOV|hot.RecvDevice|hot.RecvWork|fi.MultiRecv) != 0 || uint64(len(payload)) > rv.Len {
			a := arrived{ep: e, source: id, number: from.number, tag: header, length: uint64(len(payload)), flags: flags}
			e.rx.settle(eng, rv, &a, payload)
			return
		}
		e.countEager(len(payload))
		context, buf := rv.Context, rv.Buf
		eng.Release(rv)
		copy(bytesAt(buf, uint64(len(payload))), payload)
		e.rxCQ.CompleteWords(context, kind, uint64(len(payload)), buf, 0, header, e.addrOf(id))
	}
}

func (e *Endpoint) onSync(src hw.Source, header uint64, head, payload []byte) {
	var s syncMsg
	if !s.parse(head) {
		e.malformed(src, "tracked message with a head of %d bytes", len(head))
		return
	}
	from := e.senderOf(src)
	a := arrived{ep: e, source: from.id, number: from.number, tag: header, data: s.data, request: s.request,
		length: uint64(len(payload)), flags: msgSync}
	if s.flags&wireTagged != 0 {
		a.flags |= msgTagged
	}
	if s.flags&wireData != 0 {
		a.flags |= msgData
	}
	e.rx.arrive(&a, payload)
}

// arrive matches a complete message, or holds it.
func (r *rxContext) arrive(a *arrived, payload []byte) {
	if r.owner != nil {
		a.ep.countEager(len(payload))
		r.offerPeer(a, payload, nil)
		return
	}
	eng := r.engine(a.flags&msgTagged != 0)
	r.settle(eng, eng.Arrive(a.source, a.tag), a, payload)
}

// settle gives a complete message to the receive that matched, or holds it if
// rv is nil.
func (r *rxContext) settle(eng *match.Engine, rv *match.Recv, a *arrived, payload []byte) {
	a.ep.countEager(len(payload))
	switch {
	case rv == nil:
		r.holdEager(eng, a, payload)
	case rv.Kept():
		r.deliverMulti(eng, rv, a, payload)
	default:
		t := targetIn(rv)
		eng.Release(rv)
		r.deliver(t, a, payload)
	}
}

// holdEager keeps a message that no receive wants yet.
func (r *rxContext) holdEager(eng *match.Engine, a *arrived, payload []byte) {
	if a.ep.lossy && r.held+len(payload) > r.cfg.UnexpectedBytes {
		log.Debugf(log.EPData, "datagram of %d bytes dropped: %d are held", len(payload), r.held)
		return
	}
	addr := uint64(0)
	if len(payload) != 0 {
		var err error
		if addr, err = r.pool.Get(len(payload)); err != nil {
			log.Warnf(log.EPData, "no memory to hold %d bytes of an unexpected message: %v", len(payload), err)
			r.setWindow(false)
			return
		}
		copy(bytesAt(addr, uint64(len(payload))), payload)
	}
	m := eng.Hold(a.source, a.tag)
	if m == nil {
		log.Warnf(log.EPData, "no memory to hold an unexpected message")
		return
	}
	m.Len, m.Data, m.Payload, m.Request = a.length, a.data, addr, a.request
	m.Flags = heldFlags(a)
	a.ep.countHeld(len(payload))
	r.hold(len(payload))
}

// heldAs returns a held message as it was when it arrived.
func (r *rxContext) heldAs(m *match.Message) arrived {
	return arrived{
		ep: r.byNumber(uint32(m.Flags >> msgEPShift)), source: m.Source(), tag: m.Tag(), data: m.Data,
		length: m.Len, request: m.Request, flags: m.Flags & (1<<msgSrcShift - 1),
		src: hw.Source(m.Flags >> msgSrcShift & 0xffffff), number: heldSender(m).number,
	}
}

// heldSender returns the sender of a held message.
func heldSender(m *match.Message) sender { return sender{m.Source(), uint8(m.Flags >> msgNumberShift)} }

// sender returns who the message comes from.
func (a *arrived) sender() sender { return sender{a.source, a.number} }

// heldFlags is what match.Message.Flags keeps of a message.
func heldFlags(a *arrived) uint64 {
	return a.flags | uint64(a.src)<<msgSrcShift | uint64(a.number)<<msgNumberShift | uint64(a.ep.number)<<msgEPShift
}

// byNumber returns an endpoint of this context; nil if it was closed.
func (r *rxContext) byNumber(n uint32) *Endpoint {
	for _, e := range r.eps {
		if e.number == n {
			return e
		}
	}
	return nil
}

// deliverHeld gives a held message to a receive and releases it.
func (r *rxContext) deliverHeld(eng *match.Engine, t target, m *match.Message) {
	a := r.heldAs(m)
	if a.flags&msgRTS != 0 {
		announced := *rtsAt(m.Payload)
		r.releaseHeld(eng, m)
		r.startRendezvous(t, nil, &a, &announced)
		return
	}
	r.deliver(t, &a, bytesAt(m.Payload, m.Len))
	r.releaseHeld(eng, m)
}

// releaseHeld frees a message that is out of the queue, and its payload.
func (r *rxContext) releaseHeld(eng *match.Engine, m *match.Message) {
	switch {
	case m.Flags&msgRTS != 0:
		r.pool.Put(m.Payload, rtsSize)
	case m.Len != 0:
		r.pool.Put(m.Payload, int(m.Len))
		r.unhold(int(m.Len))
	}
	eng.ReleaseMessage(m)
}

// deliver copies a complete message to a receive's target and completes it.
func (r *rxContext) deliver(t target, a *arrived, payload []byte) {
	status := fi.Success
	if n, err := t.scatter(payload); err == nil {
		a.ep.completeRecv(t.context, t.flags, t.buffer(), n, a)
	} else {
		status = a.ep.storeFailed(&t, a, err)
	}
	r.release(t)
	if a.flags&msgSync != 0 {
		r.acknowledge(a, status)
	}
}

// acknowledge tells a message's sender its outcome.
func (r *rxContext) acknowledge(a *arrived, status fi.Errno) {
	r.send(a.ep, a.ep.linkBack(a.sender()), amAck, a.request, putAck(r.head[:], status))
}

// recvKind gives the completion flags of a receive posted with flags.
func recvKind(flags uint64) uint64 {
	if flags&hot.RecvTagged != 0 {
		return fi.Recv | fi.Tagged
	}
	return fi.Recv | fi.Msg
}

// completeRecv reports a message of which n bytes were received at buf. flags
// are those of the receive; fi.MultiRecv in them says that the buffer is
// given back with this completion, which is therefore always written.
func (e *Endpoint) completeRecv(context, flags, buf, n uint64, a *arrived) {
	entry := cq.Entry{
		Context: context, Flags: recvKind(flags) | flags&fi.MultiRecv, Len: n, Buf: buf, Data: a.data, Tag: a.tag,
		Src: e.addrOf(a.source),
	}
	if a.flags&msgData != 0 {
		entry.Flags |= fi.RemoteCQData
	}
	if a.length > n {
		e.recvError(entry, flags, cq.ErrorInfo{Err: fi.ETRUNC, OLen: a.length - n})
		return
	}
	if entry.Src == fi.AddrNotAvail && e.sourceErr {
		e.recvUnknown(entry, flags, a)
		return
	}
	work := e.workIn(&entry, flags)
	if e.rxCQ != nil && (!e.rxSelective && work == 0 || flags&(fi.Completion|fi.MultiRecv) != 0) {
		e.rxCQ.Complete(entry)
	}
	e.countEnd(e.rxCntr, work, flags&fi.Completion != 0, false)
}

// workIn returns the number of the deferred work that a receive with flags is,
// 0 if it is none, and puts its context in the place of the number.
func (e *Endpoint) workIn(entry *cq.Entry, flags uint64) uint64 {
	if flags&hot.RecvWork == 0 {
		return 0
	}
	work := entry.Context
	entry.Context = e.domain.work.contextOf(work)
	return work
}

// recvUnknown reports a message from a peer that is not in the AV, with the
// peer's address, as FI_SOURCE_ERR asks.
func (e *Endpoint) recvUnknown(entry cq.Entry, flags uint64, a *arrived) {
	raw, err := names.Encode(e.format, e.rx.idNames[a.source-1])
	if err != nil {
		raw = nil
	}
	e.recvError(entry, flags, cq.ErrorInfo{Err: fi.EADDRNOTAVAIL, ErrData: raw})
}

// recvError reports a receive that was posted with flags and failed.
func (e *Endpoint) recvError(entry cq.Entry, flags uint64, info cq.ErrorInfo) {
	e.countFailed(info.Err)
	work := e.workIn(&entry, flags)
	if e.rxCQ != nil {
		e.rxCQ.CompleteError(entry, info)
	}
	e.countEnd(e.rxCntr, work, flags&fi.Completion != 0, true)
}

// cancel ends the receive that was posted with context, if it still waits.
func (r *rxContext) cancel(context uint64) {
	for _, eng := range []*match.Engine{r.tagged, r.untagged} {
		if rv := eng.Cancel(context); rv != nil {
			r.dropRecv(eng, rv, fi.ECANCELED)
			return
		}
	}
}

// dropRecv completes a receive that is out of the queue without a message.
func (r *rxContext) dropRecv(eng *match.Engine, rv *match.Recv, err fi.Errno) {
	t, tag := targetIn(rv), rv.Tag()
	if rv.Kept() && rv.User[multiPending] != 0 {
		return // the last of its messages gives the buffer back
	}
	eng.Release(rv)
	r.endRecv(t, tag, err)
}

// endRecv completes a receive that got no message.
func (r *rxContext) endRecv(t target, tag uint64, err fi.Errno) {
	if len(r.eps) != 0 {
		r.eps[0].recvError(cq.Entry{
			Context: t.context, Flags: recvKind(t.flags) | t.flags&fi.MultiRecv, Buf: t.buffer(), Tag: tag,
			Src: fi.AddrNotAvail,
		}, t.flags, cq.ErrorInfo{Err: err})
	}
	r.release(t)
}
