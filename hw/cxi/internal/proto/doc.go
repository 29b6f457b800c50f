// Package proto is the wire of libfabric's CXI provider (FI_PROTO_CXI): endpoint names, portal indices, and the match
// bits of messages, rendezvous and notices. An endpoint that keeps to it and one of that provider do not differ for a
// peer.
//
// Everything is a pure function. What decodes takes any bits, as a peer may send any, and reports those that no
// endpoint of the protocol sends.
package proto
