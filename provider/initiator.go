package provider

import (
	"github.com/weft-fabric/weft/provider/internal/list"
	"github.com/weft-fabric/weft/provider/internal/messages"
	"github.com/weft-fabric/weft/provider/internal/onesided"
	"github.com/weft-fabric/weft/provider/internal/rma"
)

// initiator is the layer of an endpoint that posts operations to peers (peering) and ends those that have gone out:
// messages, reads, writes and atomics.
type initiator struct {
	peering
	sends    messages.Sender
	rmas     rma.Initiator     // reads, writes and atomics
	pendings onesided.Pendings // of them, those that the data plane has posted
	lists    list.Posts        // of lists, that are under way
}
