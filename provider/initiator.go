package provider

import "github.com/weft-fabric/weft/provider/internal/list"

// initiator is the layer of an endpoint that posts operations to peers (peering) and ends those that have gone out:
// messages, reads, writes and atomics.
type initiator struct {
	peering
	txRequests
	shares sharedOps  // reads and writes that targets help with
	lists  list.Posts // of lists, that are under way
}
