package messages

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/links"
)

// Host is what a [Sender] needs of its endpoint. Any thread calls its methods.
type Host interface {
	// LinkOf returns the link of an address and holds it for the caller, which releases it. Errors: fi.EINVAL for an
	// address that is not in the address vector, fi.ENOMEM; of a connected endpoint fi.ENOTCONN and fi.ESHUTDOWN.
	LinkOf(dest fi.Addr) (*links.Link, error)
	// Broken is what a post returns of which nothing went out because of err.
	Broken(err error) error
	// Completes reports whether a message with flags writes a completion. work is as in [Send].
	Completes(work, flags uint64) bool
	// Room reports whether a ring of the queue, 0 or 1 and a stripe's number, has room for a completion, where messages
	// write some.
	Room(ring int) bool
	// End writes the completion of a message and counts it.
	End(e Ended)
	// Complete writes the completion, with flags, of a message with a context that is counted.
	Complete(context, flags uint64)
	// Act does what the data plane has left to do after completions (hot.Todo*).
	Act(todo uint32)
	// PeerLost says that a peer may have gone while a message was posted to it.
	PeerLost()
	// WakePeer rings the doorbell of the peer with a number.
	WakePeer(peer uint32)
	// Share lets peers on this host map n bytes of a device's memory, by a token and an offset, if they may.
	Share(addr, n uint64) (token, offset uint64, ok bool)
}

// Ended is a message that has ended.
type Ended struct {
	Context   uint64
	Work      uint64
	Total     uint64 // bytes
	Ring      int    // of the queue that the completion goes to, where that has room: 1 and a stripe's number; 0: none
	Status    fi.Errno
	Tagged    bool
	Completes bool // it writes a completion, as every failure does
	Asked     bool // for that, by fi.Completion
}

// LeasedHost is what a [Protocol] needs of its endpoint, as the holder of the progress lease has it.
type LeasedHost interface {
	// Owns reports whether a source is the peer of a link: only it may speak about the link's requests.
	Owns(src hw.Source, link uint32) bool
	// Malformed counts a message that a peer should not have sent, and logs why.
	Malformed(src hw.Source, format string, args ...any)
	// Act does what the data plane has left to do after completions (hot.Todo*).
	Act(todo uint32)
	// RequestEnded says that a request has ended, of which peers may be at the payload.
	RequestEnded(id uint64)
}
