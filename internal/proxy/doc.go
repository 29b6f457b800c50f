// Package proxy holds weft's own threads: those that make progress while the
// application does something else.
//
// # Threads
//
// A [Progress] thread drives engines, which are endpoints with their receive
// contexts, through the lease that all other threads take, too. It starts on first
// need. It is a Go-owned thread (runtime.LockOSThread) with a name that "ps -L"
// shows, on the processors that a [Placement] gives, with the application's
// signals blocked; it runs Go and nothing else, so what it does costs no call
// from C into Go.
//
// A [Service] answers other processes of the same user: the kernel says which
// process one is (SO_PEERCRED). It is event driven, has as many connections as there are
// peers, and takes answers that come later, from any goroutine. [Descriptors]
// is a second one that hands out descriptors (SCM_RIGHTS) to processes that know their
// token. Both listen at abstract names, which end with the process.
//
// # Operations
//
// Any thread may post an [Op] for a progress thread: a claim in a ring of
// package mpsc, a copy of one cache line, a release store, a fence and a load
// whether the thread sleeps. Measured: 15 ns alone, 10 ns in batches of 16, 35 ns
// from two threads at once. A poll of the empty pool costs the thread 1 ns, so
// it polls each round; a longer period (Policy.AppendFreq) gains nothing
// measurable.
//
// # Sleeping
//
// A thread that has nothing to do spins, then yields, then sleeps on an epoll
// set of its event file and its engines' doorbells. A [Bell] is the event file
// with the word that says whether it must be rung; the argument that no wake-up
// is lost stands at the type. Everything that is work for the thread is rung for
// by the thread that makes it:
//
//	arrivals            the sender, by the doorbell of the engine (hw.Waiter)
//	posted operations   the thread that posts
//	posted receives     the thread that posts, while messages are unexpected (package dataplane)
//	sends without room  nothing rings: Engine.Attention has the thread poll each millisecond
//	timers              nothing rings: the thread wakes for them, see checkMost
//
// The tests run the bell in every order of its steps, with x86's store buffers
// (package internal/interleave), and so the handing over of engines; each fence
// and each second poll turns out to be needed.
//
// # Two threads that make progress
//
// An application that polls by itself needs no help, and a thread that takes the
// lease or the processor would only be in its way. So pollers leave a mark
// ([Engine.Polled]). While there are enough of them the thread arms nothing, so
// that senders pay for no doorbell, and only wakes every [Policy].Watch to see
// whether the application still polls; what has waited since the last poll it
// serves then. When the application stops, the thread takes over within that
// time. An application that polls now and then does not keep it away.
//
// Marks say little where threads outnumber processors: a poller that waits for one leaves none, and the thread that
// takes over is its rival from then on. So an application may say that it polls until it says otherwise
// ([Engine.Reserved], [Progress.Refresh]).
//
// Each change between idle and active is counted, reported to [ProgressOptions].Note,
// and kept with its time: the last ones are in the dump and, as [Events], for
// clients of the service.
//
// Measured on 2 cores: the watching thread uses 0.2 to 0.4 % of a core while the
// application uses 100 %; an idle process uses 0.03 %.
//
// # Ends
//
// Stop ends what was posted and what engines are at; Abort ends the thread
// after the batch that it is at, and is seen at once by one that sleeps, because
// it rings. Descriptors are closed at exec; after a fork the child has no thread
// and calls none of this (cabi/fork.c); when the process dies nothing is left
// behind.
package proxy
