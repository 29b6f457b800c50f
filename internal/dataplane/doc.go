// Package dataplane is what happens to each operation: posting it, taking it off the ring at its receiver, matching,
// delivery, completion.
//
// # Posting
//
// [Send], [Datagram], [RMA], [Atomic] and [Note] post one operation each: they find room for the message and its
// completion, write the message into the peer's ring (package outbound) and complete it. What is not for them, because
// it needs a system call, the backend's own function or the runtime, they report by a code of hot.Post, and nothing has
// happened then. [Recv] puts a receive on the post ring. [Enroll] gives a thread what it needs for that.
//
// # Receiving
//
// A [Receiver] is the matching state of a receive context. What arrives goes through three steps:
//
//	ring → deliver: check what the sender wrote, find the bytes
//	     → Receiver.Accept: match it with a posted receive, or hold it
//	     → complete: an entry for the reader or the queue, the counter
//
// deliver takes in the arrivals of one endpoint in shared memory, one-sided operations and their answers (serve)
// included. Notifications go into a ring of the endpoint's, from which [Take] gives them to the application. Backends
// with other ways of messages call [Receiver.Accept] with each. Posted receives come over the post ring of the
// receive context; they go into matching when a message is older than none of them, so a message that fits the next one
// is delivered without a detour.
//
// # Where it runs
//
// The functions here need nothing of the Go runtime (package direct says what that means): C threads call them like C
// functions, weft's own threads and Go programs as ordinary Go. What needs the runtime is not done but reported, by a
// code of hot.Delivery or a [Verdict]: memory to be mapped, a receive into several buffers or device memory,
// truncation, a source that is not known yet, a full completion queue. Package provider does that.
//
// # Concurrency
//
// A Receiver, and what an endpoint's inbound rings hold, belong to the holder of the progress lease of the receive
// context. Completion queues and counters have several writers; their words are written as package cq does.
//
// # Trust
//
// A sender can write its ring and its bounce buffers at any time. Each word of a slot is read once and checked; what a
// payload holds is the sender's to say, also while it is copied.
package dataplane
