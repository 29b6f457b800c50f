package cxi

import "time"

// spares counts buffers that are not on a list of the NIC. It belongs to the lease holder.
type spares struct {
	n        int
	notUntil time.Time // before which none is listed again: the NIC has refused one
}

// due reports whether there are some that are to be listed now.
func (s *spares) due() bool { return s.n != 0 && !time.Now().Before(s.notUntil) }

// refused counts one that the NIC had no entry for.
func (s *spares) refused() {
	s.n++
	s.notUntil = time.Now().Add(retryDelay)
}

// relist has all, under the receiver's lock, give the NIC the buffers that are due.
func (x *matchRx) relist(s *spares, all func()) {
	s.notUntil = time.Time{}
	x.lock.take()
	all()
	x.portal.q.Ring()
	x.lock.give()
}
