package coll

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/provider/internal/rkey"
	"github.com/weft-fabric/weft/provider/names"
)

// Endpoint is what collective operations need of their endpoint. Any thread may call its methods.
type Endpoint interface {
	// Enabled reports whether operations may be posted.
	Enabled() bool
	// Member finds what an address of the endpoint's address vector leads to: its name, and the peer, with a use of
	// it; nil for the endpoint itself. Errors: fi.EINVAL, fi.ENOMEM.
	Member(addr fi.Addr) (names.Name, Peer, error)
	// Acquire has the endpoint stay open until Release. Errors: why it is closed.
	Acquire() error
	Release()
	// Completes reports whether an operation with flags writes a completion.
	Completes(flags uint64) bool
	// CountsAt has readers of a counter make progress of the endpoint. Errors: fi.EDOMAIN for a counter of another
	// domain, or what stopped the system from giving descriptors.
	CountsAt(c *cq.Counter) error
	// Notify has progress start what was posted, and makes progress once.
	Notify()
	// Progress makes progress, if no other thread does.
	Progress()
	// WithLease calls f with the progress lease, for which it waits. Control path.
	WithLease(f func(*Protocol))
}

// Leased is what they need of it as the holder of the progress lease.
type Leased interface {
	// Now is the time of the endpoint's clock, which is not set.
	Now() congestion.Time
	// Transports are its transports: the first is that to peers on this host. Constant.
	Transports() []*Transport
	// Name is the endpoint's own. Constant.
	Name() names.Name
	// TransportOf is the transport that a source belongs to.
	TransportOf(src hw.Source) *Transport
	// IsFrom reports whether a source is a peer, which is known when the path to it is there.
	IsFrom(src hw.Source, p Peer) bool
	// Post sends a message with its payload in one piece, of at most MaxAMBcopy bytes. Errors: fi.EAGAIN while there
	// is no room; fi.ECONNRESET, fi.EMSGSIZE, fi.EIO.
	Post(p Path, id hw.AMID, header uint64, head, data []byte) error
	// Send sends a message without payload to a peer, with a head of at most control.HeadMax bytes, now or when there
	// is room.
	Send(to Peer, id hw.AMID, header uint64, head []byte)
	// Answer is Send to the peer behind a source.
	Answer(src hw.Source, id hw.AMID, header uint64, head []byte)
	// Hold accounts for cost bytes of messages that came early, which closes the eager window when they are too many,
	// and copies a payload, which may have no bytes, to memory at addr; 0: there are none. Errors: what the system
	// says of memory.
	Hold(payload []byte, cost int) (addr uint64, err error)
	// Unhold gives that back.
	Unhold(addr uint64, n, cost int)
	// Complete counts the end of an operation, and writes its completion, if it completes so or has failed.
	Complete(context uint64, completes bool, status fi.Errno)
	// Malformed counts a message that a peer should not have sent, and logs why.
	Malformed(src hw.Source, format string, args ...any)
	// Stats are the endpoint's counters.
	Stats() Counters
	// Closed reports whether the endpoint closes or has closed.
	Closed() bool
}

// Counters are counters of package stats that the holder of the progress lease writes: those of its line (Rx*).
type Counters interface {
	// Rx adds n to one.
	Rx(counter int, n uint64)
	// RxPeak sets one, and a second to its largest value.
	RxPeak(counter, peak int, v uint64)
}

// Peer is a peer as the endpoint reaches it. Two are the same peer if they are equal.
type Peer interface {
	// Number is the number by which PeerLost names it.
	Number() uint32
	// Connect returns the path to the peer, connecting if need be. Errors: fi.EAGAIN while it is not connected, and
	// why it cannot be.
	Connect() (Path, error)
	// Ready returns the path if it works.
	Ready() (Path, bool)
	// Release ends the use of the peer.
	Release()
}

// Path is a connection to a peer.
type Path interface {
	hw.Endpoint
	// Transport is the transport's endpoint, with its optional abilities. Constant.
	Transport() hw.Endpoint
	// Over is the transport. Constant.
	Over() *Transport
}

// Transport is a transport as collective operations have it. Immutable.
type Transport struct {
	hw.Iface
	Caps       hw.Cap
	MaxAMBcopy int         // bytes of the longest payload of a message
	DeviceName string      // of the transport
	Eager      uint64      // bytes of the longest message that goes with its payload
	Notify     func()      // has polls include the transport if it leads to other hosts
	Device     rkey.Device // registers memory of this side; where none does, hw.MDLocal rules copies out
}

// Settings are what an endpoint's collective operations go by. Immutable.
type Settings struct {
	Config       *config.Config
	DeviceMemory bool // descriptors may name it
}
