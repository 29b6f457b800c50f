// Package hw is the hardware abstraction: what a transport can do, in the
// vocabulary of UCX's UCT layer.
//
// # Model
//
// A transport opens a [MemoryDomain], in which memory is registered, and on it
// an [Iface], a communication resource with an address. [Iface.Connect] makes
// an [Endpoint] towards the interface at a given address (UCT calls this
// connect-to-interface). Over an endpoint one sends active messages, in the
// forms short (the payload is copied into the descriptor) and bcopy (a pack
// callback writes it into a bounce buffer). Arrivals are delivered by
// [Iface.Progress], which calls the [Handler] registered for the message's id.
//
// Everything else is an ability that some transports have, shown by a bit in
// [Attr].Caps and reached by a small interface that the Endpoint or Iface
// implements:
//
//	bit                  interface     implemented by
//	CapPutZcopy, CapGetZcopy OneSided  Endpoint
//	CapFlush             Flusher       Endpoint and Iface
//	CapPeerMemory        PeerMemory    Endpoint
//	CapNamedKeys         KeyDirectory  Endpoint
//	CapPieces            PieceMover    Endpoint
//	CapDirectRing        Direct        Iface
//	CapDriven            Driven        Iface, and DrivenEndpoint Endpoint
//	CapWakeup            Waiter        Iface
//
// The layers above ask only that, never a transport's name.
//
// # Operations that take time
//
// An operation with a [Completion] returns [Done] when it has ended already,
// and then does not touch the completion; [InProgress] when the completion will
// be reported by a later Progress; or an error, and then it left no trace. When
// the transport has no resource for it at the moment the error is
// [ErrNoResource]: the caller tries again after Progress, itself or through a
// [Pending] queue.
//
// # Threads
//
// Operations on endpoints may be posted by any number of goroutines and threads, but for the operations whose comment
// says that they belong to the lease holder. Progress is called by one at a time for each interface: the holder of the
// progress lease, which callers have among them. A handler may send, but must not call Progress.
//
// Nothing a peer writes can make these calls fault: bad messages are counted
// in [Stats] and dropped with a log line.
package hw

import "errors"

// AMID is an active message's id, 0 to MaxAM-1.
type AMID uint8

// MaxAM is the number of active message ids.
const MaxAM = 32

// Source identifies, within one Iface, the remote interface that sent a
// message. It is dense, starts at 0 and is not reused while a message of its
// previous holder is undelivered.
type Source uint32

// Handler consumes one arrived active message: its 64-bit header, its head and its payload, as they were given to the
// send operation. Both are valid until the handler returns; they lie in memory that the peer may still be able to
// write, so a handler reads each word once and checks what it read. One that cannot take the message in now leaves it
// for a later call ([Iface.Postpone]).
type Handler func(src Source, header uint64, head, payload []byte)

// Errors that say what happened to a posted operation.
var (
	// ErrNoResource: not now, but after Progress (a ring or pool is full). Nothing happened.
	ErrNoResource = errors.New("hw: no resource")
	// ErrUnreachable: nothing answers at the address (yet).
	ErrUnreachable = errors.New("hw: peer unreachable")
	// ErrNoPath: the peer cannot be reached over this transport, though perhaps over another; waiting will not help.
	ErrNoPath = errors.New("hw: no path over this transport")
	// ErrPeerDead: the peer's process ended or closed its interface, or its host or the path to it is gone.
	ErrPeerDead = errors.New("hw: peer is gone")
	// ErrPathLost, beside ErrPeerDead: of the peer nothing is known but that the path to it is gone. It may be there,
	// and be reached again.
	ErrPathLost = errors.New("hw: path is lost")
	// ErrPermission: the kernel or the peer's owner refuses access.
	ErrPermission = errors.New("hw: permission denied")
	// ErrInvalid: an address or argument does not parse.
	ErrInvalid = errors.New("hw: invalid argument")
	// ErrTooLong: the payload is longer than the operation's limit in Attr.
	ErrTooLong = errors.New("hw: message too long")
	// ErrKey: the peer's memory is not registered under this key (any more),
	// or not for this access or these addresses. The peer's memory is untouched
	// unless the operation was in progress when the registration ended.
	ErrKey = errors.New("hw: remote key refused")
	// ErrNoDMABuf: the device reaches no memory of other devices, or not this, whose device does not let it.
	ErrNoDMABuf = errors.New("hw: the device takes no dma-bufs, or not this one")
	// ErrCanceled: the operation was given up by its own side, with its endpoint or interface.
	ErrCanceled = errors.New("hw: operation canceled")
)
