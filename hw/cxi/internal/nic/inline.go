package nic

import (
	"encoding/binary"

	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// Inline commands carry their data. What they have in common with others of their kind is not in them, but in a state
// that stands in the queue before them.

const (
	// MaxInline is the most payload of an inline message, and of an inline put that keeps an order, in bytes.
	MaxInline = wire.LimitInlineUnrestricted
	// MaxInlineRestricted is that of an inline put in no order with others.
	MaxInlineRestricted = wire.LimitInlineRestricted
)

// State is what the inline commands of a queue have in common.
type State struct {
	Initiator  uint32 // MatchID of this side
	Index      uint32 // to which they go
	EQ         uint32
	UserPtr    uint64 // in the events of puts and atomic operations
	ResultLAC  uint32 // the address context of what atomic operations fetch
	Restricted bool   // as in Transfer
	Flush      bool   // likewise
	Quiet      bool   // events say of what fails alone
}

// SetState writes the state of the inline commands behind it, unless the queue has it already. False: no room.
func (q *Queue) SetState(s *State) bool {
	head := command(wire.CmdTypeInline, wire.CmdSizeB32, wire.OpCstate) | wire.CstateSize<<wire.CstateLengthShift |
		1<<wire.CstateEventSendDisableShift | uint64(s.ResultLAC)<<wire.CstateWriteLacShift |
		bit(s.Quiet, wire.CstateEventSuccessDisableShift) | bit(s.Restricted, wire.CstateRestrictedShift) |
		bit(s.Flush, wire.CstateFlushShift) |
		uint64(s.Initiator)<<wire.CstateInitiatorShift
	index, eq := uint64(s.Index&wire.CstateIndexExtMask), uint64(s.EQ)<<wire.CstateEqShift
	if q.state[0] == head && q.state[1] == index && q.state[2] == s.UserPtr && q.state[3] == eq {
		return true
	}
	w := q.begin(wire.CmdSizeB32)
	if w == nil {
		return false
	}
	w[0], w[1], w[2], w[3] = head, index, s.UserPtr, eq
	q.state[0], q.state[1], q.state[2], q.state[3] = head, index, s.UserPtr, eq
	return true
}

// NoState has the next SetState write its state, whatever the queue has.
func (q *Queue) NoState() { q.state[0] = 0 }

// Ends reports whether events say how a command of a transmit queue ends, by its first byte ([Event.Command]): those
// that change its state or profile have none.
func Ends(command uint64) bool {
	kind, opcode := command>>wire.CommandTypeShift&wire.CommandTypeMask, command>>wire.CommandOpcodeShift
	return kind == wire.CmdTypeDma || kind == wire.CmdTypeInline && opcode != wire.OpCstate
}

// sizeOf is the class (wire.CmdSize) of a command of n bytes, at most 256.
func sizeOf(n int) uint32 {
	switch {
	case n > 128:
		return wire.CmdSizeB256
	case n > 64:
		return wire.CmdSizeB128
	case n > 32:
		return wire.CmdSizeB64
	}
	return wire.CmdSizeB32
}

// Inline writes a message of head and payload, together 1 to MaxInline bytes. False: no room.
func (q *Queue) Inline(m *Message, head, payload []byte) bool {
	n := wire.InlineMessageSize + len(head) + len(payload)
	size := sizeOf(max(n, wire.InlineMessageSize+1))
	w := q.beginTo(&m.To, size)
	if w == nil {
		return false
	}
	w[0] = command(wire.CmdTypeInline, uint64(size), wire.OpSmallMessage) | uint64(n)<<wire.InlineMessageLengthShift |
		m.To.dfa()<<wire.InlineMessageDfaShift
	w[1], w[2], w[3] = m.MatchBits, m.HeaderData, m.UserPtr
	if len(head) == 0 && len(payload) == 8 {
		w[4] = binary.NativeEndian.Uint64(payload)
		return true
	}
	to := bytesOf(w)[wire.InlineMessageSize:]
	copy(to[copy(to, head):], payload)
	return true
}

// PutInline writes payload, at most MaxInlineRestricted bytes, or MaxInline if the state is not restricted, at an
// offset in the entry of a list without matching. False: no room.
func (q *Queue) PutInline(to *Address, offset uint64, payload []byte) bool {
	n := wire.InlineHeadSize + len(payload)
	size := sizeOf(n)
	w := q.beginTo(to, size)
	if w == nil {
		return false
	}
	w[0] = command(wire.CmdTypeInline, uint64(size), wire.OpPut) | uint64(n)<<wire.InlineHeadLengthShift |
		to.dfa()<<wire.InlineHeadDfaShift
	w[1] = offset & wire.InlineHeadRemoteOffsetMask
	copy(bytesOf(w)[wire.InlineHeadSize:], payload)
	return true
}

// AtomicInline writes an operation on an element of a list without matching: of a, To, Offset, Op, Type, Fetch, Result
// and the operands count. False: no room.
func (q *Queue) AtomicInline(a *Atomic) bool {
	if a.Fetch || a.Op == wire.AmoCswap || a.Op == wire.AmoAxor || a.Type == wire.AmoTypeC64 {
		return q.atomicInlineLong(a)
	}
	w := q.beginTo(&a.To, wire.CmdSizeB32)
	if w == nil {
		return false
	}
	w[0] = command(wire.CmdTypeInline, wire.CmdSizeB32, wire.OpAtomic) | inlineAtomicBytes<<wire.InlineHeadLengthShift |
		a.To.dfa()<<wire.InlineHeadDfaShift
	w[1] = a.Offset & wire.InlineHeadRemoteOffsetMask
	w[2] = a.Op<<wire.InlineAtomicSmallAmoOpShift | a.Type<<wire.InlineAtomicSmallAmoTypeShift
	w[3] = a.Operand
	return true
}

// inlineAtomicBytes is the length of the short form: of one operand of a word, and without a result.
const inlineAtomicBytes = wire.InlineHeadSize + wire.InlineAtomicSmallSize

// atomicInlineLong is AtomicInline in the long form.
func (q *Queue) atomicInlineLong(a *Atomic) bool {
	w := q.beginTo(&a.To, wire.CmdSizeB64)
	if w == nil {
		return false
	}
	opcode := uint64(wire.OpAtomic)
	if a.Fetch {
		opcode = wire.OpFetchingAtomic
	}
	w[0] = command(wire.CmdTypeInline, wire.CmdSizeB64, opcode) |
		wire.InlineAtomicSize<<wire.InlineHeadLengthShift | a.To.dfa()<<wire.InlineHeadDfaShift
	w[1] = a.Offset & wire.InlineHeadRemoteOffsetMask
	w[2] = a.Result.IOVA & wire.InlineAtomicLocalAddrMask
	w[3] = a.Op<<wire.InlineAtomicAtomicOpShift | a.Type<<wire.InlineAtomicAtomicTypeShift |
		a.Condition<<wire.InlineAtomicCswapOpShift
	w[4], w[5], w[6], w[7] = a.Operand, a.OperandHigh, a.Compare, a.CompareHigh
	return true
}
