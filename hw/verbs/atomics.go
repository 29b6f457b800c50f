package verbs

import (
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/ibv"
)

// Devices have two atomics: add and compare-and-swap, both on 8 bytes. All
// others are made of compare-and-swap (type casLoop), 4-byte ones on the 8
// bytes around them, so that all of them are atomic with respect to each other.
// Where the devices have none, or the configuration says so, the peer's CPU
// performs them all (remote.go).

// allOps are the operations without and with a result.
const (
	postOps  = hw.OpMask(1<<hw.OpAdd | 1<<hw.OpAnd | 1<<hw.OpOr | 1<<hw.OpXor | 1<<hw.OpSwap)
	fetchOps = postOps | 1<<hw.OpCSwap
)

// byDevice reports whether devices perform atomics.
func (i *Iface) byDevice() bool { return i.d.attr.Atomics && i.cfg.Atomics == AtomicsAuto }

// atomicAttr fills in what atomics there are.
func (i *Iface) atomicAttr(a *hw.Attr) {
	a.Caps |= hw.CapAtomics
	a.Atomic32, a.Atomic64, a.Fetch32, a.Fetch64 = postOps, postOps, fetchOps, fetchOps
	if !i.byDevice() {
		a.Caps |= hw.CapCPUAtomics
		a.Caps &^= hw.CapOneSidedFree
	}
}

// checkAtomic judges an operation's arguments.
func checkAtomic(op hw.AtomicOp, size int, addr uint64, mask hw.OpMask) error {
	if size != 4 && size != 8 || addr%uint64(size) != 0 || !mask.Has(op) {
		return fmt.Errorf("verbs: atomic operation %d on %d bytes at %#x: %w", op, size, addr, hw.ErrInvalid)
	}
	return nil
}

// AtomicPost performs op and returns nothing.
func (e *Endpoint) AtomicPost(op hw.AtomicOp, size int, operand, addr uint64, key hw.RemoteKey) error {
	if err := checkAtomic(op, size, addr, postOps); err != nil {
		return err
	}
	if !e.i.byDevice() {
		return e.ask(request{op: op, size: size, operand: operand, addr: addr, key: key})
	}
	_, err := e.atomic(op, size, operand, 0, addr, key, nil, nil)
	return err
}

// AtomicFetch performs op and stores what the word was before in *result.
func (e *Endpoint) AtomicFetch(op hw.AtomicOp, size int, operand, compare, addr uint64, key hw.RemoteKey, result *uint64, c *hw.Completion) (hw.Status, error) {
	if err := checkAtomic(op, size, addr, fetchOps); err != nil {
		return hw.Done, err
	}
	if !e.i.byDevice() {
		err := e.ask(request{op: op, size: size, operand: operand, compare: compare, addr: addr, key: key, result: result, c: c})
		return hw.InProgress, err
	}
	return e.atomic(op, size, operand, compare, addr, key, result, c)
}

// atomic has the device perform op, in one operation or in a loop.
func (e *Endpoint) atomic(op hw.AtomicOp, size int, operand, compare, addr uint64, key hw.RemoteKey, result *uint64, c *hw.Completion) (hw.Status, error) {
	t, err := e.prepare(addr, uint64(size), key, hw.RemoteAtomic)
	if err != nil {
		return hw.Done, err
	}
	var opcode uint32
	switch {
	case size == 8 && op == hw.OpAdd:
		opcode = ibv.OpFetchAdd
	case size == 8 && op == hw.OpCSwap:
		opcode = ibv.OpCompSwap
	default:
		return e.loop(&t, op, size, operand, compare, key, result, c)
	}
	w, en, pos, err := e.place(&t, opcode)
	if err != nil {
		return hw.Done, err
	}
	w.CompareAdd, w.Swap = operand, 0
	if op == hw.OpCSwap {
		w.CompareAdd, w.Swap = compare, operand
	}
	w.SGE[0] = t.q.slotSGE(pos, 8)
	en.kind, en.result, en.comp = entryFetch, result, c
	if c != nil {
		t.q.signal(pos)
	}
	t.q.publish(pos)
	return hw.InProgress, nil
}

// casLoop performs an operation by compare-and-swap, again until no other thread
// changed the word in between. It belongs to the lease holder once it is posted.
type casLoop struct {
	op               hw.AtomicOp
	shift            uint   // of the operand in the 8 bytes
	mask             uint64 // of the word, not shifted
	operand, compare uint64
	addr             uint64
	rkey             uint32
	expect, swap     uint64 // of the step under way
	result           *uint64
	c                *hw.Completion
}

var casLoops = sync.Pool{New: func() any { return new(casLoop) }}

// loop starts a casLoop. The first step guesses that the word is 0 and learns
// what it is.
func (e *Endpoint) loop(t *transfer, op hw.AtomicOp, size int, operand, compare uint64, key hw.RemoteKey, result *uint64, c *hw.Completion) (hw.Status, error) {
	around := t.addr &^ 7
	if start, end := key[2], key[2]+key[3]; around < start || around+8 > end {
		return hw.Done, fmt.Errorf("verbs: the 8 bytes around a 4-byte word are not all registered: %w", hw.ErrKey)
	}
	l := casLoops.Get().(*casLoop)
	*l = casLoop{op: op, mask: ^uint64(0), operand: operand, compare: compare, addr: around, rkey: t.rkey, result: result, c: c}
	if size == 4 {
		l.mask = 1<<32 - 1
		l.shift = uint(t.addr-around) * 8
	}
	l.operand &= l.mask
	l.compare &= l.mask
	l.next(0)
	e.slow.Add(1)
	if !e.postStep(t.q, l, reserve) {
		e.slow.Add(-1)
		casLoops.Put(l)
		return hw.Done, e.full()
	}
	return hw.InProgress, nil
}

// next computes the step for a word that is old.
func (l *casLoop) next(old uint64) {
	v := applyOp(l.op, old>>l.shift&l.mask, l.operand, l.compare)
	l.expect = old
	l.swap = old&^(l.mask<<l.shift) | v&l.mask<<l.shift
}

// applyOp is what an operation makes of a word v.
func applyOp(op hw.AtomicOp, v, operand, compare uint64) uint64 {
	switch op {
	case hw.OpAdd:
		return v + operand
	case hw.OpAnd:
		return v & operand
	case hw.OpOr:
		return v | operand
	case hw.OpXor:
		return v ^ operand
	case hw.OpCSwap:
		if v != compare {
			return v
		}
	}
	return operand
}

// postStep posts a compare-and-swap. False: no place.
func (e *Endpoint) postStep(q *queue, l *casLoop, keep uint64) bool {
	pos, ok := q.claim(keep)
	if !ok {
		return false
	}
	op, en := q.op(pos), q.entry(pos)
	op.Opcode, op.Flags, op.Pieces, op.RemoteAddr, op.RKey = ibv.OpCompSwap, q.takeFence(), 1, l.addr, l.rkey
	op.CompareAdd, op.Swap = l.expect, l.swap
	op.SGE[0] = q.slotSGE(pos, 8)
	en.kind, en.loop = entryLoop, l
	q.signal(pos)
	q.publish(pos)
	return true
}

// step goes on after a compare-and-swap that found old and ended late ago, and returns how many
// completions were updated. While there is no place it waits among the endpoint's
// stalled loops. Lease.
func (l *casLoop) step(e *Endpoint, old uint64, late time.Duration, err error) int {
	if err == nil && old != l.expect {
		l.next(old)
		if e.postStep(&e.mem.queue, l, 0) {
			return 0
		}
		if e.failure.Load() == nil {
			e.mem.stalled = append(e.mem.stalled, l)
			e.i.notify(e)
			return 0
		}
		err = e.gone()
	}
	e.slow.Add(-1)
	result, c := l.result, l.c
	if err == nil && result != nil {
		*result = old >> l.shift & l.mask
	}
	*l = casLoop{}
	casLoops.Put(l)
	if c == nil {
		return 0
	}
	c.Late = late
	c.Update(1, err)
	return 1
}

// retryLoops posts the loops that found no place. Lease.
func (e *Endpoint) retryLoops() {
	if err := e.Err(); err != nil {
		list := e.mem.stalled
		e.mem.stalled = nil
		for _, l := range list {
			l.step(e, 0, 0, e.gone())
		}
	}
	for len(e.mem.stalled) > 0 && e.postStep(&e.mem.queue, e.mem.stalled[0], 0) {
		e.mem.stalled = e.mem.stalled[1:]
	}
}

// fetched is what an atomic operation left in its slot.
func (q *queue) fetched(pos uint64) uint64 { return binary.NativeEndian.Uint64(q.slot(pos)) }
