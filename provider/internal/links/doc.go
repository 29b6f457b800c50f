// Package links has how an endpoint reaches its peers: by a link to each interface of a peer, and by a path over one of
// the endpoint's transports, which the link has from its first use on.
//
//	address of the address vector → line of the table that C reads → Link → Path → Transport
//
// [Links] is for any thread; [Leased] is what the holder of the progress lease has besides: the senders behind the
// sources of transports, and the ways back to them. The endpoint itself is the [Host].
//
// A transport is chosen when a link connects, before anything is sent, so messages to a peer keep their order. A path
// that is lost is left when its end is reported, and the next use of the link connects anew. Links to peers that are
// gone are removed when nothing names them any more (Leased.Sweep), and their numbers are used again.
package links
