// Package hw is the hardware abstraction: what a transport can do, in the
// vocabulary of UCX's UCT layer.
//
// The model. A transport opens an [Iface], a communication resource with an
// address. [Iface.Connect] makes an [Endpoint] towards the interface at a given
// address (UCT calls this connect-to-interface). Over an endpoint one sends
// active messages, in three forms: short (the payload is copied into the
// descriptor), bcopy (a pack callback writes it into a bounce buffer) and zcopy
// (read from the caller's memory, optional), and reads or writes remote memory
// with get and put. Arrivals are delivered by [Iface.Progress], which calls the
// [Handler] registered for the message's id.
//
// A transport tells by [Attr] which operations it has, and the layers above ask
// only that, never a transport's name.
//
// Threads. Sends on endpoints may be posted by any number of goroutines and
// threads. Progress is called by one at a time for each interface; the caller
// ensures it (the progress lease). A handler may send, but must not call
// Progress.
//
// Nothing a peer writes can make these calls fault: bad messages are counted
// in [Stats] and dropped with a log line.
package hw

import (
	"errors"
	"unsafe"

	"github.com/weft-fabric/weft/hot"
)

// AMID is an active message's id, 0 to MaxAM-1.
type AMID uint8

// MaxAM is the number of active message ids.
const MaxAM = 32

// Source identifies, within one Iface, the remote interface that sent a
// message. It is dense, starts at 0 and is not reused while a message of its
// previous holder is undelivered.
type Source uint32

// Handler consumes one arrived active message: its 64-bit header, its head and
// its payload, as they were given to the send operation. Both are valid until
// the handler returns; they lie in memory that the peer can still write, so a
// handler reads each word once and checks what it read.
type Handler func(src Source, header uint64, head, payload []byte)

// Errors that say what happened to a posted operation.
var (
	// ErrNoResource: not now, but after Progress (a ring or pool is full). Nothing happened.
	ErrNoResource = errors.New("hw: no resource")
	// ErrUnreachable: nothing answers at the address (yet).
	ErrUnreachable = errors.New("hw: peer unreachable")
	// ErrPeerDead: the peer's process ended or closed its interface.
	ErrPeerDead = errors.New("hw: peer is gone")
	// ErrPermission: the kernel or the peer's owner refuses access.
	ErrPermission = errors.New("hw: permission denied")
	// ErrInvalid: an address or argument does not parse.
	ErrInvalid = errors.New("hw: invalid argument")
	// ErrTooLong: the payload is longer than the operation's limit in Attr.
	ErrTooLong = errors.New("hw: message too long")
)

// Cap is a set of abilities.
type Cap uint32

// Abilities of an interface.
const (
	CapAMShort     Cap = 1 << iota // Endpoint.AMShort
	CapAMBcopy                     // Endpoint.AMBcopy
	CapGet                         // Endpoint.Get works at present (it may be withdrawn: see ErrPermission)
	CapOrdered                     // messages to one peer arrive in the order in which they were posted
	CapSameHost                    // peers are on this host
	CapDirectRing                  // peers' inbound rings can be written by the CPU: the Iface implements Direct
	CapPut                         // Endpoint.Put works at present, as CapGet
	CapSharedWords                 // Endpoint.SharedWords and Iface.SourceWords return words
	CapWakeup                      // the Iface implements Waiter
)

// Attr describes an interface. All limits are in bytes.
type Attr struct {
	Caps       Cap
	MaxAMShort int     // head and payload together
	MaxAMHead  int     // head of AMBcopy
	MaxAMBcopy int     // payload, head not counted
	MaxGetIOV  int     // segments on either side of one Get or Put
	Bandwidth  float64 // bytes per second, estimated
	Latency    float64 // seconds, estimated
	Overhead   float64 // seconds of CPU for each message, estimated
	DeviceName string
	NUMANode   int // -1: unknown or any
	Priority   int // higher is preferred among transports that reach the same peer
}

// Segment is a piece of memory in this process.
type Segment struct {
	Addr unsafe.Pointer // may be C memory
	Len  int
}

// RemoteSegment is a piece of memory of a peer, as the peer named it.
type RemoteSegment struct {
	Addr uint64
	Len  uint64
}

// Stats counts what an interface saw. Read with [Iface.Stats].
type Stats struct {
	Delivered uint64 // messages given to handlers
	Malformed uint64 // messages refused because a field was out of range
	Reclaimed uint64 // slots taken back from dead producers
	PeersLost uint64 // peers found dead
}

// PeerEvent tells that a remote interface is gone: either an endpoint that we
// had to it, or a source that sent to us. A remote that was both gives two
// events, in any order.
type PeerEvent struct {
	Source    Source   // valid if HasSource; may be given to another remote after the call
	HasSource bool     // its last message was delivered before
	Endpoint  Endpoint // not nil: it works no longer
	Err       error    // ErrPeerDead
}

// Iface is a communication resource with an address.
type Iface interface {
	// Attr tells what the interface can do. Constant after open.
	Attr() Attr
	// Address is what peers give to Connect.
	Address() []byte
	// SetHandler installs the handler of id, before the first Progress.
	SetHandler(id AMID, h Handler)
	// OnPeerEvent installs the function that CheckPeers calls when a peer is
	// found gone, before the first of its calls.
	OnPeerEvent(f func(PeerEvent))
	// Connect makes an endpoint to the interface at address. It is cheap if
	// one exists already. Errors: ErrUnreachable (retry later), ErrNoResource
	// (the peer has no room for another sender, retry later), ErrPermission,
	// ErrInvalid.
	Connect(address []byte) (Endpoint, error)
	// SourceAddress is the address of a remote interface that sent to us. The
	// caller holds the progress lease.
	SourceAddress(src Source) []byte
	// SourceReaches tells whether a Connect to address would reach the remote
	// interface that sent to us: an interface has one address by which it is
	// known, but may answer at others. The caller holds the progress lease and
	// knows that address is one of this host.
	SourceReaches(src Source, address []byte) bool
	// SourceWords are the words shared with the endpoint that src sends from
	// (see Endpoint.SharedWords), nil when src is gone.
	SourceWords(src Source) *[2]uint64
	// Progress delivers up to max arrived messages and returns how many.
	Progress(max int) int
	// SetEagerWindow tells senders whether eager payloads are welcome.
	SetEagerWindow(open bool)
	// CheckPeers looks for peers that are gone and calls the peer event
	// function for each. The caller holds the progress lease. It makes system
	// calls: a few times a second is enough.
	CheckPeers()
	// Stats returns the counters.
	Stats() Stats
	// Close releases everything. Peers see ErrPeerDead.
	Close() error
}

// Endpoint is a path to one remote interface. All methods may be called from
// any thread. An operation that returns an error left no trace.
type Endpoint interface {
	// AMShort sends one active message; head and payload together are at most
	// MaxAMShort bytes.
	AMShort(id AMID, header uint64, head, payload []byte) error
	// AMBcopy sends one active message whose payload are n bytes that pack
	// writes into dst, which is n bytes long. n is at most MaxAMBcopy, head at
	// most MaxAMHead. stripe selects the bounce pool, whose lease the caller
	// holds. pack may have been called when the error is ErrNoResource.
	AMBcopy(id AMID, header uint64, head []byte, n int, pack func(dst []byte), stripe int) error
	// Get reads len(remote) segments of the peer's memory into local ones
	// and returns the bytes read, which are fewer than asked only with an
	// error. It blocks the caller for the copy. Errors: ErrPermission,
	// ErrPeerDead, ErrInvalid.
	Get(local []Segment, remote []RemoteSegment) (int, error)
	// Address is the address by which the peer is known, its Iface.Address. It
	// may differ from what was given to Connect. Constant.
	Address() []byte
	// Put writes local segments into the peer's memory; the rest is as for Get.
	Put(local []Segment, remote []RemoteSegment) (int, error)
	// SharedWords are two words of memory that this endpoint and the peer
	// both reach; the peer knows them as the SourceWords of this sender. They
	// may only be accessed atomically, and the peer may write anything there.
	SharedWords() *[2]uint64
	// EagerOpen tells whether the peer welcomes eager payloads.
	EagerOpen() bool
	// Wake rings the peer's doorbell if it sleeps. The send operations do it themselves.
	Wake()
	// Err is nil, or why the endpoint no longer works.
	Err() error
}

// Direct is what an Iface with [CapDirectRing] implements: it fills the tables
// of plain words with which the C path sends and looks for messages on its own.
type Direct interface {
	// FillPeer writes ep, an endpoint of this Iface, into line; slots come
	// last, with release. The line stays usable until Close of the Iface, even
	// after the peer is gone: what is sent then is lost.
	FillPeer(ep Endpoint, line *hot.Peer) error
	// FillEP writes the inbound ring's view and the address of rx_state and
	// from then on keeps ep.InboundHead, until Close.
	FillEP(ep *hot.EP)
	// FillStripe writes the bounce buffers of stripe i into s, and from then on
	// shares s.BounceNext with whoever leases s, until Close.
	FillStripe(i int, s *hot.Stripe) error
	// FillSource writes what the C path needs to deliver src's messages into
	// line, and clears the line when src is gone, until Close. False: this
	// source's messages must be given to Progress. The caller holds the
	// progress lease.
	FillSource(src Source, line *hot.Source) bool
	// WakePeer is Wake of the endpoint whose line has this number in Peer.
	WakePeer(peer uint32)
}

// Waiter is what an Iface with [CapWakeup] implements, so that a thread can
// sleep until a message arrives:
//
//	Arm → Pending is false → poll DoorbellFD → Disarm → Progress
type Waiter interface {
	// EnableWait makes the doorbell. Senders look at Arm only after it: a message
	// that was sent before its return may ring no bell, but Pending tells of it.
	EnableWait() error
	// DoorbellFD becomes readable when a message arrives between Arm and
	// Disarm. It is -1 before EnableWait, and closed by Close.
	DoorbellFD() int
	// Arm asks for the bell. Callers look at Pending after it.
	Arm()
	// Pending tells whether Progress would find something. Any thread may ask.
	Pending() bool
	// Disarm takes the wish back and empties the doorbell.
	Disarm()
}
