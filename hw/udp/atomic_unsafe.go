package udp

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/weft-fabric/weft/hw"
)

const (
	postMask  = 1<<hw.OpAdd | 1<<hw.OpAnd | 1<<hw.OpOr | 1<<hw.OpXor | 1<<hw.OpSwap
	fetchMask = postMask | 1<<hw.OpCSwap
)

// AtomicPost performs op at the peer, when it progresses. That the peer
// refuses it shows in its counters only.
func (c *Endpoint) AtomicPost(op hw.AtomicOp, size int, operand, addr uint64, key hw.RemoteKey) error {
	if !hw.OpMask(postMask).Has(op) {
		return fmt.Errorf("udp: atomic operation %d: %w", op, hw.ErrInvalid)
	}
	_, err := c.atomic(op, size, operand, 0, addr, key, nil, nil)
	return err
}

// AtomicFetch performs op at the peer, when it progresses, and brings what the
// word was before.
func (c *Endpoint) AtomicFetch(op hw.AtomicOp, size int, operand, compare, addr uint64, key hw.RemoteKey, result *uint64, done *hw.Completion) (hw.Status, error) {
	if !hw.OpMask(fetchMask).Has(op) || result == nil {
		return hw.Done, fmt.Errorf("udp: fetching atomic operation %d: %w", op, hw.ErrInvalid)
	}
	return c.atomic(op, size, operand, compare, addr, key, result, done)
}

func (c *Endpoint) atomic(op hw.AtomicOp, size int, operand, compare, addr uint64, key hw.RemoteKey, result *uint64, done *hw.Completion) (hw.Status, error) {
	if size != 4 && size != 8 || addr&uint64(size-1) != 0 {
		return hw.Done, fmt.Errorf("udp: atomic of %d bytes at %#x: %w", size, addr, hw.ErrInvalid)
	}
	o, now, err := c.enter(opAtomic)
	if err != nil {
		return hw.Done, err
	}
	var b [atomicBytes]byte
	b[0], b[1] = byte(op), byte(size)
	if result != nil {
		b[2] = 1
	}
	le := binary.LittleEndian
	le.PutUint64(b[8:], operand)
	le.PutUint64(b[16:], compare)
	le.PutUint64(b[24:], addr)
	le.PutUint64(b[32:], key[0])
	if !c.fits(now, recordSize(0, len(b))) {
		c.s.work()
	}
	if c.at() != up || !c.postControl(recordAtomic, o.id, b[:]) {
		c.ops.end(o)
		c.starve(now)
		c.s.leave()
		return hw.Done, hw.ErrNoResource
	}
	c.tx.unsure = true
	status := hw.InProgress
	if result == nil {
		c.ops.end(o)
		status = hw.Done
	} else {
		o.result, o.c = result, done
	}
	c.transmit(now)
	c.s.leave()
	return status, nil
}

// serveAtomic performs an atomic of the peer's.
func (ops *transfers) serveAtomic(id uint32, b []byte) {
	le := binary.LittleEndian
	op, size, fetch := hw.AtomicOp(b[0]), uint64(b[1]), b[2] != 0
	operand, compare, addr, key := le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:]), le.Uint64(b[32:])
	if size != 4 && size != 8 || !hw.OpMask(fetchMask).Has(op) {
		ops.c.src.broken = true
		return
	}
	m, offset := ops.c.i.cfg.Memory.enter(key, addr, size, hw.RemoteAtomic)
	if m == nil {
		ops.refuseAtomic(id, fetch)
		return
	}
	defer m.leave()
	p := unsafe.Add(m.about.Addr, offset)
	if uintptr(p)&uintptr(size-1) != 0 {
		ops.refuseAtomic(id, fetch)
		return
	}
	var was uint64
	if size == 4 {
		was = uint64(perform((*uint32)(p), op, uint32(operand), uint32(compare), atomic.LoadUint32, atomic.CompareAndSwapUint32))
	} else {
		was = perform((*uint64)(p), op, operand, compare, atomic.LoadUint64, atomic.CompareAndSwapUint64)
	}
	if fetch {
		ops.c.src.replies = append(ops.c.src.replies, reply{recordResult, id, was})
	}
}

func (ops *transfers) refuseAtomic(id uint32, fetch bool) {
	ops.c.i.malformed.Add(1)
	if fetch {
		ops.c.src.replies = append(ops.c.src.replies, reply{kind: recordRefused, id: id})
	}
}

// perform changes a word and returns what it was before.
func perform[T uint32 | uint64](p *T, op hw.AtomicOp, operand, compare T, load func(*T) T, swap func(*T, T, T) bool) T {
	for {
		was := load(p)
		next := operand
		switch op {
		case hw.OpAdd:
			next = was + operand
		case hw.OpAnd:
			next = was & operand
		case hw.OpOr:
			next = was | operand
		case hw.OpXor:
			next = was ^ operand
		case hw.OpCSwap:
			if was != compare {
				return was
			}
		}
		if swap(p, was, next) {
			return was
		}
	}
}
