// Package outbound is what a sender does at the segment of a peer on this host: it takes the next slot of the peer's
// inbound ring and writes a message into it ([Claim], [Put]), with a bounce buffer of its own for a payload that is
// too long ([FreeBounce], [Fill], [Mark]); and it finds the peer's regions in the key table there ([Keys]), and claims
// them while it copies ([Regions]). Package loopback sends its active messages with it, and package dataplane what is
// posted. What the peer does with its ring is package mpsc's, and package dataplane's.
//
// Its functions need nothing of the Go runtime (package direct says what that means).
//
// # The slot's line
//
// The line of the next slot is in the cache of the peer, which polls it. To read whether the slot is free takes the
// line from there as shared, and to write it takes it again as exclusive. The only sender of a ring does not read it:
// the peer frees slots in the order of their positions, so if one some way ahead is free, so are all before it. The
// position up to which slots are free is kept beside the ring's tail, in a line that no other sender uses (struct
// weft_rx_ring), and serves until it is reached.
package outbound
