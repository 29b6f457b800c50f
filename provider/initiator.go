package provider

// initiator is the layer of an endpoint that posts operations to peers (peering) and ends those that have gone out:
// messages, reads, writes and atomics.
type initiator struct {
	peering
	txRequests
	shares sharedOps // reads and writes that targets help with
	lists  listOps   // posts of lists that are under way
}
