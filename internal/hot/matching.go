package hot

import "structs"

// Devices that match messages (hw.Matcher), as the data plane drives them.

// Bits of [MatchPost].Kind and [MatchEvent].Flags.
const (
	MatchTagged  = 1
	MatchData    = 2  // of a message: Data is the application's; of a write: Immediate is
	MatchAwaited = 4  // of a message: it ends when it has found its receive
	MatchMore    = 8  // another post follows at once, which rings the doorbell
	MatchReceive = 16 // a receive
	MatchAny     = 32 // of a receive: from any sender, Peer says nothing

	// of one-sided operations, of which Tag is the region's key and Data where in it they are
	MatchWrite     = 64
	MatchRead      = 128
	MatchAtomic    = 256  // on an element of Length bytes, with MatchRead fetched: Op says which, Buf is the operand
	MatchOrdered   = 512  // it is performed after writes to the same peer before it
	MatchDelivered = 1024 // it ends only when the peer's processors see it
	MatchEvents    = 2048 // the region's owner may have to know of it
	MatchShared    = 4096 // Context is that of several operations (hw.MatchTransfer.Shared)
)

// MatchPost is a message to be sent, or a receive, that a device is to match, or a one-sided operation. Its memory is
// registered with the device, but for a message or write whose bytes go with the command.
//
//weft:name weft_match_post
type MatchPost struct {
	_         structs.HostLayout
	Peer      uint64  // hw.MatchAddress
	Tag       uint64  // bits that the device matches
	Data      uint64  // of a receive: bits of the tag that match anything
	Buf       uintptr `c:"const void *"` // of a receive its memory, else bytes that go with the command
	At        uint64  // where the memory is for the device
	Context   uint64  // in its event
	Length    uint32  // bytes
	Space     uint32  // of At
	Kind      uint32  // Match*
	Op        uint32  // with MatchAtomic: hw.MatchOp, and shifted by MatchTypeShift hw.MatchType
	Immediate uint64  // of a write with MatchData
	Compare   uintptr `c:"const void *"` // with MatchAtomic: the comparand, or NULL
}

// MatchElement is more than no element of an atomic operation has, in bytes.
const MatchElement = 16

// MatchTypeShift is where the type of an atomic operation is in [MatchPost].Op.
const MatchTypeShift = 8

// MatchEvent is the end of one of them.
//
//weft:name weft_match_event
type MatchEvent struct {
	_       structs.HostLayout
	Context uint64
	From    uint64 // of a receive: hw.MatchAddress of the sender
	Tag     uint64
	Data    uint64 // with MatchData
	Length  uint64 // of a receive: bytes of the message; with MatchShared: bytes written
	Flags   uint32 // MatchReceive, MatchTagged, MatchData, MatchRead, MatchShared
	_       uint32
	Fetched [MatchElement]byte // with MatchRead: what the element was, in the first bytes
}

// What [MatchTransport].Next finds beside TransportEmpty and TransportGo.
const (
	TransportMatched = 3 // an event, which is the caller's then
	TransportAgain   = 4 // nothing yet: it is to be called again, behind its doorbell
)

// Bell is a doorbell that C is to ring when Go code has returned: Go code without the runtime can call no assembly.
//
//weft:name weft_bell
type Bell struct {
	_     structs.HostLayout
	Word  uintptr `c:"uint64_t *"` // off the Go heap; NULL: none
	Value uint64
	Lock  uintptr `c:"_Atomic uint32_t *"` // is set to 0 behind it, and something else keeps it alive; NULL: none
	Rest  uint64  // of a post of what a device matches: not 0 where more is to be rung behind it
}

// MatchTransport is an interface whose device matches messages, made by a backend. Next belongs to the progress lease,
// any thread may post.
//
//weft:name weft_hot_match_transport
type MatchTransport struct {
	_ structs.HostLayout
	// Post and Next are functions of Go's that need nothing of the runtime, by their entry points (direct.Call). They
	// take the address of this, of a [MatchPost] or a [MatchEvent], and of a [Bell], of which the caller has set Word
	// to 0, for Post also Rest. Post says PathSent, PathFull or PathGo.
	Post uintptr `c:"uintptr_t"`
	Next uintptr `c:"uintptr_t"`
	// Ring rings what they have stored in a Bell. Behind that of a post it leaves the gate, if a thread is inside.
	Ring  uintptr `c:"void (*ring)(struct weft_hot_match_transport *transport, const struct weft_bell *b, bool posts)"`
	Watch uintptr `c:"uintptr_t"` // Go's [Watch]: while it is calm, Next finds nothing. Immutable
	Owner uintptr `c:"uintptr_t"` // Go's matched.Endpoint; immutable while the data plane has the transport
	// of a thread that is alone, NULL: there may be several. Immutable as Owner
	Gate uintptr `c:"struct weft_gate *"`
}
