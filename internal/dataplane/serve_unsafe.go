package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw/loopback/outbound"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
	"github.com/weft-fabric/weft/provider/atomics"
)

// The target's side of one-sided operations that are one message (serveWrite, serveAtomic). Their answers come to
// pending_unsafe.go. What a peer asks for is checked against the regions that are entered (hot.Region), at the moment
// of access; what does not pass, needs more than a copy, or finds no room for its completion or answer is left where it
// is, for the runtime, which knows all cases.

// linger is how often a ring that has become empty is polled again after a write. A target is faster than its
// initiator, and each poll of a slot before it is written takes the line from the initiator, which needs it back. So
// the target pauses between polls, and finds several writes then.
const linger = 4

// isOneSided reports whether an active message is an operation that serve takes in, or the answer to one.
func isOneSided(id uint8) bool {
	return id == hot.AMWrite || id == hot.AMAtomic || id == hot.AMReadData || id == hot.AMRMADone
}

// serve takes in a one-sided operation, or the answer to one.
func serve(d *hot.Delivery, ep *hot.EP, owner uint32, slot *hot.Slot, m *message) uintptr {
	src, addr := sender(ep, owner)
	if src == nil || m.flags&^hot.SlotBounce != 0 {
		return hot.DeliveryGo
	}
	d.Bounce, d.Stream, d.Wake = 0, 0, 0
	d.Source, d.Addr, d.Request = owner-1, addr, 0
	done := false
	switch m.id {
	case hot.AMWrite:
		done = ep.Regions != 0 && serveWrite(d, ep, src, addr, owner, slot, m)
	case hot.AMAtomic:
		done = ep.Regions != 0 && m.flags == 0 && serveAtomic(d, ep, src, addr, slot, m)
	case hot.AMReadData:
		done = m.flags == 0 && takeFetched(d, ep, fullAddr(ep, src, addr), slot, m)
	case hot.AMRMADone:
		done = m.flags == 0 && takeDone(d, ep, fullAddr(ep, src, addr), slot, m)
	}
	if !done {
		return hot.DeliveryGo
	}
	release(d, ep)
	switch {
	case d.Request != 0:
		return reply(d, ep, hot.AMRMADone, hot.DeliverySendDone)
	case d.Wake != 0:
		return hot.DeliveryWakePeer
	}
	return next
}

// regionAt returns the address of an access to a region of the endpoint; 0: the runtime says why there is none.
func regionAt(ep *hot.EP, key, addr, n uint64, rights uint32) uintptr {
	place := hot.KeyPlace(key, ep.RegionCount)
	for k := range min(hot.KeyProbes, ep.RegionCount) {
		i := (place + k) & (ep.RegionCount - 1)
		r := (*hot.Region)(pointer(ep.Regions + uintptr(i)*unsafe.Sizeof(hot.Region{})))
		if atomic.LoadUint32(&r.Live) == 0 || r.Key != key {
			continue
		}
		offset := addr - r.Base
		if r.Access&rights != rights || offset > r.Len || n > r.Len-offset {
			return 0
		}
		return uintptr(r.Addr + offset)
	}
	return 0
}

// serveWrite performs a write.
func serveWrite(d *hot.Delivery, ep *hot.EP, src *hot.Source, addr uint64, owner uint32, slot *hot.Slot, m *message) bool {
	flags := uint64(hot.WriteLast)
	data := m.head == hot.WriteHeadDataBytes
	if data {
		flags |= hot.WriteData
	} else if m.head != hot.WriteHeadBytes {
		return false
	}
	words := (*[5]uint64)(unsafe.Pointer(&slot.Body))
	key, request, asks := atomic.LoadUint64(&words[0]), atomic.LoadUint64(&words[1]), atomic.LoadUint64(&words[2])
	if asks&^hot.WriteAck != flags {
		return false
	}
	if asks&hot.WriteAck == 0 {
		request = 0 // it is answered only if it is refused, which is the runtime's
	}
	payload := bodyOf(slot) + uintptr(m.head)
	switch {
	case m.flags != 0:
		if payload = bounced(d, src, owner, payload, m.length); payload == 0 {
			return false
		}
	case m.length > hot.SlotBody-m.head:
		return false
	}
	to := regionAt(ep, key, m.header, uint64(m.length), hot.KeyWrite)
	if to == 0 {
		return false
	}
	if !data {
		move(to, payload, uintptr(m.length))
		stat(ep, stats.RxServedWrites, 1)
		d.Request = request
		if request == 0 {
			d.Stream = 1
		}
		return true
	}
	q := (*hot.CQ)(pointer(ep.RxCQ))
	var s spot
	if q == nil || !s.take(q, reader(d)) {
		return false
	}
	move(to, payload, uintptr(m.length))
	stat(ep, stats.RxServedWrites, 1)
	d.Request = request
	e := hot.CQE{
		Flags: fi.RMA | fi.RemoteWrite | fi.RemoteCQData, Len: atomic.LoadUint64(&words[4]),
		Data: atomic.LoadUint64(&words[3]), Src: addr - 1,
	}
	if s.fill(q, &e) {
		d.Todo |= hot.TodoWakeCQ
	}
	return true
}

// serveAtomic performs an atomic operation.
func serveAtomic(d *hot.Delivery, ep *hot.EP, src *hot.Source, addr uint64, slot *hot.Slot, m *message) bool {
	if uintptr(m.head) != unsafe.Sizeof(hot.AtomicHead{}) {
		return false
	}
	head := *(*hot.AtomicHead)(unsafe.Pointer(&slot.Body))
	plain := head.Kind == hot.AtomicPlain
	op, datatype := fi.Op(head.Op), fi.Datatype(head.Datatype)
	size := integerSize(uint32(head.Kind), datatype, op)
	reads := op == fi.OpRead
	want := size
	if reads {
		want = 0
	}
	if head.Kind == hot.AtomicCompare {
		want += size
	}
	if size == 0 || head.Count != 1 || head.Last != 1 || head.At != 0 || uint64(m.length) != want ||
		!plain && head.Request == 0 {
		return false
	}
	rights := uint32(0)
	if !reads {
		rights |= hot.KeyWrite
	}
	if !plain {
		rights |= hot.KeyRead
	}
	to := regionAt(ep, head.Key, m.header, size, rights)
	if to == 0 || uint64(to)&(size-1) != 0 {
		return false
	}
	var operand, compare uint64
	body := bodyOf(slot) + unsafe.Sizeof(head)
	if !reads {
		operand = load(body, size)
	}
	if head.Kind == hot.AtomicCompare {
		compare = load(body+uintptr(size), size)
	}
	if plain {
		atomics.Integer(op, datatype, pointer(to), operand, compare)
		if d.Request = head.Request; d.Request == 0 {
			d.Stream = 1
		}
	} else if !serveFetch(d, back(ep, src, addr), &head, to, operand, compare, size) {
		return false
	}
	stat(ep, stats.RxServedAtomics, 1)
	return true
}

// load reads an integer of 4 or 8 bytes.
func load(at uintptr, size uint64) uint64 {
	if size == 4 {
		return uint64(*(*uint32)(pointer(at)))
	}
	return *(*uint64)(pointer(at))
}

// serveFetch performs an operation and answers with what was there before. The operation's locked instruction waits for
// all stores before it, and a store to the answer's slot waits for the line, which the initiator polls. So where the
// slot is known to be free, it is taken after the operation: claim, answer and publication are then one burst of
// stores.
func serveFetch(d *hot.Delivery, peer *hot.Peer, head *hot.AtomicHead, to uintptr, operand, compare, size uint64) bool {
	if peer == nil {
		return false
	}
	slots := atomic.LoadUintptr(&peer.Slots)
	if slots == 0 || atomic.LoadUint32((*uint32)(pointer(peer.RxState)))&hot.RxGone != 0 {
		return false
	}
	view := ringOf(peer, slots)
	ring, exclusive := mpsc.View(&view), peer.Exclusive != 0
	op, datatype := fi.Op(head.Op), fi.Datatype(head.Datatype)
	var before, pos uint64
	var slot *hot.Slot
	sure := outbound.Sure(ring, exclusive)
	if sure {
		before = atomics.Integer(op, datatype, pointer(to), operand, compare)
	}
	slot, pos, ok := outbound.Claim(ring, peer.Owner, exclusive)
	if !ok {
		return false
	}
	if !sure {
		before = atomics.Integer(op, datatype, pointer(to), operand, compare)
	}
	outbound.Put(slot, hot.AMReadData, 0, 8, int(size), head.Request)
	words := (*[2]uint64)(unsafe.Pointer(&slot.Body))
	words[0], words[1] = 0, before // the offset, and as much of the other as the operation has
	ring.Publish(unsafe.Pointer(slot), peer.Owner, pos)
	if sleeps(peer) {
		d.Wake, d.Peer = 1, peer.Peer
	}
	return true
}
