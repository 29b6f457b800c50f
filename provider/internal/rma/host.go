package rma

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/flow"
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
)

// Host is what an [Initiator] needs of its endpoint. Any thread calls its methods.
type Host interface {
	Completions
	Peers
	Devices
	// Sleeps reports whether a thread may sleep until peers ring for it: they ring not for all that they do.
	Sleeps() bool
	// NotifyPoll has the next poll enter the runtime, and Advance has a thread make progress, this one if no other
	// does.
	NotifyPoll()
	Advance()
	// Hold keeps the data plane from posting, n times, or takes that back for n below 0.
	Hold(n int)
	// Closed reports whether the endpoint closes or has closed.
	Closed() bool
}

// Completions are the queue and the counters on which operations end.
type Completions interface {
	// Completes reports whether an operation with flags writes a completion. work is as in [Operation].
	Completes(work, flags uint64) bool
	// Room reports whether there is room for a completion, where operations write some.
	Room() bool
	// Unread is about how many completions the application has not read. There is a queue.
	Unread() uint64
	// End writes the completion of an operation and counts it. The caller holds the progress lease if it has failed.
	End(e Ended)
}

// Peers are those that the endpoint reaches.
type Peers interface {
	// Link returns the link of a number that a request, which is not ended, has.
	Link(number uint32) *Link
	// Ready returns the link's path if it works.
	Ready(l *Link) (*Path, bool)
	// Send sends a message with a payload of total bytes, at most the path's MaxPart, over a stripe whose lease the
	// caller holds. Errors: fi.EAGAIN while there is no room; fi.ECONNRESET, fi.EIO.
	Send(p *Path, id hw.AMID, header uint64, head []byte, iov []fi.IOVec, total, stripe int) error
	// Broken is what a post returns of which nothing went out because of err.
	Broken(err error) error
	// Overtakes reports whether a copy would overtake what has been written to an address and has completed.
	Overtakes(p *Path, dest fi.Addr) bool
	// CaughtUp reports whether the peer has carried out what the data plane has sent to it, as far as a copy must not
	// overtake that.
	CaughtUp(l *Link, p *Path) bool
	// Took counts elements of lists that took a way to the peer, and their bytes.
	Took(l *Link, w list.Way, elements, n uint64)
}

// Devices are the keys by which devices reach the memory of peers.
type Devices interface {
	// FindKey returns a device's key of a peer's region. False: it is not known, and the peer is asked for it.
	FindKey(l *Link, p *Path, key uint64, device *hw.RemoteKey) bool
	// KeyRefused notes that a device refused the key of a region.
	KeyRefused(p *Path, key uint64)
	// PeerToPeer reports whether memory of devices may go without copies in this process.
	PeerToPeer() bool
}

// LeasedHost is what a [Protocol] needs of its endpoint, as the holder of the progress lease has it.
type LeasedHost interface {
	// Owns reports whether a source is the peer of a link: only it may speak about the link's requests.
	Owns(src hw.Source, link uint32) bool
	// Malformed counts a message that a peer should not have sent, and logs why.
	Malformed(src hw.Source, format string, args ...any)
	// NameOf names the peer of a link in logs.
	NameOf(l *Link) fmt.Stringer
	// Reads returns the rendezvous of a flow over a path, which is new.
	Reads(f *flow.Flow, p *Path) *rendezvous.Flow
}
