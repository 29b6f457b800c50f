package rendezvous

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Host is what rendezvous need of their endpoint, as the holder of the progress lease has it.
type Host interface {
	Receiving
	Sending
	// Closed reports whether the endpoint closes or has closed.
	Closed() bool
	// Count adds n to a counter of package stats that the holder of the progress lease writes (Rx*).
	Count(counter int, n uint64)
	// Malformed counts a message that a peer should not have sent, and logs why.
	Malformed(src hw.Source, format string, args ...any)
}

// Receiving is the receiver's part of [Host].
type Receiving interface {
	// TakeKeys reads the keys of an RTS. False: they do not parse.
	TakeKeys(src hw.Source, rts *wire.RTS, payload []byte) bool
	// Arrived matches the message of an RTS, which is valid during the call, and calls [Protocol.Start] now or later.
	Arrived(src hw.Source, header uint64, rts *wire.RTS)
	// IsFrom reports whether a source is the sender of a message.
	IsFrom(src hw.Source, m *Message) bool
	// Back returns the path to the sender of a message, connecting if need be. Errors: fi.EAGAIN while the sender is
	// there and no path leads to it; fi.ECONNRESET and others when it is gone, or cannot be reached.
	Back(m *Message) (Path, error)
	// Answer sends a message about the sender's request, with a head of at most control.HeadMax bytes, now or when
	// there is room.
	Answer(m *Message, id hw.AMID, head []byte)
	// Words are the words of messages that a source shares with this side, nil: there are none, or it is gone.
	Words(src hw.Source) *claim.Words
	// Reads reports whether the memory of a source's process can be read.
	Reads(src hw.Source) bool
	// Gets reports whether memory that a source exposes can be read.
	Gets(src hw.Source) bool
	// Maps reports whether memory of devices may be moved from process to process.
	Maps() bool
	// Offload reports whether a thread of weft's does the copies. Constant while operations are under way.
	Offload() bool
	// Segmented reports whether n bytes over a transport are cut into segments.
	Segmented(transport uint32, n uint64) bool
	// Flow returns the flow over the path to a message's sender, nil: there is none.
	Flow(m *Message, p Path) *Flow
	// Fetch begins to map memory of a process's device, named by a token; near is an address in this side's memory that
	// is to be copied to.
	Fetch(pid uint32, token, near uint64) Memory
	// Complete completes a message, of which done bytes are in place, on both sides.
	Complete(m *Message, done uint64, status fi.Errno)
	// Abandon ends the receive of a message whose endpoint closes.
	Abandon(m *Message)
	// SenderOf names the sender of a message in logs.
	SenderOf(m *Message) fmt.Stringer
}

// Sending is the sender's part of [Host].
type Sending interface {
	// Request returns a request of the endpoint.
	Request(id uint64) (*dataplane.Request, bool)
	// Owns reports whether a source is the peer of a link: only it may speak about the link's requests.
	Owns(src hw.Source, link uint32) bool
	// CameOver reports whether a source is of the transport that a path leads over.
	CameOver(src hw.Source, p Path) bool
	// Path returns the path of a link if it works.
	Path(link uint32) (Path, bool)
	// Send sends a message to the peer of a link, with a head of at most control.HeadMax bytes, now or when there is
	// room.
	Send(link uint32, id hw.AMID, header uint64, head []byte)
	// Fragment sends n bytes of a request from byte from on as a fragment. Errors: fi.EAGAIN while there is no room;
	// fi.ECONNRESET, fi.EIO.
	Fragment(p Path, req *dataplane.Request, from, n uint64) error
	// Exposed are the regions of a request that its receiver may read, none: the payload is not exposed.
	Exposed(request uint64) []hw.Memory
	// PeerOf names the peer of a link in logs.
	PeerOf(link uint32) fmt.Stringer
}

// Path is a connection to a peer.
type Path interface {
	hw.Endpoint
	// Transport is the transport's endpoint, with its optional abilities. Constant.
	Transport() hw.Endpoint
	// TransportNumber is the number of the endpoint's transport that it leads over. Constant.
	TransportNumber() uint32
	// Attr is what that transport can. Constant.
	Attr() *hw.Attr
	// TransportDevice registers memory with the transport. Constant.
	TransportDevice() rkey.Device
}

// Memory is an allocation of a sender's device that is mapped for one message.
type Memory interface {
	// Ready reports whether it is mapped, or, with an error, cannot be.
	Ready() (bool, error)
	// Do calls f with the mapping of memory that is ready without error. It reports false if the owner has recalled it.
	// After an error of f the mapping is used no more.
	Do(f func(Mapping) error) bool
	// Drop gives the memory up, now or when it was mapped.
	Drop()
}

// Mapping is a mapped allocation.
type Mapping interface {
	// Size is the number of bytes.
	Size() uint64
	// CopyTo copies n bytes from offset on, which lie in it, to an address of any kind.
	CopyTo(to, offset, n uint64) error
}
