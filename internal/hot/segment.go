package hot

import "structs"

// The shared-memory segment of one endpoint (hw/loopback).
//
// A segment is an owner-only file. Its owner creates it, peers map it to push into its inbound ring and to return
// bounce buffers. Nothing in it is trusted by a reader: geometry is copied out and checked once when it is mapped,
// every other word is read once and checked before it is used.
//
//	header | inbound rings | attach table | key table | claims | proofs | bounce buffers
//
// There are RxRings inbound rings, each a [RxRing] and its slots. The sender in attach entry i writes to ring i, all
// for itself; those behind the last entries with a ring of their own share the last ring.

// SegMagic and SegVersion identify the segment layout.
const (
	SegMagic   = 0x31746665772d6766
	SegVersion = 9 // changes with the layout, and with what is said through it
)

// Bits of Flags of [Segment] and [Attach]: the endpoint's socket is bound to a wildcard address, so it answers at every
// address of this host of these families. Its segment has a second name then, [::]:port if it answers over IPv6, else
// 0.0.0.0:port.
const (
	SegAnyIPv4 = 1
	SegAnyIPv6 = 2
)

// Bits of [Segment].Flags: its owner holds a lock in the directory while it lives (internal/proclock), so that other
// pid namespaces know; and it is reached from other network namespaces, where its segment has another name.
const (
	SegLocked = 4
	SegAcross = 8
)

// AuthBytes is the size of what is said about an authorisation key (hw/loopback/auth.go).
const AuthBytes = 16

// Bits of [Segment].RxState: what senders must know before each message.
const (
	RxOpen     = 1 // eager payloads are welcome
	RxWaitable = 2 // the owner may sleep: read armed after publishing
	RxGone     = 4 // the endpoint was closed
	RxRevoked  = 8 // peers fetch nothing any more of what its owner has offered
)

// NoticeWords is the number of words that an endpoint says to all peers.
const NoticeWords = 16

// Segment is the header of an endpoint's segment.
//
//weft:name weft_segment
type Segment struct {
	_ structs.HostLayout
	// lines 0-2: written by the owner before the file gets its name, then immutable; up to start_time the same in
	// every version, so that leftovers of all can be recognised
	Magic        uint64
	Version      uint32
	PID          uint32
	Bytes        uint64 // of the whole file
	Cookie       uint64 // random, differs in two segments of one name
	BootID       [2]uint64
	PIDNamespace uint64 // inode
	NetNamespace uint64 // inode
	StartTime    uint64 // of the owner process, and what it runs (internal/proc)
	UID          uint32 // as the user namespace above the owner's numbers it
	NameBytes    uint32
	Name         [28]byte // sockaddr that the endpoint is known by
	RingLog2     uint32   // slots of each inbound ring
	RingOffset   uint64   // of the first; the stride is sizeof([RxRing]) and the slots
	AttachOffset uint64
	AttachCount  uint32
	BounceCount  uint32
	BounceOffset uint64
	BounceBytes  uint32 // payload bytes of one buffer
	BounceStride uint32 // bounce_bytes + one line, rounded to lines
	Flags        uint32 // Seg*
	KeyCount     uint32 // a power of two, or 0: no region is published
	Number       uint32 // among the endpoints of one sockaddr
	KeyOffset    uint64 // the claims follow the keys
	AuthOffset   uint64 // of the proofs, AuthBytes each
	AuthCount    uint32 // authorisation keys of the owner; 0: none
	_            uint32
	// line 3: written by the owner (release), read by every sender (acquire)
	RxState uint32 `c:"_Atomic"`
	Armed   uint32 `c:"_Atomic"` // 1: the owner is about to sleep or sleeps
	_       [56]byte
	// line 4: raised by each new sender before its first message (CAS), and by the owner for senders that it finds in
	// the attach table. Loaded by pollers of the owner, relaxed.
	RxRings uint32 `c:"_Atomic"` // inbound rings in use: the first so many
	_       [60]byte
	// lines 5-6: what the owner says to all peers (hw.Noticeboard); written by the owner's lease holder, read by
	// peers, relaxed. 0 at first.
	Notice [NoticeWords]uint64 `c:"_Atomic"`
}

// RxRings is the number of inbound rings of a segment: seven that belong to one sender each, and one for all others.
// No two senders share a ring as a rule, so a sender that posts from one thread needs no locked instruction; and
// eight are few enough to poll.
const RxRings = 8

// RxRing stands before the slots of an inbound ring.
//
//weft:name weft_rx_ring
type RxRing struct {
	_    structs.HostLayout
	Tail uint64 `c:"_Atomic"` // written and read by the ring's senders, relaxed (see ring.h)
	// of a ring with one sender: positions that are free end here (internal/outbound); the sender's, relaxed
	Free uint64 `c:"_Atomic"`
	_    [112]byte
}

// Sizes of an inbound slot, in bytes.
const (
	SlotBytes = 128
	SlotBody  = 104
)

// SlotBounce is a bit of [Slot].Flags: the payload is in a bounce buffer of the sender's segment.
const SlotBounce = 1

// Slot is one message in the inbound ring: two cache lines, the first holds all of a message of up to 40 bytes. The
// sequence word's owner is the sender's attach index plus one.
//
//weft:name weft_slot
type Slot struct {
	_      structs.HostLayout
	Seq    uint64         `c:"_Atomic"`
	AMID   uint8          // active message id, < 32
	Flags  uint8          // Slot*
	Head   uint16         // bytes in body before the payload (CQ data, protocol headers)
	Length uint32         // payload bytes, head not counted
	Header uint64         // the active message's 64-bit header
	Body   [SlotBody]byte // head, then the payload or [BounceRef]
}

// BounceRef names a bounce buffer. It stands in Body at the first multiple of 8 at or after Head.
//
//weft:name weft_bounce_ref
type BounceRef struct {
	_     structs.HostLayout
	Index uint32 // of the buffer in the sender's segment
	_     uint32
}

// States of an [Attach] entry. The owner sets it free again when no message of the sender is left.
//
//weft:enum weft_attach_state
const (
	AttachFree    = 0
	AttachClaimed = 1 // one 64-bit CAS by the sender writes state and pid
	AttachReady   = 2 // store release by the sender
	AttachLeaving = 3 // store release by the sender after its last message
	AttachRefused = 4 // CAS by the owner from ready: it drops all that the sender sends, and is gone for it
)

// Attach is a sender's entry in the receiver's attach table.
//
//weft:name weft_attach
type Attach struct {
	_         structs.HostLayout
	State     uint32 `c:"_Atomic"`
	PID       uint32
	StartTime uint64
	Cookie    uint64 // of the sender's segment
	NameBytes uint32
	Name      [28]byte
	Flags     uint32          // Seg*
	Number    uint32          // of the sender's segment
	Words     [4]uint64       `c:"_Atomic"` // what sender and receiver agree on with the layers above (package claim)
	Auth      [AuthBytes]byte // says which authorisation key of the owner the sender has; 0: none
	_         [16]byte
}

// Bounce is the header of a bounce buffer, one line; the payload follows.
//
//weft:name weft_bounce
//weft:tail uint8_t payload[]
type Bounce struct {
	_     structs.HostLayout
	State uint32 `c:"_Atomic"` // 0 free, else attach index + 1 of the sender at the receiver that holds it
	Peer  uint32 // sender's number of the receiver, to free it when that one dies
	_     [56]byte
}

// Rights in [Key].Access.
const (
	KeyRead   = 1
	KeyWrite  = 2
	KeyDevice = 4 // alone: memory of a device, which peers do not reach by the entry, and no address is in it
)

// KeyProbes is how far from its place an entry may stand.
const KeyProbes = 16

// Key is a published memory region: peers may read and write it by themselves. The owner fills an entry and stores
// the state last (release); a peer that uses it copies it and reads the state again. An entry stands within KeyProbes
// of the place that [KeyPlace] gives, cyclically.
//
//weft:name weft_key
type Key struct {
	_      structs.HostLayout
	State  uint64 `c:"_Atomic"` // generation << 1 | published; changes with each use of the entry
	Name   uint64 // the key that peers know
	Addr   uint64 // of the first byte, in the owner's process
	Base   uint64 // what peers call that address
	Len    uint64 // bytes
	Access uint32 // Key*
	_      [20]byte
}

// Claims is the number of claims of a segment.
const Claims = 64

// Claim says that a process is at a region now, so that its owner waits with the end of the registration: claimed by
// one compare-and-swap of Word before the region's state is read (sequentially consistent both), freed by a
// store of 0 (release). A claim of a dead process counts for nothing.
//
//weft:name weft_claim
type Claim struct {
	_         structs.HostLayout
	Word      uint64 `c:"_Atomic"` // process id << 32 | entry of the key table + 1
	StartTime uint64 `c:"_Atomic"` // of the process, 0 until it is stored
	_         [48]byte
}

// KeyPlace is where the search for a name begins in a table of count entries (weft_key_place in C).
func KeyPlace(name uint64, count uint32) uint32 {
	return uint32((name*0x9E3779B97F4A7C15)>>32) & (count - 1)
}
