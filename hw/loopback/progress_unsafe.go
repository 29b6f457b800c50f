package loopback

import (
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// Arrivals that the data plane leaves to Go (internal/dataplane has what it takes in itself): Progress reads them off
// the inbound rings and calls the handlers of their ids.

// Progress delivers up to limit arrived messages and returns how many the
// handlers got. The caller holds the progress lease.
func (i *Iface) Progress(limit int) int {
	if !i.usable() {
		return 0
	}
	delivered := 0
	rings := i.rx.active()
	for range rings { // each call begins behind the ring at which the last one ended
		if i.rx.next++; i.rx.next >= uint32(len(rings)) {
			i.rx.next = 0
		}
		delivered += i.progress(&rings[i.rx.next], limit-delivered)
		if delivered >= limit {
			break
		}
	}
	return delivered
}

// progress is Progress of one inbound ring.
func (i *Iface) progress(l *rxRing, limit int) int {
	l.head = l.seen()
	begin, delivered := l.head, 0
	for range limit {
		owner, state, lapOK := l.ring.Load(l.head)
		if state != hot.SlotReady || !lapOK {
			if l.head == begin && i.unblock(l, owner, state, lapOK, false) {
				continue
			}
			break
		}
		verdict := i.deliver(owner, (*hot.Slot)(l.ring.Slot(l.head)))
		if verdict == later {
			break
		}
		if verdict == done {
			delivered++
		} else {
			i.rx.dropped.Add(1)
		}
		l.ring.Release(l.head)
		l.head++
	}
	if l.head != begin {
		l.empty, l.taken = 0, 0
		l.show()
	}
	return delivered
}

// verdict is what became of the message at the head of the ring.
type verdict int

const (
	done  verdict = iota // a handler had it
	drop                 // it is malformed, or its payload is gone with its sender
	later                // it must wait: its sender cannot be examined now, or its handler has postponed it
)

// message is a message's description, read once from its slot. The first
// eight bytes are one load, so that later changes in the slot do not matter.
type message struct {
	id     uint8
	bounce bool
	head   int
	length int
}

func readMessage(slot *hot.Slot) (m message, ok bool) {
	word := atomic.LoadUint64((*uint64)(unsafe.Pointer(&slot.AMID)))
	flags := uint8(word >> 8)
	m = message{
		id: uint8(word), bounce: flags&hot.SlotBounce != 0,
		head: int(uint16(word >> 16)), length: int(uint32(word >> 32)),
	}
	return m, flags&^hot.SlotBounce == 0
}

// deliver gives the message at the head of a ring to its handler.
func (i *Iface) deliver(owner uint32, slot *hot.Slot) verdict {
	r := &i.rx
	if owner-1 >= uint32(len(r.sources)) && !i.growSources(owner) {
		return i.malformed("message from attach entry %d", int64(owner)-1)
	}
	src := &r.sources[owner-1]
	if src.state != sourceReady {
		if v := i.admit(owner-1, src); v != done {
			return v
		}
	}
	m, ok := readMessage(slot)
	if !ok || m.head > hot.SlotBody {
		return i.malformed("message with flags or head out of range from %s", &src.name)
	}
	if m.bounce {
		return i.deliverBounce(owner, src, slot, m)
	}
	if m.length > hot.SlotBody-m.head {
		return i.malformed("message of %d bytes in a slot from %s", m.length, &src.name)
	}
	h := r.handler(m.id)
	if h == nil {
		return i.malformed("message with unknown id %d from %s", m.id, &src.name)
	}
	end := m.head + m.length
	return r.handle(h, owner, slot, m, slot.Body[m.head:end:end])
}

// handle calls a message's handler.
func (r *receiver) handle(h hw.Handler, owner uint32, slot *hot.Slot, m message, payload []byte) verdict {
	r.postponed = false
	h(hw.Source(owner-1), slot.Header, slot.Body[:m.head:m.head], payload)
	if r.postponed {
		return later
	}
	return done
}

// deliverBounce delivers a message whose payload is in the sender's segment,
// and gives the buffer back.
func (i *Iface) deliverBounce(owner uint32, src *source, slot *hot.Slot, m message) verdict {
	at := refOffset(m.head)
	if at > hot.SlotBody-refBytes {
		return i.malformed("message with %d bytes of head from %s", m.head, &src.name)
	}
	if src.seg == nil {
		src.state = sourceCut
		i.logf("message of %d bytes whose sender %s has gone with it", m.length, &src.name)
		return drop
	}
	index := atomic.LoadUint32((*uint32)(unsafe.Pointer(&slot.Body[at])))
	if index >= src.seg.geo.bounceCount || m.length > int(src.seg.geo.bounceBytes) {
		return i.malformed("message of %d bytes in buffer %d from %s", m.length, index, &src.name)
	}
	b := src.seg.bounce(index)
	if atomic.LoadUint32(&b.State) != owner {
		return i.malformed("message in buffer %d, which is not ours, from %s", index, &src.name)
	}
	h := i.rx.handler(m.id)
	if h != nil && i.rx.handle(h, owner, slot, m, payload(b, m.length)) == later {
		return later
	}
	order.Store32(&b.State, 0) // release ↔ freeBounce
	if h == nil {
		return i.malformed("message with unknown id %d from %s", m.id, &src.name)
	}
	return done
}

func (r *receiver) handler(id uint8) hw.Handler {
	if id >= hw.MaxAM {
		return nil
	}
	return r.handlers[id]
}

// malformed counts and logs a message that is dropped.
func (i *Iface) malformed(format string, args ...any) verdict {
	i.rx.malformed.Add(1)
	i.logf(format, args...)
	return drop
}
