package verbs

import (
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
)

// usable reports whether messages may be claimed now.
func (e *Endpoint) usable() error {
	if p := e.failure.Load(); p != nil {
		return *p
	}
	if !e.ready.Load() {
		return hw.ErrNoResource
	}
	if e.c.Blocked.Load()&transport.PeerFenced != 0 {
		return e.waitFence()
	}
	return nil
}

// waitFence is usable behind a Fence.
func (e *Endpoint) waitFence() error {
	e.c.Blocked.And(^uint32(transport.PeerFenced)) // before the check: a Fence that is called now sets it again
	at := e.msgFence.at.Load()
	if at != 0 && e.mem.queue.Head.Load() < at {
		e.c.Blocked.Or(transport.PeerFenced)
		return e.full()
	}
	return nil
}

// AMShort sends one active message from the caller's memory, which is copied.
func (e *Endpoint) AMShort(id hw.AMID, header uint64, head, payload []byte) error {
	switch {
	case id >= hw.MaxAM:
		return fmt.Errorf("verbs: message id %d: %w", id, hw.ErrInvalid)
	case len(head)+len(payload) > maxShort:
		return fmt.Errorf("verbs: short message of %d bytes: %w", len(head)+len(payload), hw.ErrTooLong)
	}
	if err := e.usable(); err != nil {
		return err
	}
	q := &e.msg
	pos, ok := q.Claim(reserve)
	if !ok {
		return e.full()
	}
	e.c.Put(pos, uint8(id), header, head, payload)
	q.publish(pos)
	return nil
}

// full says that there is no place, and sees to it that there will be one.
func (e *Endpoint) full() error {
	e.i.wantSignals()
	return hw.ErrNoResource
}

// AMBcopy sends one active message; pack writes its payload into a bounce buffer.
func (e *Endpoint) AMBcopy(id hw.AMID, header uint64, head []byte, n int, pack func([]byte), stripe int) error {
	switch {
	case id >= hw.MaxAM || n < 0 || stripe < 0 || stripe >= e.i.pools.Stripes():
		return fmt.Errorf("verbs: message id %d of %d bytes over stripe %d: %w", id, n, stripe, hw.ErrInvalid)
	case len(head) > maxShort || n > e.i.cfg.BounceBytes:
		return fmt.Errorf("verbs: message of %d and %d bytes: %w", len(head), n, hw.ErrTooLong)
	}
	if err := e.usable(); err != nil {
		return err
	}
	buffer := e.i.pools.Take(stripe)
	if buffer < 0 {
		return e.full()
	}
	q := &e.msg
	pos, ok := q.Claim(reserve)
	if !ok {
		e.i.pools.Put(buffer)
		return e.full()
	}
	b, addr := e.i.bounceBuffer(buffer)
	h := transport.Header{ID: uint8(id), Head: uint8(len(head)), Index: e.c.MessageIndex(), Seq: uint32(pos + 1),
		Length: uint32(n), Value: header}
	h.Put(b)
	at := transport.HeaderBytes + copy(b[transport.HeaderBytes:], head)
	if n > 0 {
		pack(b[at : at+n : at+n])
	}
	op := q.op(pos)
	op.Opcode, op.Flags, op.Pieces = ibv.OpSend, 0, 1
	op.SGE[0] = ibv.SGE{Addr: addr, Len: uint32(at + n), LKey: e.i.mr.LKey}
	q.holds(pos, buffer)
	q.publish(pos)
	return nil
}

// postNothing posts a write without bytes: its completion ends everything
// before it, and shows whether the peer answers. False: no place.
func (q *queue) postNothing(imm uint32, signal bool) (pos uint64, ok bool) {
	pos, ok = q.Claim(0)
	if !ok {
		return 0, false
	}
	op := q.op(pos)
	op.Opcode, op.Flags, op.Pieces, op.RemoteAddr, op.RKey, op.Imm = ibv.OpWrite, 0, 0, 0, 0, imm
	if imm != 0 {
		op.Opcode = ibv.OpWriteImm
	}
	q.entry(pos).kind = entryControl
	if signal {
		q.signal(pos)
	}
	q.publish(pos)
	return pos, true
}
