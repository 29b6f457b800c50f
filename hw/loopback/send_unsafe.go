package loopback

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/outbound"
)

// Sending active messages from Go. Rings, slots and bounce buffers are written by package outbound, as the data plane
// does.

const (
	refBytes = int(unsafe.Sizeof(hot.BounceRef{}))
	maxHead  = hot.SlotBody - refBytes // of a message in a bounce buffer
)

// refOffset is where the bounce reference stands behind a head of n bytes.
func refOffset(n int) int { return (n + 7) &^ 7 }

// AMShort sends head and payload in one slot.
func (e *Endpoint) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	if id >= hw.MaxAM {
		return fmt.Errorf("loopback: active message id %d: %w", id, hw.ErrInvalid)
	}
	if len(head)+len(payload) > hot.SlotBody {
		return hw.ErrTooLong
	}
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	slot, pos, ok := outbound.Claim(&e.ring, e.owner, e.exclusive)
	if !ok {
		return hw.ErrNoResource
	}
	outbound.Put(slot, uint8(id), 0, len(head), len(payload), header)
	copy(slot.Body[:], head)
	copy(slot.Body[len(head):], payload)
	e.publish(slot, pos)
	return nil
}

// AMBcopy sends a payload through a bounce buffer of a stripe.
func (e *Endpoint) AMBcopy(id hw.AMID, header uint64, head []byte, n int, pack func([]byte), stripe int) error {
	i := e.iface
	if id >= hw.MaxAM || n < 0 || stripe < 0 || stripe >= i.cfg.Stripes {
		return fmt.Errorf("loopback: active message id %d, %d bytes, stripe %d of %d: %w",
			id, n, stripe, i.cfg.Stripes, hw.ErrInvalid)
	}
	if len(head) > maxHead || n > int(i.seg.geo.bounceBytes) {
		return hw.ErrTooLong
	}
	if err := e.begin(); err != nil {
		return err
	}
	defer e.end()
	if !outbound.Room(&e.ring, e.exclusive) {
		return hw.ErrNoResource
	}
	b, index := outbound.FreeBounce(i.stripes[stripe])
	if b == nil {
		return hw.ErrNoResource
	}
	pack(payload(b, n))
	slot, pos, ok := outbound.Claim(&e.ring, e.owner, e.exclusive)
	if !ok {
		return hw.ErrNoResource // the buffer was not marked: it is still free
	}
	outbound.Mark(b, e.owner, e.number)
	outbound.Put(slot, uint8(id), hot.SlotBounce, len(head), n, header)
	copy(slot.Body[:], head)
	*(*hot.BounceRef)(unsafe.Pointer(&slot.Body[refOffset(len(head))])) = hot.BounceRef{Index: index}
	e.publish(slot, pos)
	if e.dead.Load() { // CheckPeers may have freed the peer's buffers before this one was marked
		atomic.CompareAndSwapUint32(&b.State, e.owner, 0)
	}
	return nil
}

// ready reports whether the peer can be sent to.
func (e *Endpoint) ready() error {
	if !e.iface.usable() {
		return errClosed
	}
	if e.lost() {
		return hw.ErrPeerDead
	}
	return nil
}

// begin is ready, and from then until end the peer's memory is not given to
// another peer: here the count is added to before dead is read, in retireDead dead
// is set before the count is read.
func (e *Endpoint) begin() error {
	e.users.Add(1)
	err := e.ready()
	if err != nil {
		e.users.Add(-1)
	}
	return err
}

// end ends what begin has begun.
func (e *Endpoint) end() { e.users.Add(-1) }

// publish makes the slot visible and rings the bell of a sleeper, with a full
// fence between, as there is between the sleeper's steps.
func (e *Endpoint) publish(slot *hot.Slot, pos uint64) {
	e.ring.Publish(unsafe.Pointer(slot), e.owner, pos)
	if atomic.LoadUint32(e.rxState)&hot.RxWaitable != 0 {
		order.Fence()
		e.Wake()
	}
}
