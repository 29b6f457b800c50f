package hot

import "structs"

// Notifications (weft/token.h): what the data plane needs to send them, to keep what has arrived, and to give it
// out. Package provider has the rest: those that wait, or come in several messages, and the messages between the
// two ends about how many may wait.

// NoticeCost is what a notification counts beside its bytes, for what both ends know of it.
const NoticeCost = 128

// NoticeLongest is the most bytes of a notification.
const NoticeLongest = 65536

// AgentLongest is the most bytes of the name that an endpoint gives itself.
const AgentLongest = 64

// agentRoom has the zero behind the name, too.
const agentRoom = AgentLongest + 1

// NoteNameBytes is how many bytes of a sender's address are given out.
const NoteNameBytes = 64

// NoteOut is a stream of notifications to one receiver. All of it is guarded by Lock, but where it is said; a thread
// that does not get it does not wait, but posts again.
//
//weft:name weft_hot_note_out
type NoteOut struct {
	_        structs.HostLayout
	Lock     uint32 `c:"_Atomic"` // 1: taken. CAS acquire, store release; by posting threads and Go
	Open     uint32 // 1: the data plane may send, unless something waits in Go
	Starved  uint32 // since when the receiver has had no room, ms of CLOCK_MONOTONIC_COARSE; 0: it had
	AgentLen uint32 // bytes of agent
	// Waiting is how many of Go's notifications are to go before what the data plane sends. Added to by posts, taken
	// off by Go when they have left, read by posting threads with Lock; sequentially consistent.
	Waiting uint32 `c:"_Atomic"`
	_       uint32
	Slots   uintptr `c:"unsigned char *"` // with open, of the receiver's ring
	Stream  uint64  // its number, 0: the entry is free. Changed by Go, under its own lock too
	Sent    uint64  // cost of all that was sent
	Limit   uint64  // how far that may go
	Agent   [AgentLongest]byte
	_       [1]uint64
}

// NoteIn is a stream of notifications as its receiver sees it.
//
//weft:name weft_hot_note_in
type NoteIn struct {
	_          structs.HostLayout
	Stream     uint64              // 0: the entry is free. Written by Go under the progress lease and Notes.taking
	Arrived    uint64              // cost of all that is here; the lease holder's
	Taken      uint64              `c:"_Atomic"` // of that, what is taken; written with Notes.taking, relaxed
	Limit      uint64              `c:"_Atomic"` // how far the sender may go; Go stores under the lease, relaxed
	Due        uint64              `c:"_Atomic"` // how far it is taken when the sender is to be given more; as limit
	Generation uint32              // changes with stream, as it does
	NameLen    uint32              // of name; written with stream
	Name       [NoteNameBytes]byte // the sender's address
	_          [2]uint64
}

// Values of [Notes].Keeps: what the data plane may do with notifications that arrive.
const (
	NotesNot      = 0 // nothing: they are counted, or complete in a queue that is not that of receives
	NotesKept     = 1 // keep them
	NotesComplete = 2 // and write a completion for each to the queue of receives
)

// Notes is what an endpoint has of notifications: a ring of records, and the streams. The ring's positions count
// bytes and never go back.
//
//weft:name weft_hot_notes
type Notes struct {
	_        structs.HostLayout
	Ins      uintptr `c:"struct weft_hot_note_in *"`  // by the sender's number; immutable, as all of this line
	Outs     uintptr `c:"struct weft_hot_note_out *"` // by the endpoint's number for the peer
	Ring     uintptr `c:"unsigned char *"`
	Bytes    uint64  // of the ring, a power of two
	InCount  uint32
	OutCount uint32
	Keeps    uint32 // Notes*
	_        [5]uint32
	// line 1: the lease holder's
	Tail uint64 `c:"_Atomic"` // behind the last record. Release ↔ takers
	_    [7]uint64
	// line 2
	Head   uint64 `c:"_Atomic"` // of the oldest record. Written with taking; release ↔ the lease holder
	Taking uint32 `c:"_Atomic"` // 1: a thread takes notifications off the ring. CAS acquire, store release
	_      [13]uint32
	// line 3: stored by Go under its lock for notifications that have arrived; relaxed
	Unexpected uint32 `c:"_Atomic"` // 1: Go has some that found no room, so what comes is Go's, too
	Asked      uint32 `c:"_Atomic"` // 1: senders wait for what others are given back
	_          [14]uint32
}

// NoteSkip is [NoteRecord].Length of a record without a notification, at the ring's end.
const NoteSkip = 0xffffffff

// NoteRecord is a notification in the ring. The sender's address follows, then its name for itself and the
// notification.
//
//weft:name weft_hot_note_record
type NoteRecord struct {
	_          structs.HostLayout
	Bytes      uint32 // of the record, a multiple of 8
	Length     uint32 // of the sender's name for itself and the notification
	Agent      uint8  // of that name
	Op         uint8
	Status     uint16 // why the post failed, 0: it did not
	NameLen    uint32 // of the address, which takes a multiple of 8
	Source     uint32 // the sender's number
	Generation uint32 // of its stream
	Tag        uint64
	Addr       uint64 // fi_addr_t of the sender
}

// NoteEntry is struct weft_note of weft/token.h.
//
//weft:name weft_hot_note
type NoteEntry struct {
	_       structs.HostLayout
	Data    uintptr `c:"void *"`
	Size    uint64
	Len     uint64
	Src     uint64
	Tag     uint64
	Op      uint32
	Err     uint32
	NameLen uint64
	Name    [NoteNameBytes]byte
	Agent   [agentRoom]byte
}

// What became of a [NoteTake].
//
//weft:enum weft_take_code
const (
	TakeDone   = 0 // the call returns Result
	TakeGo     = 1 // the runtime takes: it has some, or another thread takes, or it says what is wrong
	TakePoll   = 2 // make progress at the endpoint, with Found for whether there was some; then call again
	TakeCredit = 3 // the runtime gives the sender with number Source more; then call again
)

// NoteTake is a call that takes notifications. The shim sets EP, Entries and Left, and the rest to 0.
//
//weft:name weft_note_take
type NoteTake struct {
	_       structs.HostLayout
	EP      uintptr `c:"struct weft_hot_ep *"`
	Entries uintptr `c:"struct weft_hot_note *"` // that are to be filled
	Left    uint64  // of them
	Taken   uint64  // how many were filled
	Source  uint32  // with TakeCredit
	Step    uint32  // data plane only: where the call goes on
	Found   uint32  // answer to TakePoll; 1: there was something to do
	_       uint32
	Result  int64 // with TakeDone: how many were filled, or a negative errno
}
