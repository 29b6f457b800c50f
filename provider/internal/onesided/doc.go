// Package onesided does the reads, writes and atomic operations of peers on this side's memory, where this process
// performs them, and takes in the answers to those that this side's data plane has posted.
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
// Files that end in initiator are the initiator's:
//
//	pendings   what the data plane has posted, and its ends
//
// Besides:
//
//	host       what is needed of the endpoint
//	inspect    what is under way, for tests
//
// # Threads
//
// A [Target] and [Answers] are for the holder of the progress lease of their endpoint, which keeps them where only the
// holder finds them. [Pendings] are for any thread.
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
// [AnswersHost], [Path]).
package onesided
