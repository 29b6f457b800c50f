package hot

import "structs"

// What a call of the data plane (package dataplane) that posts an operation shares with the shim that makes it.

// What became of a [Post].
//
//weft:enum weft_post_code
const (
	PostDone  = 0  // it is posted
	PostAgain = 11 // nothing has happened, for want of room: FI_EAGAIN
	// above it, what is no errno of the call
	PostGo   = 12 // nothing has happened: the runtime posts it
	PostNote = 13 // the copies are made: the runtime sends the notification behind them, and completes all
	// PostReturn is of an operation that its device has not taken, while another thread has a lock for long: the
	// runtime takes it back, and then posts it, or refuses it for want of room where [Post].Sent is PathFull.
	PostReturn = 14
	// above it, but for PostRing and PostBell: the shim is to do something, and to call again
	PostTime  = 15 // nothing has happened: set [Post].Now
	PostMatch = 16 // data plane only: [Post].Match is to be given to [EP].Match
	PostRing  = 17 // ring [Post].Bell at [EP].Match: what has become of the post is Code
	PostPath  = 18 // give [Post].Message to [Post].Path, and set [Post].Sent to what that says
	PostCopy  = 19 // make [Post].Copy
	PostBell  = 20 // a receive or search is posted, and work for a thread that sleeps: Go wakes it, or does the work
)

// Bits of [Post].Kind.
const (
	PostTagged = 1
	PostData   = 2 // data goes with it
	PostInject = 4 // fi_inject forms: no completion, whatever the flags
	PostRead   = 8
	PostAlone  = 16  // a notification without a copy
	PostVector = 32  // Buf, Compare and Result are addresses of vectors of Len, Compares and Results elements
	PostRemote = 64  // one-sided: Remote is a vector of Remotes elements, in the place of Header and Key
	PostDevice = 128 // a buffer is memory of a device, as a descriptor says: the runtime's
	PostListed = 256 // of a list: the read or write of its one element, with the notification behind it if there is one
)

// Bits of [Post].Op of a list (weft/token.h).
const (
	ListRead        = 1 // WEFT_READ
	ListBits        = 2 // WEFT_PICK_BITS
	ListNoteOnError = 4 // WEFT_NOTE_ON_ERROR
)

// Post is one operation to be posted. The shim sets what stands before Step as far as the operation has it, and Step
// and Now to 0; the rest is the data plane's. The same structure goes to the runtime where the code is PostGo. So does
// that of a receive: from Dest, with the tag Header and Data for the bits to ignore.
//
//weft:name weft_post
type Post struct {
	_        structs.HostLayout
	EP       uintptr `c:"struct weft_hot_ep *"`
	Buf      uintptr `c:"const void *"` // payload; of an atomic operation the operand
	Len      uint64  // bytes of it; of an atomic operation elements. With Buf in front of it this is a struct iovec
	Dest     uint64  // fi_addr_t
	Header   uint64  // tag, or address in the target's region
	Data     uint64  // with PostData
	Flags    uint64  // libfabric's, of this operation
	Context  uint64
	Kind     uint32  // Post*
	Thread   uint32  // written by the data plane: number, line of counters, and preferred stripe of the thread
	Key      uint64  // one-sided: of the region
	Request  uint64  // data plane only: one-sided, the id of what waits for the answer, 0: none; with PostReturn
	Compare  uintptr `c:"const void *"` // atomics: comparand, or NULL; of messages the data plane's
	Result   uintptr `c:"void *"`       // atomics: where the fetched value goes, or NULL
	Note     uintptr `c:"const void *"` // of notifications, as the next two
	NoteLen  uint64  // bytes of it
	NoteTag  uint64
	List     uint64  // of lists: Go's handle
	Shape    uintptr `c:"uintptr_t"`    // of lists: Go's dataplane.List
	Picks    uintptr `c:"const void *"` // of lists: the elements, NULL: all
	Count    uint64  // with Picks: of them, or of those that there are bits for
	Op       uint32  // atomics: libfabric's; of lists: weft/token.h's
	Datatype uint32  // atomics: libfabric's
	Atomic   uint32  // atomics: Atomic*
	_        uint32
	Compares uint64  // with PostVector
	Results  uint64  // with PostVector
	Remote   uintptr `c:"const void *"` // with PostRemote
	Remotes  uint64  // with PostRemote
	// with PostDevice: descriptors of Buf, as many as that has, or NULL
	Desc        uintptr `c:"void **"`
	CompareDesc uintptr `c:"void **"`                  // the same of Compare
	ResultDesc  uintptr `c:"void **"`                  // the same of Result
	Self        uintptr `c:"struct weft_hot_thread *"` // the thread
	Step        uint32  // data plane only, once it is not 0: how far the post is
	Now         uint32  // with PostTime: ms of CLOCK_MONOTONIC_COARSE, never 0
	Sent        uint32  // with PostPath, and of what a device matches: Path*
	Todo        uint32  // Todo*, valid with each code
	Peer        uint32  // with TodoWakePeer: number of the peer
	// with PostRing: PostDone to PostReturn
	Code       uint32
	Next       uintptr          `c:"const void *"` // line that the next post is likely to write, or NULL
	Completion uint64           // with TodoComplete: its flags
	Cntr       uintptr          `c:"struct weft_hot_cntr *"` // with TodoWakeCntr
	Path       uintptr          `c:"struct weft_hot_path *"` // with PostPath
	Message    TransportMessage // with PostPath: what it is given
	Copy       Copy             // with PostCopy
	Claim      uintptr          `c:"void *"` // data plane only, as what follows
	Batch      uintptr          `c:"void *"` // of lists
	Stream     uintptr          `c:"struct weft_hot_note_out *"`
	Match      MatchPost        // of what a device matches
	Bell       Bell             // with PostRing
}
