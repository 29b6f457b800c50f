package dataplane

import (
	"unsafe"

	"github.com/weft-fabric/weft/internal/hot"
)

// Messages that come with their payload, and whose sender waits for an ACK: until the message is here, or until a
// receive has matched (MessageMatch). takeSync gives one to matching; endSync and, for one that was unexpected,
// endUnexpected send the ACK.

// SyncHead is the head of such a message.
type SyncHead struct {
	Request uint64 // of the sender, for the ACK
	Data    uint64
	Flags   uint64 // hot.RTS*: RTSTagged, RTSData, RTSMatch
}

// SyncBytes are those of a SyncHead.
const SyncBytes = int(unsafe.Sizeof(SyncHead{}))

// SyncAt views the bytes of a head.
func SyncAt(b *[SyncBytes]byte) *SyncHead { return (*SyncHead)(unsafe.Pointer(b)) }

// Valid reports whether the flags that a peer has written are some of those that there are.
func (h *SyncHead) Valid() bool { return h.Flags&^(hot.RTSTagged|hot.RTSData|hot.RTSMatch) == 0 }

// takeSync takes in a message with a sender that waits for an ACK. One that the data plane could not acknowledge is the
// runtime's.
func takeSync(r *Receiver, d *hot.Delivery, ep *hot.EP, owner uint32, slot *hot.Slot, m message) uintptr {
	src, addr := sender(ep, owner)
	if src == nil || ep.Flags&hot.EPMatches == 0 || m.head() != uint32(SyncBytes) {
		return hot.DeliveryGo
	}
	head := *(*SyncHead)(unsafe.Pointer(&slot.Body))
	if !head.Valid() {
		return hot.DeliveryGo
	}
	if _, slots := ringBack(ep, src, addr); slots == 0 {
		return hot.DeliveryGo
	}
	setMessage(d, src, owner, addr, m)
	d.Flags, d.Data, d.Request = uint32(head.Flags)&(hot.RTSTagged|hot.RTSData), head.Data, head.Request
	untilHere := head.Flags&hot.RTSMatch == 0
	if !untilHere { // where it is kept as unexpected, it is acknowledged later
		d.Flags |= MessageSync | MessageMatch
	}
	if d.Payload = uint64(payloadOf(d, src, owner, slot, m)); d.Payload == 0 {
		return hot.DeliveryGo
	}
	verdict := r.Accept(ep, d)
	switch verdict {
	case Refused:
		return hot.DeliveryGo
	case Settle:
		d.Flags |= MessageSync
		d.After = afterSlot
		return hot.DeliverySettle
	}
	d.Messages++
	d.Bytes += d.Length
	switch {
	case verdict == Complete:
		d.After = afterSync
		return hot.DeliveryComplete
	case verdict == Unexpected && !untilHere:
		release(d, ep)
		return next
	}
	return endSync(d, ep)
}

// endSync acknowledges a message that is taken in.
func endSync(d *hot.Delivery, ep *hot.EP) uintptr {
	code := sendAck(d, ep)
	if code == next {
		release(d, ep)
	} else {
		d.After = afterSlot
	}
	return code
}

// endUnexpected acknowledges a message that was unexpected if its sender waits for that, and has the shim write the
// completion before if verdict says so. d.Entry is written already.
func endUnexpected(d *hot.Delivery, ep *hot.EP, verdict Verdict, sync bool) uintptr {
	switch {
	case verdict != Complete && sync:
		return sendAck(d, ep)
	case verdict != Complete:
		return next
	case sync:
		d.After = afterUnexpected
	}
	return hot.DeliveryComplete
}
