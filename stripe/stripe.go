// Package stripe holds what posting threads share of an endpoint so that they
// do not queue behind each other: transmit stripes, each with a lease, bounce
// buffers (of the transport) and a request table.
//
// A thread leases a stripe for the time of one post: one compare-and-swap on
// the stripe's own cache line, which the C path takes too (post.c). A stripe
// that is taken means: try the next. So two threads never write into one
// stripe's buffers, whatever their numbers are, and with as many stripes as
// threads none waits. A lease is not a lock: nobody waits for one, a post that
// finds all of them taken is refused with "try again".
//
// Where one thread at a time posts (exclusive), leases cost nothing.
package stripe

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hot"
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

// Acquire leases a stripe, the hinted one if it is free. It reports false when
// all are taken.
func (s *Set) Acquire(hint int) (int, bool) {
	if s.exclusive {
		return 0, true
	}
	n := len(s.stripes)
	for k := range n {
		i := (hint + k) % n
		// Acquire: what the last holder wrote into the stripe is visible. ↔ Release
		if atomic.CompareAndSwapUint32(&s.stripes[i].Lease, 0, 1) {
			return i, true
		}
	}
	return 0, false
}

// Release ends the lease of stripe i.
func (s *Set) Release(i int) {
	if !s.exclusive {
		atomic.StoreUint32(&s.stripes[i].Lease, 0)
	}
}
