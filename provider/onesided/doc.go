// Package onesided does the reads, writes and atomic operations of peers on this side's memory, where this process
// performs them.
//
//	initiator                    target
//	   write, atomic  →                      the region of the key is checked, its memory changed
//	                  ←          done        for messages that ask for it, and for all that are refused
//	   read, fetch    →                      the region of the key is checked
//	                  ←          data        pieces of it, as there is room, each checked again; or done: why not
//	   share          →                      an offer to copy a part of an operation (package claim)
//
// Files that end in target are the target's:
//
//	target     what an endpoint keeps of peers' operations
//	writes     writes, and notices of those that the initiator has done by itself
//	reads      reads, and results that wait for room
//	atomics    atomic operations
//	elements   several elements in one message
//	share      operations that an initiator on this host copies with this side's help; list: of many pieces
//
// Besides:
//
//	host       what is needed of the endpoint
//	inspect    what is under way, for tests
//
// # Threads
//
// A [Target] is for the holder of the progress lease of its endpoint, which keeps it where only the holder finds it.
//
// # Peers
//
// What peers send is checked. An operation reaches memory only through a region whose key it names, within the region
// and its rights, while the region's gate is entered, so that one that is closed is not accessed any more. What is
// refused changes nothing, and the initiator learns why. What a peer does not take of its answers is bounded.
//
// # Limits
//
// The package knows no domain and no transport: the endpoint, its regions and its peers are interfaces ([TargetHost],
// [Path]).
package onesided
