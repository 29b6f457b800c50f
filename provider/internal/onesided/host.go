package onesided

import (
	"fmt"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/region"
)

// Sender is what an operation came from: a peer, and which of its interfaces.
type Sender struct {
	ID     uint32
	Number uint8
}

// TargetHost is what a [Target] needs of its endpoint, as the holder of the progress lease has it. The owners of the
// regions of its domain are of type O.
type TargetHost[O any] interface {
	Regions[O]
	Sources
	// Count adds n to a counter of package stats that the holder of the progress lease writes (Rx*).
	Count(counter int, n uint64)
	// Malformed counts a message that a peer should not have sent, and logs why.
	Malformed(src hw.Source, format string, args ...any)
	// Deliver writes the completion of a write of n bytes by a source that carries CQ data, if the endpoint has a queue
	// for it.
	Deliver(src hw.Source, n, data uint64)
	// Pool has memory for results that wait for room.
	Pool() *mem.Pool
}

// Regions is the memory of the endpoint's domain, as peers reach it.
type Regions[O any] interface {
	// Access finds the region of a key and enters its gate, for a source; see [region.Table.Access]. Errors as there,
	// and fi.EACCES for a region that the source does not reach. Without an error the caller leaves the gate.
	Access(src hw.Source, key, addr, n, rights uint64) (m *region.Region[O], offset uint64, err error)
	// AccessOf is Access for a sender, whose source may be gone.
	AccessOf(to Sender, key, addr, n, rights uint64) (m *region.Region[O], offset uint64, err error)
	// Reached is the region of a key that a source reaches, nil: there is none. Its gate is not entered.
	Reached(src hw.Source, key uint64) *region.Region[O]
	// Spend ends the key of a region for single use.
	Spend(m *region.Region[O])
	// Copying reports whether this side has copied n bytes itself since the last call.
	Copying(n uint64) bool
}

// Sources are the peers' interfaces that operations come from.
type Sources interface {
	// Sender is the sender behind a source.
	Sender(src hw.Source) Sender
	// NameOf names it in logs.
	NameOf(src hw.Source) fmt.Stringer
	// Back returns the path to a sender, which was behind a source, connecting if need be. Errors: fi.EAGAIN while the
	// sender is there and no path leads to it; fi.ECONNRESET and others when it is gone, or cannot be reached.
	Back(src hw.Source, to Sender) (Path, error)
	// Answer sends a sender, which was behind a source, the outcome of its request, now or when there is room.
	Answer(src hw.Source, to Sender, request uint64, head []byte)
	// FillBack has the data plane perform and answer the next operation of a source, if it can.
	FillBack(src hw.Source)
	// Send sends a message with a payload of total bytes, at most the path's MaxPart. Errors: fi.EAGAIN while there is
	// no room; fi.ECONNRESET, fi.EIO.
	Send(p Path, id hw.AMID, header uint64, head []byte, iov []fi.IOVec, total int) error
	// Words are the words of one-sided operations that a source shares with this side, nil: there are none, or it is
	// gone.
	Words(src hw.Source) *claim.Words
	// Memory reads and writes the memory of a source's process, nil: that cannot be.
	Memory(src hw.Source) hw.PeerMemory
}

// Path is a connection to a peer.
type Path interface {
	// MaxPart is how many bytes of payload a message has at most. Constant.
	MaxPart() int
}
