package hot

import "structs"

// What segments are made of: include/weft/segment.h.

// Segment is the header of an endpoint's segment (struct weft_segment).
type Segment struct {
	_            structs.HostLayout
	Magic        uint64
	Version      uint32
	PID          uint32
	Bytes        uint64
	Cookie       uint64
	BootID       [2]uint64
	PIDNamespace uint64
	NetNamespace uint64
	StartTime    uint64
	UID          uint32
	NameBytes    uint32
	Name         [28]byte
	RingLog2     uint32
	RingOffset   uint64
	AttachOffset uint64
	AttachCount  uint32
	BounceCount  uint32
	BounceOffset uint64
	BounceBytes  uint32
	BounceStride uint32
	Flags        uint32
	KeyCount     uint32
	Number       uint32
	KeyOffset    uint64
	AuthOffset   uint64
	AuthCount    uint32
	_            uint32
	RxState      uint32
	Armed        uint32
	_            [56]byte
	Lanes        uint32
	_            [60]byte
}

// Lanes is the number of inbound rings of a segment.
const Lanes = 8

// Lane stands before the slots of an inbound ring (struct weft_lane).
type Lane struct {
	_    structs.HostLayout
	Tail uint64
	Free uint64
	_    [112]byte
}

// SegMagic and SegVersion identify the segment layout.
const (
	SegMagic   = 0x31746665772d6766
	SegVersion = 6
)

// Bits of [Segment].Flags and [Attach].Flags: the families of addresses at
// all of which the endpoint answers.
const (
	SegAnyIPv4 = 1
	SegAnyIPv6 = 2
)

// Bits of [Segment].Flags: its owner holds a lock in the directory while it
// lives, and is reached from other network namespaces.
const (
	SegLocked = 4
	SegAcross = 8
)

// Key mirrors struct weft_key.
type Key struct {
	_      structs.HostLayout
	State  uint64
	Name   uint64
	Addr   uint64
	Base   uint64
	Len    uint64
	Access uint32
	_      [20]byte
}

// Rights in [Key].Access.
const (
	KeyRead  = 1
	KeyWrite = 2
)

// KeyProbes is how far from its place an entry may stand.
const KeyProbes = 16

// KeyPlace is where the search for a name begins in a table of count entries.
func KeyPlace(name uint64, count uint32) uint32 {
	return uint32((name*0x9E3779B97F4A7C15)>>32) & (count - 1)
}

// Claim mirrors struct weft_claim.
type Claim struct {
	_         structs.HostLayout
	Word      uint64
	StartTime uint64
	_         [48]byte
}

// Claims is the number of claims of a segment.
const Claims = 64

// Sizes of an inbound slot, in bytes.
const (
	SlotBytes = 128
	SlotBody  = 104
)

// SlotBounce in [Slot].Flags: the payload is in the sender's segment.
const SlotBounce = 1

// Slot is one message in the inbound ring (struct weft_slot).
type Slot struct {
	_      structs.HostLayout
	Seq    uint64
	AMID   uint8
	Flags  uint8
	Head   uint16 // bytes in Body before the payload
	Length uint32 // payload bytes, Head not counted
	Header uint64
	Body   [SlotBody]byte
}

// BounceRef names a bounce buffer in the sender's segment (struct weft_bounce_ref).
type BounceRef struct {
	_     structs.HostLayout
	Index uint32
	_     uint32
}

// States of an [Attach] entry.
const (
	AttachFree    = 0
	AttachClaimed = 1
	AttachReady   = 2
	AttachLeaving = 3
)

// Attach is a sender's entry in the receiver's attach table (struct weft_attach).
type Attach struct {
	_         structs.HostLayout
	State     uint32
	PID       uint32
	StartTime uint64
	Cookie    uint64
	NameBytes uint32
	Name      [28]byte
	Flags     uint32
	Number    uint32
	Words     [4]uint64
	Auth      [16]byte
	_         [16]byte
}

// Bounce is the header of a bounce buffer (struct weft_bounce); the payload follows.
type Bounce struct {
	_     structs.HostLayout
	State uint32
	Peer  uint32
	_     [56]byte
}
