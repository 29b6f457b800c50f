// Package cq holds completion queues, counters, and the wait objects and sets
// that make threads sleep on them.
//
// # Completion queues
//
// A [Queue] is a number of rings over a [hot.CQ]: ring 0 for progress engines,
// the others for transmit stripes, so that threads that post share no cache
// line. Each ring is a [hot.CQRing] header (shared head, producers' tail) and
// slots of one [hot.CQE]. Producers claim, fill and publish as in package mpsc.
// The steps are those of package cqring, which the data plane reads and writes queues by as well.
//
// Any thread may read. A reader scans sequence words from the head, moves the
// head past the ready slots with one compare-and-swap, copies them out and
// releases each. The owner field of the sequence word says what a slot holds,
// so the scan touches nothing that may change under it:
//
//	0 entry   a completion
//	1 error   stays at the head until [Queue.ReadErr] takes it; Flags has hot.CQEError, Buf the address of its record
//
// Readers take turns at the rings: a read that was cut short by its buffer goes
// on at the next ring, one that was cut short by an error at that error.
//
// # Nothing is lost
//
// A completion that is written when the operation is posted finds its slot
// then, or the post fails ([Queue.TryComplete]). One that comes
// later ([Queue.Complete]) goes to ring 0; when that is full, to an overflow
// list, and so do all after it until readers have made room. What bounds the
// list is the number of operations that the endpoints let be outstanding.
//
// # Sleeping
//
// A [Waiter] belongs to a queue or counter, and to no more than one set. A thread
// that wants to sleep arms it (drains the event file, sets the armed words, lets every
// [Source] arm its doorbell) and then polls again; one that publishes reads the
// armed word afterwards and writes to the event file only if it can clear it.
// Between store and load on both sides is a full fence (W0), so one of the two
// sees the other: no wake-up is lost, and nothing is written when no thread waits.
//
// # Proof
//
// The tests run a model of pop beside a producer in every order of their steps, with x86's store buffers (package
// internal/interleave): each completion is read once and whole, none behind an error. The argument: a reader that
// moved the head from h to e saw the words of all slots between READY in their laps, and only the reader that moved
// the head past a slot releases it, so they are still; two readers cannot move the head from the same h.
//
// # Locks
//
// None is taken by a read that finds something, by a completion that finds
// room, or by a wake-up. Each mutex says where it is taken.
//
// # Progress
//
// Pushing and popping are lock-free. A reader that is stopped after moving the
// head and before releasing its slots leaves a ring full for producers, and
// holds up no other ring.
package cq
