package cxi

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
)

// messageKind says what a message is for.
type messageKind uint32

const (
	kindUser messageKind = iota // for a handler
	_
	// the first of every stream: the sender; header: as kindWindow, and the number of the stream above it
	kindHello
	kindWindow // the sender's eager window; header: 1 if it is closed
	kindBye    // the last
	// outside of the stream: the sender has given up the connection of two streams; header: its random number
	kindReset
)

// The lower half of a message's match bits:
//
//	id:5 | length of the head:8 | kind:3 | position:16
func lowBits(id hw.AMID, head int, kind messageKind, pos uint64) uint32 {
	return uint32(id) | uint32(head)<<5 | uint32(kind)<<13 | uint32(pos)<<16
}

func splitLow(low uint32) (id uint32, head int, kind messageKind, pos uint16) {
	return low & (maxID - 1), int(low >> 5 & 0xff), messageKind(low >> 13 & 7), uint16(low >> 16)
}

// usable reports whether messages and operations may be posted now. The caller has the queue's lock.
func (e *Endpoint) usable() error {
	if p := e.failure.Load(); p != nil {
		return *p
	}
	if !e.ready.Load() || e.fenced.Load() && !e.passFence() {
		return hw.ErrNoResource
	}
	e.greet()
	return nil
}

// AMShort sends one active message from the caller's memory, which is copied.
func (e *Endpoint) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	switch {
	case id >= hw.MaxAM:
		return fmt.Errorf("cxi: message id %d: %w", id, hw.ErrInvalid)
	case len(head)+len(payload) > nic.MaxInline:
		return fmt.Errorf("cxi: short message of %d bytes: %w", len(head)+len(payload), hw.ErrTooLong)
	}
	e.q.take()
	defer e.q.give()
	if err := e.usable(); err != nil {
		return err
	}
	s := e.w.claim(spare)
	if s == nil {
		return hw.ErrNoResource
	}
	s.fill(id, header, head, payload, kindUser, e.w.tail)
	e.publish()
	return nil
}

// fill makes a message of bytes that are copied.
func (s *slot) fill(id hw.AMID, header uint64, head, payload []byte, kind messageKind, pos uint64) {
	s.low, s.header = lowBits(id, len(head), kind, pos), header
	n := copy(s.data[:], head)
	s.n = uint32(n + copy(s.data[n:], payload))
}

// control sends a message of the backend's own. False: there is no place. The caller has the queue's lock.
func (e *Endpoint) control(kind messageKind, header uint64, payload []byte) bool {
	e.greet()
	s := e.w.claim(0)
	if s == nil {
		return false
	}
	s.fill(0, header, nil, payload, kind, e.w.tail)
	e.publish()
	return true
}

// greet sends the sender's name, in front of the first message. The caller has the queue's lock.
func (e *Endpoint) greet() {
	if e.greeted {
		return
	}
	e.greeted = true
	s := e.w.claim(0) // there is room: nothing was sent yet
	s.fill(0, uint64(e.i.window.Load())|uint64(e.stream)<<1, nil, append(e.i.DeviceAddress(), e.i.name...), kindHello, e.w.tail)
	e.publish()
}

// placeFor reports whether places more messages may be posted.
func (e *Endpoint) placeFor(places int) error {
	e.q.take()
	defer e.q.give()
	if err := e.usable(); err != nil {
		return err
	}
	if e.w.claim(spare+places-1) == nil {
		return hw.ErrNoResource
	}
	return nil
}

// AMBcopy sends one active message whose payload pack writes into a bounce buffer.
func (e *Endpoint) AMBcopy(id hw.AMID, header uint64, head []byte, n int, pack func([]byte), stripe int) error {
	i := e.i
	switch {
	case id >= hw.MaxAM || n < 0 || stripe < 0 || stripe >= i.pools.Stripes():
		return fmt.Errorf("cxi: message id %d of %d bytes over stripe %d: %w", id, n, stripe, hw.ErrInvalid)
	case len(head) > nic.MaxInline || n > i.cfg.BounceBytes || len(head)+n > int(e.addr.longest):
		return fmt.Errorf("cxi: message of %d and %d bytes: %w", len(head), n, hw.ErrTooLong)
	}
	if err := e.placeFor(1); err != nil {
		return err
	}
	buffer := i.pools.Take(stripe)
	if buffer < 0 {
		return hw.ErrNoResource
	}
	b, off := i.bounceBuffer(buffer)
	at := copy(b, head)
	if n > 0 {
		pack(b[at : at+n : at+n])
	}
	if err := e.postBounce(id, header, head, n, buffer, off); err != nil {
		i.pools.Put(buffer)
		return err
	}
	return nil
}

// postBounce sends what is in a bounce buffer.
func (e *Endpoint) postBounce(id hw.AMID, header uint64, head []byte, n int, buffer int32, off int) error {
	e.q.take()
	defer e.q.give()
	if err := e.usable(); err != nil {
		return err
	}
	s := e.w.claim(spare)
	if s == nil {
		return hw.ErrNoResource
	}
	s.low, s.header, s.bounce = lowBits(id, len(head), kindUser, e.w.tail), header, buffer
	s.n = uint32(len(head) + n)
	s.memory = e.i.bounce.at(off, int(s.n))
	e.publish()
	return nil
}

// segment is the caller's memory as the NIC sees it.
func (e *Endpoint) segment(local []hw.Segment, write bool) (nic.Memory, error) {
	switch len(local) {
	case 0:
		return nic.Memory{}, nil
	case 1:
	default:
		return nic.Memory{}, fmt.Errorf("cxi: %d local segments, at most 1: %w", len(local), hw.ErrInvalid)
	}
	return segmentMemory(&local[0], write, maxTransfer)
}

// segmentMemory is a piece of registered memory of at most longest bytes as the NIC sees it.
func segmentMemory(s *hw.Segment, write bool, longest int) (nic.Memory, error) {
	if s.Len == 0 {
		return nic.Memory{}, nil
	}
	m, ok := s.Memory.(*Memory)
	addr := uint64(uintptr(s.Addr))
	if !ok || s.Len < 0 || addr < m.addr || addr-m.addr > uint64(m.region.Len) || uint64(s.Len) > uint64(m.region.Len)-(addr-m.addr) ||
		write && m.region.Access&hw.LocalWrite == 0 {
		return nic.Memory{}, fmt.Errorf("cxi: local segment of %d bytes is not registered for this: %w", s.Len, hw.ErrInvalid)
	}
	if s.Len > longest {
		return nic.Memory{}, fmt.Errorf("cxi: %d bytes: %w", s.Len, hw.ErrTooLong)
	}
	return m.local(addr, s.Len), nil
}
