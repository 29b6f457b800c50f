package provider

import "github.com/weft-fabric/weft/cq"

// countWork counts the end of an operation: by the endpoint's counter, nil for none, and if it was deferred work (a
// number other than 0) by the work's. The endpoint's counts work only if that asked for completions of the endpoint. n
// is the operation's bytes.
func (e *binder) countWork(c *cq.Counter, work uint64, asked, failed bool, n uint64) {
	if c != nil && (work == 0 || asked && !e.domain.work.DoneBy(work, c)) {
		if failed {
			c.CountError(1)
		} else {
			c.Done(n)
		}
	}
	if work != 0 {
		e.domain.work.End(work, failed, n)
	}
}
