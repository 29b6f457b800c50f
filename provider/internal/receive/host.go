package receive

import (
	"fmt"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/links"
	"github.com/weft-fabric/weft/provider/internal/rendezvous"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Host is what an [Endpoint] needs of its endpoint, as the holder of the progress lease has it.
type Host interface {
	// Sender returns the sender behind a source, which it meets.
	Sender(src hw.Source) links.Sender
	// Known returns the sender behind a source if it has been met, and lives.
	Known(src hw.Source) (links.Sender, bool)
	// Name names a sender in logs.
	Name(s links.Sender) fmt.Stringer
	// FillBack has the data plane answer the sender behind a source from now on, if it can.
	FillBack(src hw.Source)
	// Answer sends a message to the sender behind a source, now or when there is room.
	Answer(src hw.Source, to links.Sender, id hw.AMID, header uint64, head []byte)
	// Postpone has a transport bring a message of a source again, which is not taken in.
	Postpone(src hw.Source)
	// TakeIn takes in all that has arrived. A search that is the oldest of what is posted stays where it is.
	TakeIn()
	// SetWindow opens or closes the eager window of all transports.
	SetWindow(open bool)
	// AddrOf returns the address of an identity as completions have it, fi.AddrNotAvail: it is a stranger's.
	AddrOf(sender uint32) fi.Addr
	// Stranger is what completions say of a sender that is not in the address vector: as its address, and its name.
	Stranger(sender uint32) (src fi.Addr, name []byte)
	// Complete completes a receive that was posted with flags, and counts it.
	Complete(entry cq.Entry, flags uint64)
	// Fail completes a receive that was posted with flags and failed, and counts it.
	Fail(entry cq.Entry, flags uint64, info cq.ErrorInfo)
	// Put writes a completion that is counted already.
	Put(entry cq.Entry)
	// Act does what the data plane has left to do after completions (hot.Todo*).
	Act(todo uint32)
	// Translate makes the addresses of a vector those of the regions that descs name.
	Translate(iov []fi.IOVec, descs []uint64) error
	// Malformed counts a message that a peer should not have sent, and logs why.
	Malformed(src hw.Source, format string, args ...any)
}

// Sources are the identities of the senders that receives name.
type Sources interface {
	// SourceOf turns the address of a receive with flags into what matching takes.
	SourceOf(addr fi.Addr, flags uint64) uint32
}

// Rendezvous fetches the payloads of long messages that have arrived at an endpoint.
type Rendezvous interface {
	// Start begins to fetch the payload of a message, which may end at once (Endpoint.Complete). False: there is no
	// memory, and nothing has happened. rts is valid during the call.
	Start(m rendezvous.Message, rts *wire.RTS) bool
}

// Posting is what [Posts] need of the receive context. Any thread calls its methods.
type Posting interface {
	// Try takes the progress lease. nil: another thread has it.
	Try() *Context
	// Give publishes what has changed, and gives the lease.
	Give()
	// Ring wakes weft's own thread that makes progress, if there is one and it sleeps.
	Ring()
	// Wake has threads that sleep on completions poll.
	Wake()
}

// Lease is the progress lease of a context, for calls of a thread that does not have it.
type Lease interface {
	// Wait takes the lease, waiting for its holder.
	Wait() *Context
	// Give publishes what has changed, and gives the lease.
	Give()
}
