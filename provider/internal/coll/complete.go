package coll

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/internal/tally"
)

// Complete ends an operation at the queue of transmits and at the counter of writes, either of which may be nil, for
// [Leased].
func Complete(q *cq.Queue, counter *cq.Counter, st Counters, context uint64, completes bool, status fi.Errno) {
	entry := cq.Entry{Context: context, Flags: fi.Collective, Src: fi.AddrNotAvail}
	if status != fi.Success {
		st.Rx(tally.Error(status), 1)
		if q != nil {
			q.CompleteError(entry, cq.ErrorInfo{Err: status})
		}
		if counter != nil {
			counter.CountError(1)
		}
		return
	}
	if completes {
		q.Complete(entry)
	}
	if counter != nil && !counter.Bytes() { // fi_cntr(3): no bytes of collective operations
		counter.Count(1)
	}
}
