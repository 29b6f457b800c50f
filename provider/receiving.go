package provider

import (
	"time"

	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/provider/internal/control"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// receiving is the lower layer of a receive context: matching, the identities of senders, and answers to them. Its
// methods begin and step no rendezvous.
type receiving struct {
	base rxContext // what any thread uses
	dead bool      // closed

	nextNumber uint32
	eps        []*leasedEP
	av         *AV                      // names the sources of directed receives
	addrIDs    []uint32                 // identities by address, of Addresses.Seen
	ids        peers.Identities[origin] // of senders

	// matching is shared with the data plane. Its Closed says that the eager window is closed, Ended that the one peer
	// is disconnected.
	matching dataplane.Receiver

	closures uint64 // times that the eager window was closed
	out      control.Queue[destination]
	recheck  bool                // a peer has begun anew: its end is to be noticed before anything goes to it by name
	head     [wire.RTSBytes]byte // for messages that progress sends

	// memoryLogged is when the log said last that messages wait for memory (noMemory).
	memoryLogged time.Time
}
