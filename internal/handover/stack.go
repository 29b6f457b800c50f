// Package handover has things that threads leave to the one that works on them.
//
// # Model
//
// Any thread pushes a thing, and then tries to become the one that works: to get a lock, for which it does not wait.
// The one that has it takes all things at once, in the order in which they were pushed, gives the lock back, and begins
// again if there are more by then:
//
//	s.Push(thing)
//	for mu.TryLock() {
//		list = s.Take(list[:0])
//		...
//		mu.Unlock()
//		if !s.Any() {
//			return
//		}
//	}
//
// # Why nothing is left
//
// A thread that finds the lock taken has pushed before (H0). So the one that has the lock finds the thing when it reads
// whether there is one after it has given the lock back (H1), if it has not taken it (H2).
//
// # Why nothing is taken twice
//
// All is taken by one exchange. A node is pushed once, so a top that is the same is unchanged.
package handover

import (
	"slices"
	"sync/atomic"
)

// Node has a thing on a stack.
type Node[T any] struct {
	It    T
	below *Node[T] // set before the node is on the stack; immutable until it is taken, nil from then on
}

// Stack has things that were left. The zero Stack is empty.
type Stack[T any] struct {
	// top is the last that was pushed, nil: there is none. Changed by compare-and-swap by threads that push, taken by
	// an exchange by the one that works, read by any; sequentially consistent.
	top atomic.Pointer[Node[T]]
}

// Push leaves a thing, whose node was not pushed before. Any thread.
func (s *Stack[T]) Push(n *Node[T]) {
	for n.below = s.top.Load(); !s.top.CompareAndSwap(n.below, n); n.below = s.top.Load() { // H0
	}
}

// Any reports whether there is something. Any thread.
func (s *Stack[T]) Any() bool { return s.top.Load() != nil } // H1

// Take appends all there is to a list, in the order in which it was pushed. One thread at a time.
func (s *Stack[T]) Take(to []T) []T {
	if !s.Any() {
		return to
	}
	first := len(to)
	for n := s.top.Swap(nil); n != nil; { // H2
		to = append(to, n.It)
		below := n.below
		n.below = nil // a node that stays keeps no other
		n = below
	}
	slices.Reverse(to[first:])
	return to
}
