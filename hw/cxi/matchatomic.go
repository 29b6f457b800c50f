package cxi

import (
	"encoding/binary"
	"fmt"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// Atomic operations on peers' regions, which their NICs perform. Their results lie in the memory of the command's
// place,
// and so do operands that do not go with the command, which those do to a list without matching. They are never
// restricted: what is restricted may be performed twice when a packet or its answer is lost.

const (
	operandBytes = 16
	resultAt     = 32 // in the memory of a place, behind the operand
)

// atomicOp is what the NIC has for an operation.
type atomicOp struct {
	code, condition uint64
	types           uint16 // bits by hw.MatchType
	fetches         bool   // it always does
}

// Types of operations: all integers to 64 bits, and real numbers, and complex ones.
const (
	integers = 1<<8 - 1
	reals    = integers | 1<<hw.MatchFloat | 1<<hw.MatchDouble
	numeric  = reals | 1<<hw.MatchComplex64 | 1<<hw.MatchComplex
	wide     = 1<<hw.MatchInt128 | 1<<hw.MatchUint128
)

// atomicOps are the operations. A write is a swap on another value, and a read a sum with 0, as in libfabric's
// provider: a NIC may have been set up to do something else for a swap.
var atomicOps = [...]atomicOp{
	hw.MatchMin:        {wire.AmoMin, 0, reals, false},
	hw.MatchMax:        {wire.AmoMax, 0, reals, false},
	hw.MatchSum:        {wire.AmoSum, 0, numeric, false},
	hw.MatchLogicalOr:  {wire.AmoLor, 0, integers, false},
	hw.MatchLogicalAnd: {wire.AmoLand, 0, integers, false},
	hw.MatchOr:         {wire.AmoBor, 0, integers, false},
	hw.MatchAnd:        {wire.AmoBand, 0, integers, false},
	hw.MatchLogicalXor: {wire.AmoLxor, 0, integers, false},
	hw.MatchXor:        {wire.AmoBxor, 0, integers, false},
	hw.MatchRead:       {wire.AmoSum, 0, numeric, true},
	hw.MatchWrite:      {wire.AmoCswap, wire.CswapNe, numeric, false},
	hw.MatchSwap:       {wire.AmoCswap, wire.CswapEq, numeric | wide, true},
	hw.MatchSwapNE:     {wire.AmoCswap, wire.CswapNe, numeric, true},
	hw.MatchSwapLE:     {wire.AmoCswap, wire.CswapLe, reals, true},
	hw.MatchSwapLT:     {wire.AmoCswap, wire.CswapLt, reals, true},
	hw.MatchSwapGE:     {wire.AmoCswap, wire.CswapGe, reals, true},
	hw.MatchSwapGT:     {wire.AmoCswap, wire.CswapGt, reals, true},
	hw.MatchMasked:     {wire.AmoAxor, 0, integers, true},
}

// atomicType is what the NIC has for a type.
type atomicType struct {
	code  uint64
	bytes int
}

var atomicTypes = [16]atomicType{
	hw.MatchInt8: {wire.AmoTypeI8, 1}, hw.MatchUint8: {wire.AmoTypeU8, 1},
	hw.MatchInt16: {wire.AmoTypeI16, 2}, hw.MatchUint16: {wire.AmoTypeU16, 2},
	hw.MatchInt32: {wire.AmoTypeI32, 4}, hw.MatchUint32: {wire.AmoTypeU32, 4},
	hw.MatchInt64: {wire.AmoTypeI64, 8}, hw.MatchUint64: {wire.AmoTypeU64, 8},
	hw.MatchFloat: {wire.AmoTypeF32, 4}, hw.MatchDouble: {wire.AmoTypeF64, 8},
	hw.MatchComplex64: {wire.AmoTypeC32, 8}, hw.MatchComplex: {wire.AmoTypeC64, 16},
	hw.MatchInt128: {wire.AmoTypeU128, 16}, hw.MatchUint128: {wire.AmoTypeU128, 16},
}

// AtomicValid reports whether there is an operation on a type.
func (m *matcher) AtomicValid(op hw.MatchOp, t hw.MatchType, fetch bool) bool {
	return AtomicValid(op, t, fetch)
}

// AtomicValid is what matchers' AtomicValid reports.
func AtomicValid(op hw.MatchOp, t hw.MatchType, fetch bool) bool {
	_, _, ok := atomicOf(op, t, fetch)
	return ok
}

// atomicOf is an operation on a type, with a result if fetch. False: there is none.
func atomicOf(op hw.MatchOp, t hw.MatchType, fetch bool) (o atomicOp, d atomicType, ok bool) {
	if int(op) >= len(atomicOps) || int(t) >= len(atomicTypes) {
		return o, d, false
	}
	o, d = atomicOps[op], atomicTypes[t]
	return o, d, o.types>>t&1 != 0 && (fetch || !o.fetches)
}

// PostAtomic posts an operation.
func (m *matcher) PostAtomic(p *hw.MatchAtomic) error {
	fetch := p.Fetch || AtomicValid(p.Op, p.Type, true) && atomicOps[p.Op].fetches
	o, d, ok := atomicOf(p.Op, p.Type, fetch)
	switch {
	case !ok:
		return fmt.Errorf("cxi: no atomic operation %d on type %d: %w", p.Op, p.Type, hw.ErrInvalid)
	case p.Shared && (fetch || p.Context >= hw.SharedContexts):
		return fmt.Errorf("cxi: a fetching operation, or context %#x, with a shared one: %w", p.Context, hw.ErrInvalid)
	case m.i.closed.Load():
		return errClosed
	}
	at, err := regionAt(p.Key, p.Offset, false)
	if err != nil {
		return err
	}
	a := access{at: at, get: fetch, more: true, delivered: p.Delivered, shared: p.Shared}
	if a.to, err = m.at(p.To, a.index()); err != nil {
		return err
	}
	var operand, compare [operandBytes]byte
	copy(operand[:d.bytes], p.Operand[:])
	copy(compare[:d.bytes], p.Compare[:])
	operands(p.Op, &operand, &compare)
	t := m.txOf(p.To)
	t.lock.take()
	defer t.endPost(p.More)
	if a.placed() {
		if err := t.mapPlaces(); err != nil {
			return err
		}
	}
	if !t.atomic(&a, &o, &d, &operand, &compare, p.Context) {
		return hw.ErrNoResource
	}
	return nil
}

// placed reports whether an atomic operation needs memory of its place.
func (a *access) placed() bool { return a.get || !a.at.Own }

// operands become what the NIC gets, which knows some operations under other names.
func operands(op hw.MatchOp, operand, compare *[operandBytes]byte) {
	switch op {
	case hw.MatchRead:
		*operand = [operandBytes]byte{}
	case hw.MatchWrite:
		*compare = *operand
	case hw.MatchMasked: // (element and not compare) xor operand
		for k := range operand {
			operand[k] &= compare[k]
		}
	}
}

// atomic writes the command. One that fetches and is to be flushed has a put of no bytes behind it, which the peer's
// NIC performs later: its own flush says nothing of the element. False: no room. The memory of places is mapped if it
// needs that. The caller has the lock.
func (t *matchTx) atomic(a *access, o *atomicOp, d *atomicType, operand, compare *[operandBytes]byte,
	context uint64) bool {
	if a.shared && a.at.Own {
		return t.performShared(a, o, d, operand, compare, context)
	}
	s, n := t.begin(receiverPlaces)
	flush := a.get && a.delivered
	if s == nil || flush && !t.q.Room(2) {
		return false
	}
	c := nic.Atomic{Op: o.code, Condition: o.condition, Type: d.code, Fetch: a.get}
	t.address(&c.Transfer, a, n)
	if a.get {
		c.Result = t.places.at(int(n)*placeBytes+resultAt, d.bytes)
	}
	elements(&c, operand, compare)
	if a.at.Own {
		t.inlineState(a, t.cookie(n), c.Result.LAC)
		t.q.AtomicInline(&c)
	} else {
		c.Local = t.injected(n, operand[:min(d.bytes, operandBytes)])
		t.q.Atomic(&c)
	}
	t.commit(s, sentAtomic, context)
	s.own, s.awaited, s.fetched, s.shared, s.length = a.at.Own, 1, 0, a.shared, uint32(d.bytes)
	if a.get {
		s.fetched = uint8(d.bytes)
	}
	if flush {
		put := nic.Transfer{Message: c.Message, Offset: c.Offset, Initiator: c.Initiator, EQ: c.EQ, Flush: true}
		t.q.Put(&put)
		s.last = t.q.Slot()
		s.awaited++
	}
	return true
}

// elements stores the elements of an operation in its command.
func elements(c *nic.Atomic, operand, compare *[operandBytes]byte) {
	c.Operand, c.OperandHigh = binary.NativeEndian.Uint64(operand[:8]), binary.NativeEndian.Uint64(operand[8:])
	if c.Op == wire.AmoCswap || c.Op == wire.AmoAxor {
		c.Compare, c.CompareHigh = binary.NativeEndian.Uint64(compare[:8]), binary.NativeEndian.Uint64(compare[8:])
	}
}

// performed takes in an answer about an atomic operation, which ends with the last.
func (t *matchTx) performed(n, code uint32) {
	s := &t.slots[n]
	if code != wire.RcOk {
		s.code = code
	}
	if !s.awaitsMore() {
		t.complete(n, transferError(s.own, s.code))
	}
}

// fetchedBy is what an operation has fetched.
func (t *matchTx) fetchedBy(n uint32) (b [operandBytes]byte) {
	if k := int(t.slots[n].fetched); k != 0 {
		off := int(n)*placeBytes + resultAt
		copy(b[:k], t.places.memory[off:off+k])
	}
	return b
}
