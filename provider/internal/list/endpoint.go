package list

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/note"
	"github.com/weft-fabric/weft/provider/internal/pieces"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Endpoint is what lists need of their endpoint. Any thread may call its methods.
type Endpoint interface {
	Network
	ByDevice
	Sharing
	Devices
	// Enabled reports whether operations may be posted.
	Enabled() bool
	// Acquire has the endpoint stay open until Release. Errors: why it is closed.
	Acquire() error
	Release()
	// Completes reports whether an operation with flags writes a completion, and Room whether there is room for one.
	Completes(flags uint64) bool
	Room() bool
	// Complete counts the end of an operation of total bytes, and writes its completion if it completes so or has
	// failed. asked: it was posted with fi.Completion.
	Complete(entry *cq.Entry, status fi.Errno, completes, asked bool, total uint64)
	// Notes are the endpoint's notifications.
	Notes() Notes
	// Enter has the thread that runs the work queue call [Op.Pump] until that reports true; PostReady is called when
	// it may run.
	Enter(op *Op)
	PostReady()
}

// Network is how the elements reach the owner. Errors of its methods that post are those of one-sided operations:
// fi.EAGAIN while there is no room.
type Network interface {
	// Ordered reports whether the endpoint keeps one-sided operations in order, so that this side copies nothing.
	Ordered() bool
	// Connect returns the peer at an address for an operation with flags, with a use of it, and the path to it,
	// connecting if need be.
	Connect(addr fi.Addr, flags uint64) (Peer, Path, error)
	// Ready returns the peer at an address, with a use of it, and the path that there is. Errors: fi.ECONNRESET.
	Ready(addr fi.Addr) (Peer, Path, error)
	// Overtakes reports whether a copy would overtake what was written to the address before.
	Overtakes(p Path, addr fi.Addr) bool
	// Broken is what a post returns of which nothing was done because of err.
	Broken(err error) error
	// Single posts an operation of its own of an application, with its completion.
	Single(o *Element) error
	// Post posts an element over a path. Its end is taken in by [Posts.Ended]. o is the caller's again.
	Post(to Peer, over Path, o *Element) error
	// Flush puts what the device of a path has written in its place in the owner's memory. True: it has. Else, without
	// an error, ended is called when it has, under the lease of progress, or not, as the endpoint is closed.
	Flush(over Path, ended func(error)) (done bool, err error)
	// PostTogether posts elements as one request, whose end is taken in by [Posts.TogetherEnded].
	PostTogether(to Peer, over Path, r *Request) error
	// Message is what messages over a path have room for.
	Message(over Path) Message
	// Count counts elements that took a way to a peer, and their bytes.
	Count(to Peer, w Way, elements, n uint64)
	// Accessed counts memory of elements that are about to be copied, total bytes.
	Accessed(sel pieces.Selection, total uint64, to Peer, over Path)
}

// ByDevice is how elements go by an RDMA device without operations of their own.
type ByDevice interface {
	// DeviceKey is the key of a peer's region for the device of a path. False: it is not known, and may be asked for.
	DeviceKey(to Peer, over Path, key uint64) (hw.RemoteKey, bool)
	// KeyRefused takes in that the device has refused it.
	KeyRefused(over Path, key uint64)
	// CountDevice counts elements that a device has moved, or failed to, and their bytes.
	CountDevice(to Peer, read bool, elements, n uint64)
}

// Sharing is how a post is copied by both sides: in rounds of package claim.
type Sharing interface {
	// Shares reports whether the target at a path may be offered a share.
	Shares(over Path) bool
	// Reap ends shared operations whose targets have completed them.
	Reap()
	// Offer begins a round of n chunks and offers it. False: that cannot be now.
	Offer(over Path, n uint64, h *wire.Share) (Round, bool)
	// EndRound ends the open round of an operation, of which the target took a number of chunks and err is how
	// copying the others ended. With claim.Part one of Share.Done, Share.Again and Share.Lost is called later.
	EndRound(to Peer, over Path, s *Share, took uint64, err error) claim.Outcome
}

// Round is an open round of a shared post.
type Round struct {
	Words  *claim.Words
	Number uint64
}

// Devices is how memory of devices is copied on one host.
type Devices interface {
	// Map reaches regions of one owner for a post. near is local memory of a device, 0: there is none.
	Map(regions []Region, read bool, near uint64) Mapped
	// Exported is the allocation that n bytes at a local address are in, which others may map from now on. False:
	// they cannot.
	Exported(addr, n uint64) (hmem.Exported, bool)
	// Ask asks a process to copy. Errors: it has not, and elements are to go as messages.
	Ask(pid int, q *wire.CopyRequest) error
}

// Region is a peer's memory region. Two are the same if they are equal.
type Region interface {
	// About is what is known of it. Constant.
	About() About
	// Maps reports whether elements with local memory at an address, of which one end is memory of a device, may go
	// by WayIPC.
	Maps(local uint64) bool
	// Acquire has the region stay open until Release. fi.EBADF: it is closed.
	Acquire() error
	Release()
}

// About is what lists know of a region.
type About struct {
	Addr         fi.Addr // of the owner
	Key          uint64
	Base, Length uint64 // the address by which operations name the first byte; bytes
	Host         bool   // it is memory of the owner's process, else of a device
	Read, Write  bool   // rights
}

// Peer is an owner as the endpoint reaches it.
type Peer interface {
	note.Peer
	// Release ends the use of the peer.
	Release()
}

// Path is a connection to a peer. Two are the same if they are equal.
type Path interface {
	// AckOfNote reports whether a notification, with flags of its post, ends when the receiver answers.
	AckOfNote(flags uint64) bool
	// Mover copies from and to memory of the peer's process by the posting thread, nil: that cannot be.
	Mover() hw.PieceMover
	// Device is the RDMA device that reaches the peer's memory, nil: none does.
	Device() Device
	// OneSided is by what the device does that, and the longest operation. Device is not nil.
	OneSided(read bool) (by hw.OneSided, longest uint64)
	// Uncork has elements go that were kept for the next (Element.More).
	Uncork()
}

// Device registers local memory. See [rkey.Device].
type Device interface {
	Use(addr, n uint64, access hw.Access) (rkey.Local, error)
	Leave(l *rkey.Local)
	Still(l *rkey.Local) bool
	Keep(l *rkey.Local, yield func())
}

// Notes are the notifications of an endpoint. See [note.Outbox].
type Notes interface {
	Add(n *note.Outgoing, to note.Peer, bytes []byte, must bool) error
	Take(n *note.Outgoing, to note.Peer)
	Settle(n *note.Outgoing, status fi.Errno)
}

// Element is an element of a post as an operation of its own.
type Element struct {
	dataplane.Element
	Dest    fi.Addr
	Flags   uint64
	Context uint64
	Work    uint64 // its number, 0: it is an operation of the application
	Read    bool
	Listed  bool // FI_WEFT_TOKEN_WAYS holds
	// Registered is memory that the device of the path knows for all elements of the post, nil: none.
	Registered *rkey.Local
	More       bool // another element follows at once, or Uncork of the path
	Later      bool // with fi.DeliveryComplete: what a device writes need not be in its place when the element ends
}

// Request is consecutive elements of a post as one request.
type Request struct {
	Op    *Op
	Work  uint64 // its number
	Dest  fi.Addr
	Count int // elements
	Total uint64
	Read  bool
}

// Mapped is memory of regions, as one post reaches it by mappings.
type Mapped interface {
	// Reach is how the region of a key is reached.
	Reach(key uint64) Reach
	// Copy copies an element, or begins to, where Reach is ByCopy. Wait waits for copies that are begun.
	Copy(el *dataplane.Element) error
	Wait() error
	// Failed is the outcome of an element in the region of a key that has failed. driver: a copy has, and no mapping
	// is used again.
	Failed(key uint64, driver bool) fi.Errno
	// End ends the accesses.
	End()
}

// Reach is how one post reaches a region.
type Reach struct {
	By    Means
	Owner Owner // with ByOwner
	Err   error // with ByNone
}

// Means are how elements with memory of a device are copied.
type Means int

// The means.
const (
	ByCopy    Means = iota // this process copies
	ByOwner                // the owner does
	ByMessage              // neither: they go as messages
	ByNone                 // the memory is there no more, so they do not go at all
)

// Owner is by what an owner is asked to copy from or to a region.
type Owner struct {
	PID         int
	Incarnation uint64 // of its endpoint
	Key         uint64
	Rights      uint64
}

// Way is how pieces of a list go.
type Way int

// The ways, the best first.
const (
	WayIPC     Way = iota // this side reads and writes the memory of the peer's process
	WayRDMA               // an RDMA device does
	WayMessage            // the peer's process does, by messages
	Ways                  // their number
)

// String returns the way's name, as FI_WEFT_TOKEN_WAYS has it.
func (w Way) String() string { return [...]string{"ipc", "rdma", "message"}[w] }
