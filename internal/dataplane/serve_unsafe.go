package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
)

// The target's side of one-sided operations that are one message (serveWrite; servefetch_unsafe.go). Their answers come
// to pending_unsafe.go. What a peer asks for is checked at the moment of access (admit_unsafe.go); what does not pass,
// needs more than a copy, or finds no room for its completion or answer is left where it is, for the runtime, which
// knows all cases.

// linger is how often a ring that has become empty is polled again after a write. A target is faster than its
// initiator, and each poll of a slot before it is written takes the line from the initiator, which needs it back. So
// the target pauses between polls, and finds several writes then.
const linger = 4

// isOneSided reports whether an active message is an operation that serve takes in, or the answer to one.
func isOneSided(id uint8) bool {
	switch id {
	case hot.AMWrite, hot.AMNotify, hot.AMRead, hot.AMAtomic, hot.AMReadData, hot.AMRMADone:
		return true
	}
	return false
}

// serve takes in a one-sided operation, or the answer to one.
func serve(d *hot.Delivery, ep *hot.EP, owner uint32, slot *hot.Slot, m message) uintptr {
	src, addr := sender(ep, owner)
	if src == nil || m.flags()&^hot.SlotBounce != 0 {
		return hot.DeliveryGo
	}
	d.Bounce, d.Stream, d.Wake = 0, 0, 0
	d.Source, d.Addr, d.Request = owner-1, addr, 0
	done := false
	switch m.id() {
	case hot.AMWrite:
		done = serveWrite(d, ep, src, addr, owner, slot, m)
	case hot.AMNotify:
		done = m.flags() == 0 && m.length() == 0 && m.head() == hot.WriteHeadDataBytes &&
			serveWrite(d, ep, src, addr, owner, slot, m)
	case hot.AMRead:
		done = serveRead(d, ep, src, addr, slot, m)
	case hot.AMAtomic:
		done = serveAtomic(d, ep, src, addr, owner, slot, m)
	case hot.AMReadData:
		done = takeFetched(d, ep, src, addr, owner, slot, m)
	case hot.AMRMADone:
		done = m.flags() == 0 && takeDone(d, ep, fullAddr(ep, src, addr), slot, m)
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

// serveWrite performs a write, or takes in the notice of one with data that its initiator has copied.
func serveWrite(
	d *hot.Delivery, ep *hot.EP, src *hot.Source, addr uint64, owner uint32, slot *hot.Slot, m message,
) bool {
	flags := uint64(hot.WriteLast)
	data := m.head() == hot.WriteHeadDataBytes
	if data {
		flags |= hot.WriteData
	} else if m.head() != hot.WriteHeadBytes {
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
	payload := bodyOf(slot) + uintptr(m.head())
	switch {
	case m.flags() != 0:
		if payload = bounced(d, src, owner, payload, m.length()); payload == 0 {
			return false
		}
	case m.length() > hot.SlotBody-m.head():
		return false
	}
	to := regionAt(ep, key, m.header, uint64(m.length()), hot.KeyWrite)
	if to == 0 {
		return false
	}
	if !data {
		move(to, payload, uintptr(m.length()))
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
	move(to, payload, uintptr(m.length()))
	if m.id() == hot.AMWrite {
		stat(ep, stats.RxServedWrites, 1)
	}
	d.Request = request
	e := hot.CQE{
		Flags: fi.RMA | fi.RemoteWrite | fi.RemoteCQData, Len: atomic.LoadUint64(&words[4]),
		Data: atomic.LoadUint64(&words[3]), Src: hot.AddrOfSender(addr),
	}
	if s.fill(q, &e) {
		d.Todo |= hot.TodoWakeCQ
	}
	return true
}
