package coll

import (
	"errors"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/collective"
)

// arrivals count, at a counter of the application's, the peers of an operation of which all bytes are in place: each
// once, after its bytes. It belongs to the thread that posts the operation, then to the lease holder.
type arrivals struct {
	counter *cq.Counter // with a use of it; nil: nothing is counted, or all are
	left    int         // peers that are not counted
}

// checkArrivals has readers of a counter of arrivals make progress of the endpoint. Errors: fi.EINVAL for one that
// counts bytes, fi.EDOMAIN for a counter of another domain, or what stopped the system from giving descriptors.
func (c *Groups) checkArrivals(counter *cq.Counter) error {
	if counter.Bytes() {
		return log.Reject(log.EPData, fi.EINVAL, "alltoallv: the counter of arrivals counts bytes, not peers")
	}
	switch err := c.host.CountsAt(counter); {
	case err == nil:
		return nil
	case errors.Is(err, fi.EDOMAIN):
		return log.Reject(log.EPData, err, "alltoallv: the counter of arrivals is of another domain")
	default:
		return log.Reject(log.EPData, fi.ErrnoOf(err), "alltoallv: counter of arrivals: %v", err)
	}
}

// startArrivals has an operation count arrivals at a counter, if there is one; peers without bytes count at once.
// got are what it gets of each rank.
func (o *collOp) startArrivals(c *cq.Counter, rank int, got []collective.Piece) {
	if c == nil || len(got) < 2 {
		return
	}
	none := 0
	for r := range got {
		if r != rank && got[r].Len == 0 {
			none++
		}
	}
	c.Retain()
	o.arrivals = arrivals{counter: c, left: len(got) - 1}
	o.arrivals.add(none, (*cq.Counter).Count)
}

// arrived counts a peer all of whose bytes are in place, of which there are some.
func (a *arrivals) arrived() { a.add(1, (*cq.Counter).Count) }

// end counts peers of which bytes are missing as errors, when the operation has ended.
func (a *arrivals) end() { a.add(a.left, (*cq.Counter).CountError) }

// add counts n peers. The last of them ends the use of the counter, which may be closed then.
func (a *arrivals) add(n int, count func(c *cq.Counter, n uint64)) {
	c := a.counter
	if c == nil || n == 0 {
		return
	}
	if a.left -= n; a.left != 0 {
		count(c, uint64(n))
		return
	}
	a.counter = nil
	c.ReleaseAfter(func(c *cq.Counter) { count(c, uint64(n)) })
}
