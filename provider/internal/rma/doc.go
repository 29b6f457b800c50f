// Package rma posts reads, writes and atomic operations on peers' memory that the data plane leaves to the runtime, and
// ends them. The target's part is package onesided's.
//
//	initiator                    target
//	   copy             ⇒                   the transport reaches the memory by itself
//	   segments         ⇒                   a device does, or messages, as a congestion window allows
//	   write, atomic    →
//	                    ←          done     for messages that ask for it, and for all that are refused
//	   read, fetch      →
//	                    ←          data     pieces of the result; or done: why not
//	   share            →                   an offer to copy a part of an operation (package claim)
//
// Files:
//
//	operation, check   reads and writes, and which are valid; atomic: atomic operations
//	post               which way an operation goes; messages
//	request            an operation that is answered or ended later
//	elements           several elements in one message
//	direct             copies by the posting thread; share, delegate: with the target's help
//	accessed           memory that they use often
//	device             operations that a device does
//	flow, segments     operations in segments; segments_device: that a device moves
//	order              the order among operations (package ordering)
//	initiator          what an endpoint keeps of its operations
//	protocol           what progress does with them: answers, what found no room, and peers that are gone
//	link               what is kept of a peer, and of a path to it
//	host               what is needed of the endpoint
//	inspect            what is under way, for tests
//
// # Threads
//
// An [Initiator] is for any thread. A [Protocol] is for the holder of the progress lease of the endpoint, which keeps
// it behind the lease (package lease). A request belongs to the thread that posts it until its last message is about to
// be sent, or until it is queued; from then on to the holder of the lease. It is ended once, by the thread that
// claims it.
//
// # Peers
//
// What peers send is checked: an answer is taken in only if it comes from the peer of the request's link, and answers
// for no more than waits. Words that are shared with a target may hold anything.
//
// # Limits
//
// The package knows no domain and no address vector: the endpoint and its peers are interfaces ([Host], [LeasedHost]).
package rma
