// Package mpsc works on weft's rings: bounded, many producers, one layout for
// C and Go. include/weft/ring.h has the same steps in C; the tests push in one language and
// pop in the other, inside a process and between processes.
//
// # Model
//
// A ring is an array of 2^n slots, each a whole number of cache lines, and one
// tail word on a line of its own. Every slot starts with a sequence word
//
//	 63                18 17        2 1   0
//	+--------------------+-----------+-----+
//	|        lap         |   owner   |state|
//	+--------------------+-----------+-----+
//
// whose state goes FREE → TAKEN ([Ring.Claim]) → READY ([Ring.Publish]) → FREE
// of the next lap ([Ring.Release]); a slot whose owner died between the first
// two steps goes TAKEN → FREE of the next lap ([Ring.Reclaim]). Zeroed memory
// is an empty ring.
//
// Positions are free-running 64-bit numbers: slot = position mod 2^n, lap =
// position / 2^n. They are compared by difference only. The tail is a hint:
// every position below it has been claimed. A producer starts there and walks
// forward; where the tail is more than a lap old, the lap in the first slot's
// word says how far to jump. So the tail may go backwards (a producer was
// delayed between its claim and its store of the tail) or stand still (it was
// killed there) and costs steps, never progress.
//
// # Which thread may call what
//
// Any number of producers, in any process that maps the ring, call Claim and
// Publish; a producer that passes exclusive must be the only one. One consumer
// at a time calls Load, Ready, Release and Reclaim and keeps the position it
// reads from; handing that position from one consumer to the next needs an
// acquire and a release of the caller's own (a lease). Packages with several
// consumers put a shared head word above the ring, as package cq does. An inbound
// ring of an endpoint keeps its consumer's position in a [hot.Inbound], which any
// thread polls ([Arrived]) and the lease holder moves ([Next], [Pass]).
//
// # Progress
//
// Claim is lock-free: a failed compare-and-swap means that another producer
// got the slot, and a call ends after at most one step per slot, with a slot
// or with ok false. ok false means that the ring was full, or that so many
// others claimed during the call that it gave up; nothing has changed then and
// the caller may call again. Publish, Load, Ready, Release and Reclaim are
// wait-free. A producer that stops between Claim and Publish holds back the
// messages behind it, because order is the ring's order; a dead one is removed
// with Reclaim.
//
// # Ordering points
//
//	C0 Claim    CAS (acquire) on the sequence word   ↔ R0: the slot's previous contents are done with
//	P0 Publish  store-release of the sequence word   ↔ L0: the body is visible
//	L0 Load     load-acquire of the sequence word    ↔ P0
//	R0 Release  store-release of the sequence word   ↔ C0
//
// Next is L0, and Pass is R0; A0 and A1 of a [hot.Inbound] are in inbound_unsafe.go.
//
// sync/atomic gives all of them sequential consistency, which is more than they
// need. Bodies are accessed plainly, by the producer between C0 and P0 and by
// the consumer between L0 and R0.
//
// # Proof
//
// The tests run a model of these steps in every order, with x86's store buffers,
// producers that are killed at any step and a tail that is laps old (package
// internal/interleave): nothing is lost, doubled, torn or overtaken, and
// no thread waits for ever. Mutants that leave a step out are found. The argument:
//
//   - A slot's word goes through FREE, TAKEN and READY once a lap, and only C0
//     leaves FREE of a lap, so one producer has the slot of a position.
//   - C0 at a position needs the word of its lap, which R0 of the lap before
//     wrote. The walk starts at or below the first position that is not claimed
//     and passes only positions whose word shows that they were. So claims are
//     made in the order of positions, without a gap, which is the ring's order.
//   - The body is written between C0 and P0 and read between L0 and R0; P0↔L0
//     and R0↔C0 order the two sides.
//   - A dead owner's word stays TAKEN. Reclaim changes exactly that word, so it
//     cannot take a slot that was published after all.
//
// # Hostile and dead peers
//
// Geometry lives in the private [Ring], never in the shared memory, so no
// value there leads to an access outside the ring. A peer that can write the
// ring can lose, repeat or forge messages and stop the ring for everyone; the
// consumer must check each message before using it, and read each word of it
// once. Sequence words with impossible laps make Claim report a full ring and
// Load report lapOK false. A peer that was killed leaves at most its TAKEN
// slots, each of which names it.
package mpsc
