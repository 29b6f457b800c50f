// Package outbound is the sender's side of an inbound ring in another process's segment: taking the next slot, writing
// a message into it. Package loopback sends its active messages with it, and package dataplane what is posted.
//
// Its functions need nothing of the Go runtime (package direct says what that means).
//
// # The slot's line
//
// The line of the next slot is in the cache of the peer, who polls it. Reading whether the slot is free takes it from
// there, only to be asked for once more when it is written. Who writes to a ring alone does without: the peer frees
// slots in the order of their positions, so one that is free some way ahead says so of all before it. How far that is
// stands in the line of the ring's tail, which nobody else uses (struct weft_lane), and is enough until it is reached.
package outbound
