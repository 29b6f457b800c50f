// Package stripe holds what posting threads share of an endpoint so that they
// do not queue behind each other: transmit stripes, each with a lease, bounce
// buffers (of the transport) and a request table.
//
// A thread leases a stripe for the time of one post: one compare-and-swap on
// the stripe's own cache line ([Take]), which package dataplane takes too. A stripe
// that is taken means: try the next. So two threads never write into one
// stripe's buffers, whatever their numbers are, and with as many stripes as
// threads none waits. A lease is not a lock: no thread waits for one, a post that
// finds all of them taken is refused with "try again".
//
// Where one thread at a time posts (exclusive), leases cost nothing.
//
// # Proof
//
// The tests run models of the lease and of the request table in every order of
// their steps, with x86's store buffers (package internal/interleave): no two
// threads hold a stripe, no request is given to two, freed twice or lost.
// Mutants that leave a step out are found. The argument:
//
//   - Only the thread that changes the lease from 0 to 1 holds the stripe, and only the
//     holder changes it back, as its last store to the stripe. Acquire ↔ Release.
//   - A request's generation word goes from g to g|free (Free) and on to g+1
//     (Alloc). Only one Free of g can make that change, so one pushes the entry.
//   - Free marks the entry before it pushes it, so no thread has it between.
//   - Alloc pops with a compare-and-swap of the head, which alone would not see
//     that the head went away and came back while its successor was taken (ABA).
//     Only pops take entries off, the lease lets one thread pop at a time, and the
//     entry that it reads stays where it is until its own pop.
//
// Bounce buffers have a word that says whether they are in use; their argument
// stands in hw/loopback.
package stripe

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
	"github.com/weft-fabric/weft/internal/race"
)

// Set is the stripes of one endpoint, over memory that C shares. Its methods
// may be called from any thread.
type Set struct {
	stripes   []hot.Stripe
	exclusive bool
}

// NewSet makes a set over stripes, which must be off the Go heap if C uses
// them. With exclusive the caller promises that one thread at a time acquires.
func NewSet(stripes []hot.Stripe, exclusive bool) *Set {
	return &Set{stripes: stripes, exclusive: exclusive}
}

// Len is the number of stripes.
func (s *Set) Len() int { return len(s.stripes) }

// At is stripe i; its fields after the lease belong to its holder.
func (s *Set) At(i int) *hot.Stripe { return &s.stripes[i] }

// Acquire leases a stripe, the hinted one if it is free. It reports false when
// all are taken.
func (s *Set) Acquire(hint int) (int, bool) {
	if s.exclusive {
		race.Acquire(&s.stripes[0].Lease)
		return 0, true
	}
	n := len(s.stripes)
	for k := range n {
		i := (hint + k) % n
		if Take(&s.stripes[i]) {
			return i, true
		}
	}
	return 0, false
}

// Release ends the lease of stripe i.
func (s *Set) Release(i int) {
	if s.exclusive {
		race.Release(&s.stripes[i].Lease)
		return
	}
	Give(&s.stripes[i])
}

// Take leases a stripe if no thread has it. Acquire: what the last holder wrote into it is visible. ↔ [Give]
func Take(s *hot.Stripe) bool {
	if !atomic.CompareAndSwapUint32(&s.Lease, 0, 1) {
		return false
	}
	race.Acquire(&s.Lease)
	return true
}

// Give ends the lease. Release ↔ [Take]
func Give(s *hot.Stripe) {
	race.Release(&s.Lease)
	order.Store32(&s.Lease, 0)
}
