package provider

import (
	"github.com/weft-fabric/weft/provider/internal/control"
	"github.com/weft-fabric/weft/provider/internal/peers"
	"github.com/weft-fabric/weft/provider/internal/receive"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// receiving is the lower layer of a receive context: matching, the identities of senders, and answers to them. Its
// methods begin and step no rendezvous.
type receiving struct {
	base rxContext // what any thread uses
	dead bool      // closed

	eps     []*leasedEP
	av      *AV                      // names the sources of directed receives
	addrIDs []uint32                 // identities by address, of Addresses.Seen
	ids     peers.Identities[origin] // of senders

	matching receive.Context // and what is unexpected

	out     control.Queue[destination]
	recheck bool                // a peer has begun anew: its end is to be noticed before anything goes to it by name
	head    [wire.RTSBytes]byte // for messages that progress sends
}
