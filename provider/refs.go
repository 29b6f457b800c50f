package provider

import (
	"math"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
)

// refs counts the users of an object, so that closing one that is in use fails
// with fi.EBUSY and a second close does nothing. The zero refs is an open
// object without users.
type refs struct {
	// n is the number of users, or refsClosed. Any thread changes it by
	// compare-and-swap and none relies on the order against other memory:
	// the steps are control operations, never part of a data transfer.
	n atomic.Int64
}

// refsClosed is far from any count, so that a release too many cannot reopen.
const refsClosed = math.MinInt64 / 2

// acquire adds a user. It fails with fi.EBADF once the object is closed.
func (r *refs) acquire() error {
	for {
		n := r.n.Load()
		if n < 0 {
			return fi.EBADF
		}
		if r.n.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// release takes away a user that acquire added.
func (r *refs) release() {
	if r.n.Add(-1) < 0 {
		panic("provider: release without acquire")
	}
}

// close closes the object: of several callers one gets nil, once no user is
// left. It fails with fi.EBUSY while there are users and with fi.EBADF when
// the object is closed already; then nothing has happened.
func (r *refs) close() error {
	if r.n.CompareAndSwap(0, refsClosed) {
		return nil
	}
	if r.n.Load() < 0 {
		return fi.EBADF
	}
	return fi.EBUSY
}
