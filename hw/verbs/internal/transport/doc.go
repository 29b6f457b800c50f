// Package transport is the data plane of package verbs: messages on their way to queue pairs and out of completion
// queues.
//
// # Model
//
// A [Transport] is an interface: its completion queues, the receive buffers, and its peers. A [Peer] is one of them,
// with the [SendQueue] of work requests on their way to its queue pair. All of it lies off the Go heap. C drives it
// without the runtime (package direct) by [Send], [Next], [Peek], [Take], [Flush] and [Again]; package verbs calls
// the methods. Both do the same by the same code, and what one has left the other goes on with.
//
// Only libibverbs calls the device. Code that wants something of it fills an ibv.Call and returns; its
// caller has the device do it and goes on: C in a loop (hw/verbs/internal/ibv/seam.c), a method of this package by
// [ibv.Call.Perform].
//
// # Threads
//
// Methods say whether their caller must hold the progress lease. Any thread claims places and posts: one at a time
// has a queue's Run, and posts what the others have filled meanwhile.
//
// # What a peer can do
//
// It writes what it likes into buffers and rings. What lies in a buffer does not change once its completion has
// come; what lies in a ring may change at any time, and is copied before it is judged. A message counts if its
// header says how long it is, names a peer that has this queue pair or ring, and has a position behind the last
// one's.
package transport
