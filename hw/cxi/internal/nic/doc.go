// Package nic is the data path of the NIC: its command queues and event queues,
// which are memory that both sides read and write, and the commands and events in
// them.
//
// Nothing here calls a library, allocates or needs the Go runtime. Formats are
// those of package wire. A queue has one user at a time.
//
// # Order
//
// What the NIC and the processor rely on, beyond the order of one thread's
// accesses. amd64 has stores in order and loads in order, and needs fences for
// memory that combines writes alone; arm64 has neither, and each point is an
// instruction of it, which TestOrder finds in what the compiler makes.
//
//   - D1: commands are in memory before the doorbell: DMB OSHST in [Bell], and
//     in C (package seam). A C_STATE and what goes behind it are commands of the
//     ring, and nothing is stored in the launch page but the doorbell.
//   - D2: a doorbell comes before the next one of the queue, from whichever
//     thread: DMB OSHST behind it, before the lock is given back by a release
//     store (STLR).
//   - D3: commands are written where the NIC has read: the ring's read pointer
//     is read by acquire (LDAR) in read, and stores do not go before that.
//   - E1: an event is read after it is whole: its size by acquire, then its
//     return code, which the NIC writes last, by acquire, then the rest of it and
//     what it says is in memory (LDAR twice in [EventQueue.PeekAny]).
//   - E2: the NIC has the room of events that were read: they are cleared, and
//     what was read of them and of what they name is done, before the release
//     store of the next place ([EventQueue.Free]), which is before D1 of the
//     doorbell that says so, or of the command that gives a buffer back.
//   - E3: a thread that asks whether something waits, and one that is to learn of
//     dropped events, read by acquire ([EventQueue.Waiting], Unread, Dropped):
//     what they find is read again by E1.
package nic
