package dataplane

import (
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/outbound"
)

// The messages of atomic operations and of reads, for both sides.

// atomicHeadBytes are those of a hot.AtomicHead.
const atomicHeadBytes = int(unsafe.Sizeof(hot.AtomicHead{}))

// fetchedHeadBytes are those of the head of hot.AMReadData: the offset.
const fetchedHeadBytes = 8

// readHeadBytes are those of a hot.ReadHead.
const readHeadBytes = int(unsafe.Sizeof(hot.ReadHead{}))

// putRead writes a read of Len bytes into a slot, and returns the address of what follows the head.
func putRead(p *hot.Post, slot *hot.Slot) uintptr {
	outbound.Put(slot, hot.AMRead, 0, readHeadBytes, 0, p.Header)
	body := bodyOf(slot)
	h := (*hot.ReadHead)(pointer(body))
	h.Key, h.Request, h.Length, h.At, h.Ends = p.Key, p.Request, p.Len, 0, hot.EndsOperation
	return body + uintptr(readHeadBytes)
}

// rightsOf are the rights that an atomic operation of a kind needs.
func rightsOf(kind uint32, reads bool) uint32 {
	switch {
	case reads:
		return hot.KeyRead
	case kind == hot.AtomicPlain:
		return hot.KeyWrite
	}
	return hot.KeyWrite | hot.KeyRead
}

// operands are the bytes of operand and comparand of an operation on Len bytes.
func operands(p *hot.Post) (operand, compare uint64) {
	if fi.Op(p.Op) != fi.OpRead {
		operand = p.Len
	}
	if p.Atomic == hot.AtomicCompare {
		compare = p.Len
	}
	return operand, compare
}

// putAtomic writes all but operand and comparand of an operation into a slot, and returns the address of what follows
// the head.
func putAtomic(p *hot.Post, slot *hot.Slot, flags uint8) uintptr {
	operand, compare := operands(p)
	outbound.Put(slot, hot.AMAtomic, flags, atomicHeadBytes, int(operand+compare), p.Header)
	body := bodyOf(slot)
	head := (*hot.AtomicHead)(pointer(body))
	head.Key, head.Request, head.Op, head.Datatype, head.Kind, head.Ends, head.At =
		p.Key, p.Request, uint8(p.Op), uint8(p.Datatype), uint8(p.Atomic), hot.EndsOperation, 0
	head.Count = uint32(p.Len) / uint32(fi.Datatype(p.Datatype).Size())
	return body + uintptr(atomicHeadBytes)
}

// putOperands writes operand and comparand.
func putOperands(p *hot.Post, to uintptr) {
	operand, compare := operands(p)
	if operand != 0 {
		move(to, p.Buf, uintptr(operand))
	}
	if compare != 0 {
		move(to+uintptr(operand), p.Compare, uintptr(compare))
	}
}
