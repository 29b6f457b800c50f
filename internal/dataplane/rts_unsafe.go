package dataplane

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw/loopback/outbound"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/mpsc"
	"github.com/weft-fabric/weft/provider/match"
)

// Rendezvous without the runtime. At the receiver: takeRTS matches an RTS, the shim copies the payload out of the
// sender's memory, sendAck sends the ACK and received completes the receive (proceed). At the sender: rendezvous
// and takeAck.

// takeRTS takes in an RTS and has the shim copy the message out of its sender's memory: one of one element of at
// most EP.ReadMax bytes, for a receive that has room for it. All others are the runtime's.
func (r *Receiver) takeRTS(d *hot.Delivery, ep *hot.EP, owner uint32, slot *hot.Slot, m *message) uintptr {
	src, addr := sender(ep, owner)
	if src == nil || src.Context != 0 || ep.Flags&hot.EPMatches == 0 || r.Ended {
		return hot.DeliveryGo
	}
	if uintptr(m.head) != unsafe.Sizeof(hot.RTSHead{}) || m.length != 0 || m.flags != 0 {
		return hot.DeliveryGo
	}
	head := *(*hot.RTSHead)(unsafe.Pointer(&slot.Body))
	if head.Flags&^(hot.RTSTagged|hot.RTSData) != 0 || head.Count != 1 || head.Element != head.Length ||
		head.Length == 0 || head.Length > uint64(ep.ReadMax) {
		return hot.DeliveryGo
	}
	a := Arrival{
		ID: src.ID, Source: owner - 1, Addr: addr, Tag: m.header, Length: head.Length, Payload: uintptr(head.Addr),
		Flags: head.Flags, Data: head.Data,
	}
	_, peer := peerOf(ep, addr-1)
	if peer == nil {
		return hot.DeliveryGo
	}
	pid := atomic.LoadUint32(&peer.PID)
	if pid == 0 || atomic.LoadUintptr(&peer.Slots) == 0 {
		return hot.DeliveryGo // its memory cannot be read
	}
	rv := r.find(ep, &a)
	if rv == nil {
		return hot.DeliveryGo
	}
	buf, ok := space(rv, a.Length)
	if !ok {
		return hot.DeliveryGo
	}
	describe(d, &a, uint64(uintptr(unsafe.Pointer(rv))))
	d.Request, d.Bounce, d.Finish = head.Request, 0, finishRead
	d.Copy.PID, d.Copy.Write = pid, 0
	d.Copy.Buf, d.Copy.At, d.Copy.Len = buf, head.Addr, a.Length
	return hot.DeliveryRead
}

// find returns the receive that was posted first and matches a message, and leaves it in matching.
func (r *Receiver) find(ep *hot.EP, a *Arrival) *match.Recv {
	eng := r.Engine(a.Flags&hot.MessageTagged != 0)
	if rv := eng.Find(a.ID, a.Tag); rv != nil {
		return rv
	}
	if found, _ := r.take(context(ep), eng, a.ID, a.Tag); !found {
		return nil
	}
	return eng.Find(a.ID, a.Tag)
}

// ringBack returns the slots of the ring of a message's sender, for the ACK; 0: it has none that is known here. addr is
// the sender's address plus one.
func ringBack(ep *hot.EP, addr uint64) uintptr {
	_, peer := peerOf(ep, addr-1)
	if peer == nil {
		return 0
	}
	return atomic.LoadUintptr(&peer.Slots)
}

// sendAck sends the ACK of a message. Where the sender's ring has no room, the shim has the runtime send it;
// where the sender sleeps, the shim rings its doorbell.
func sendAck(d *hot.Delivery, ep *hot.EP) uintptr {
	slots := ringBack(ep, d.Addr)
	if slots == 0 {
		return hot.DeliverySendAck
	}
	_, peer := peerOf(ep, d.Addr-1)
	view := ringOf(peer, slots)
	ring := mpsc.View(&view)
	slot, pos, ok := outbound.Claim(ring, peer.Owner, peer.Exclusive != 0)
	if !ok {
		return hot.DeliverySendAck
	}
	outbound.Put(slot, hot.AMAck, 0, 8, 0, d.Request)
	*(*uint64)(unsafe.Pointer(&slot.Body)) = 0 // the outcome: success
	ring.Publish(unsafe.Pointer(slot), peer.Owner, pos)
	if sleeps(peer) {
		d.Peer = peer.Peer
		return hot.DeliveryWakePeer
	}
	return next
}

// received completes the receive of a rendezvous whose payload is in its buffer.
func (r *Receiver) received(d *hot.Delivery, ep *hot.EP) uintptr {
	a := Arrival{
		ID: d.ID, Source: d.Source, Flags: d.Flags, Addr: d.Addr, Tag: d.Tag, Data: d.Data, Length: d.Length,
	}
	eng := r.Engine(a.Flags&hot.MessageTagged != 0)
	rv := eng.Arrive(a.ID, a.Tag) // the one that find has found: nothing was done in between
	context, flags, buf := rv.Context, rv.Flags, d.Copy.Buf
	if rv.Kept() {
		rv.User[MultiUsed] += a.Length
		flags = flags&^multiFlag | r.Retire(eng, rv)
	} else {
		eng.Put(rv)
	}
	stat(ep, stats.RxRendezvous, 1)
	stat(ep, stats.RxRendezvousBytes, a.Length)
	out := Outlet{Reader: reader(d)}
	verdict := finish(ep, &a, context, flags, buf, &out)
	d.Todo |= out.Todo
	release(d, ep)
	if verdict == Complete {
		d.Entry = out.Entry
		return hot.DeliveryComplete
	}
	return next
}
