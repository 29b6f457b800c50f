// Package collective holds the algorithms of collective operations: what each
// rank of a group sends, receives and computes, as a [Plan] of steps, and a
// [Run] that carries a plan out over a [Transport].
//
// # Plans
//
// A plan is a list of steps on three buffers: what the caller gives, what it
// gets, and scratch memory. Transfers are begun in the order of the list and
// end in any order; a step of arithmetic or a copy, and a fence, wait until all
// transfers before them have ended (after libNBC: Hoefler, Lumsdaine, Rehm,
// "Implementation and Performance Analysis of Non-Blocking Collective
// Operations for MPI", SC 2007).
//
// Messages have no names. What one rank sends to another in one operation is
// received in the order in which it was sent, and both sides' plans agree on
// that order and on all lengths.
//
// # Order of arithmetic
//
// An operation need not be associative as computers do it, and minima of
// numbers that are not comparable depend on which comes first. All algorithms
// that leave one result at several ranks compute it from the same operands in
// the same order everywhere, so that all ranks have the same bits.
//
// # Limits
//
// The package knows no transport, no datatype and no libfabric: elements are
// bytes with a size, and arithmetic is a function of the caller's.
package collective
