package nic

import "github.com/weft-fabric/weft/hw/cxi/internal/wire"

// command is the first byte of a command.
func command(kind, size, opcode uint64) uint64 {
	return kind<<wire.CommandTypeShift | size<<2 | opcode<<wire.CommandOpcodeShift
}

// Address is where a command goes: a NIC, a PID there, and one of its indices.
type Address struct {
	NID, PID uint32
	Index    uint32
	PIDBits  uint32 // how many bits a PID has on this fabric
	// Profile is the communication profile (LCID) of commands to it: in the virtual network of that it is reached.
	Profile uint32
}

// dfa is the address but for the lower five bits of the index.
func (a *Address) dfa() uint64 {
	return uint64(a.NID)<<wire.FabricAddressNidShift | uint64(a.Index>>5<<a.PIDBits+a.PID)
}

// MatchID is how the receiver of a command sees its sender.
func MatchID(nid, pid, pidBits uint32) uint32 { return pid<<(32-pidBits) | nid }

// AnyID as the match id of a list entry admits all: any PID, and in all bits below any rank or NIC.
func AnyID() uint32 { return MatchID(wire.LimitRankAny, wire.LimitPidAny, maxPIDBits) }

// maxPIDBits is the most bits that a PID has.
const maxPIDBits = 9

// beginTo is begin of a command to an address, behind one that changes the profile if it has another.
func (q *Queue) beginTo(to *Address, size uint32) *[32]uint64 {
	if to.Profile != q.profile {
		w := q.begin(wire.CmdSizeB64)
		if w == nil {
			return nil
		}
		clear(w[:8])
		w[0] = command(wire.CmdTypeCmdq, wire.CmdSizeB64, wire.CmdqOpLcid)
		w[wire.CmdqLcidWord] |= uint64(to.Profile) & wire.CmdqLcidMask << wire.CmdqLcidShift
		q.profile = to.Profile
	}
	return q.begin(size)
}

// Message is a put to a matching list.
type Message struct {
	To         Address
	MatchBits  uint64
	HeaderData uint64
	UserPtr    uint64 // in the event
}

// Memory is a piece of this side's memory, as the NIC sees it.
type Memory struct {
	IOVA uint64
	LAC  uint32
	Len  uint32
}

// Transfer is a put or get to a matching list by DMA.
type Transfer struct {
	Message
	Offset    uint64 // in the entry that it matches
	Local     Memory
	Initiator uint32 // MatchID of this side
	EQ        uint32
	// Restricted has it go to an index without matching, in no order with others.
	Restricted bool
	// Flush has a put be acknowledged only when the receiver's processors see it.
	Flush bool
}

// dma writes the words that all transfers have.
func (t *Transfer) dma(w *[32]uint64, size, opcode uint64) {
	w[0] = command(wire.CmdTypeDma, size, opcode) | uint64(t.To.Index&wire.DmaIndexExtMask)<<wire.DmaIndexExtShift |
		uint64(t.Local.LAC)<<wire.DmaLacShift | 1<<wire.DmaEventSendDisableShift | bit(t.Restricted,
		wire.DmaRestrictedShift) | bit(t.Flush, wire.DmaFlushShift) |
		t.To.dfa()<<wire.DmaDfaShift
	w[1] = t.Offset & wire.DmaRemoteOffsetMask
	w[2] = t.Local.IOVA & wire.DmaLocalAddrMask
	w[3] = uint64(t.Local.Len)<<wire.DmaRequestLenShift | uint64(t.EQ)<<wire.DmaEqShift
	w[4] = uint64(t.Initiator) << wire.DmaInitiatorShift
	w[5], w[6], w[7] = t.MatchBits, t.HeaderData, t.UserPtr
}

// Put writes t.Local. False: no room.
func (q *Queue) Put(t *Transfer) bool { return q.transfer(t, wire.OpPut) }

// Get reads into t.Local. False: no room.
func (q *Queue) Get(t *Transfer) bool { return q.transfer(t, wire.OpGet) }

// PutRendezvous writes the first eager bytes of t.Local; the receiver's NIC gets the rest from t.Offset on, at the
// index for that, once the message has found its receive. id are the lower eight bits of the rendezvous' number. False:
// no room.
func (q *Queue) PutRendezvous(t *Transfer, eager, id uint32) bool {
	w := q.beginTo(&t.To, wire.CmdSizeB64)
	if w == nil {
		return false
	}
	t.dma(w, wire.CmdSizeB64, wire.OpRendezvousPut)
	w[wire.DmaUseOffsetForGetWord] |= 1 << wire.DmaUseOffsetForGetShift
	w[wire.DmaEagerLengthWord] |= uint64(eager)&wire.DmaEagerLengthMask<<wire.DmaEagerLengthShift |
		uint64(id)&wire.DmaRendezvousIdMask<<wire.DmaRendezvousIdShift
	return true
}

func (q *Queue) transfer(t *Transfer, opcode uint64) bool {
	w := q.beginTo(&t.To, wire.CmdSizeB64)
	if w == nil {
		return false
	}
	t.dma(w, wire.CmdSizeB64, opcode)
	return true
}

// Atomic is an operation on an element: its operand is in Local, or of an inline command in Operand.
type Atomic struct {
	Transfer
	Op     uint64 // wire.AmoSum, …
	Type   uint64 // wire.AmoTypeU64, …
	Fetch  bool   // the word as it was goes to Result
	Result Memory
	// Compare and CompareHigh are the words of the other operand, of wire.AmoCswap and wire.AmoAxor.
	Compare, CompareHigh uint64
	// Operand and OperandHigh are the words of the operand, with zeros behind its bytes.
	Operand, OperandHigh uint64
	Condition            uint64 // of wire.AmoCswap: wire.CswapEq, …
}

// Atomic writes the operation. False: no room.
func (q *Queue) Atomic(a *Atomic) bool {
	w := q.beginTo(&a.To, wire.CmdSizeB128)
	if w == nil {
		return false
	}
	opcode := uint64(wire.OpAtomic)
	if a.Fetch {
		opcode = wire.OpFetchingAtomic
	}
	a.dma(w, wire.CmdSizeB128, opcode)
	w[8] = a.Result.IOVA & wire.DmaAtomicLocalWriteAddrMask
	w[9] = a.Op<<wire.DmaAtomicAtomicOpShift | a.Type<<wire.DmaAtomicAtomicTypeShift |
		a.Condition<<wire.DmaAtomicCswapOpShift | uint64(a.Result.LAC)<<wire.DmaAtomicWriteLacShift
	w[10], w[11] = a.Compare, a.CompareHigh
	return true
}

// Entry is an entry of one of a portal table entry's lists.
type Entry struct {
	PtlTE     uint32 // its number here
	List      uint32 // wire.ListPriority, …
	ID        uint16 // in events
	Memory    Memory // Len is not used
	Length    uint64 // bytes
	MatchBits uint64
	Ignore    uint64 // bits of MatchBits that match anything
	MatchID   uint32
	MinFree   uint32 // with Managed: it goes when less is left
	Managed   bool   // messages lie one behind the other, whatever their offset; else at their offset
	Put, Get  bool   // what may be done to it
	Silent    bool   // no events of what is done to it
	NoLink    bool   // no event when it is appended, unless that fails
	NoUnlink  bool   // no event when it goes by itself: the event of the message that used it up says so
	Once      bool   // it goes with the first message; a search ends with the first match
	// InOrder has the NIC refuse it as long as it has refused one before and none without InOrder has come since.
	InOrder bool
}

func bit(on bool, shift uint) uint64 {
	v := uint64(0)
	if on { // no branch
		v = 1
	}
	return v << shift
}

// target writes the words that commands about entries have.
func (e *Entry) target(w *[32]uint64, opcode uint64) {
	w[0] = command(wire.CmdTypeCmdq, wire.CmdSizeB64, opcode) | uint64(e.List)<<wire.TargetPtlListShift |
		uint64(e.PtlTE)<<wire.TargetPtlteIndexShift |
		bit(e.Silent, wire.TargetEventSuccessDisableShift) | bit(e.Silent, wire.TargetEventCommDisableShift) |
		bit(e.NoLink, wire.TargetEventLinkDisableShift) | bit(e.NoUnlink, wire.TargetEventUnlinkDisableShift) |
		bit(e.Once, wire.TargetUseOnceShift) | bit(e.Managed, wire.TargetManageLocalShift) |
		bit(e.Put, wire.TargetOpPutShift) | bit(e.Get, wire.TargetOpGetShift)
	w[1] = uint64(e.ID)<<wire.TargetBufferIdShift | uint64(e.Memory.LAC)<<wire.TargetLacShift
}

// Append appends the entry. False: no room.
func (q *Queue) Append(e *Entry) bool {
	w := q.begin(wire.CmdSizeB64)
	if w == nil {
		return false
	}
	e.target(w, wire.CmdqOpAppend)
	w[1] |= bit(!e.InOrder, wire.TargetRestartSeqShift)
	e.rest(w)
	return true
}

// rest writes the words behind the first two.
func (e *Entry) rest(w *[32]uint64) {
	w[2] = e.Memory.IOVA & wire.TargetStartMask
	w[3] = e.Length & wire.TargetLengthMask
	w[4] = uint64(e.MinFree)<<wire.TargetMinFreeShift | uint64(e.MatchID)<<wire.TargetMatchIdShift
	w[5], w[6], w[7] = e.MatchBits, e.Ignore, 0
}

// Search finds unexpected messages that an entry with e's match bits would take: an event for each, and one that says
// when there are no more. With Once it ends with the first. False: no room.
func (q *Queue) Search(e *Entry) bool { return q.search(e, wire.CmdqOpSearch) }

// Remove takes unexpected messages away that an entry with e's match bits would take: an event of wire.EventPutOverflow
// for each, and one of wire.EventSearch when there are no more. With Once it takes the first away. False: no room.
func (q *Queue) Remove(e *Entry) bool { return q.search(e, wire.CmdqOpSearchAndDelete) }

func (q *Queue) search(e *Entry, opcode uint64) bool {
	w := q.begin(wire.CmdSizeB64)
	if w == nil {
		return false
	}
	s := Entry{PtlTE: e.PtlTE, List: wire.ListUnexpected, ID: e.ID, Length: 1<<32 - 1, MatchBits: e.MatchBits,
		Ignore:  e.Ignore,
		MatchID: e.MatchID, Once: e.Once}
	s.target(w, opcode)
	s.rest(w)
	return true
}

// Unlink takes the entry with this PtlTE and ID out of the list; an event follows in any case. False: no room.
func (q *Queue) Unlink(e *Entry) bool {
	w := q.begin(wire.CmdSizeB64)
	if w == nil {
		return false
	}
	e.target(w, wire.CmdqOpUnlink)
	w[2], w[3], w[4], w[5], w[6], w[7] = 0, 0, 0, 0, 0, 0
	return true
}

// Enable lets a portal table entry take commands, whatever it has dropped. False: no room.
func (q *Queue) Enable(ptlTE uint32) bool { return q.Resume(ptlTE, wire.LimitNoDropCount) }

// Resume lets a portal table entry take commands if it has dropped so many: else an event says that it has not.
// False: no
// room.
func (q *Queue) Resume(ptlTE, drops uint32) bool {
	return q.setState(ptlTE, wire.PtlteStateEnabled, drops)
}

// Disable has a portal table entry drop messages; lists may be changed still. False: no room.
func (q *Queue) Disable(ptlTE uint32) bool { return q.setState(ptlTE, wire.PtlteStateDisabled, 0) }

// Manage has a portal table entry that was never enabled leave matching to software: messages that no entry of the
// priority list takes go to the request list, with their headers. False: no room.
func (q *Queue) Manage(ptlTE uint32) bool {
	return q.setState(ptlTE, wire.PtlteStateSoftwareManaged, wire.LimitNoDropCount)
}

func (q *Queue) setState(ptlTE uint32, state uint64, drops uint32) bool {
	w := q.begin(wire.CmdSizeB64)
	if w == nil {
		return false
	}
	w[0] = command(wire.CmdTypeCmdq, wire.CmdSizeB64, wire.CmdqOpSetState) | state<<wire.SetStatePtlteStateShift |
		uint64(ptlTE)<<wire.SetStatePtlteIndexShift
	w[1] = 0
	w[2] = uint64(drops&wire.SetStateDropCountMask) << wire.SetStateDropCountShift
	w[3], w[4], w[5], w[6], w[7] = 0, 0, 0, 0, 0
	return true
}
