// Package refs counts the users of objects that are closed.
package refs

import (
	"math"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
)

// Count is the number of users of an object, so that closing one that is in use fails
// with fi.EBUSY and a second close does nothing. The zero Count is of an open
// object without users. Any thread.
type Count struct {
	// n is the number of users, or closed. Any thread changes it by
	// compare-and-swap and none relies on the order against other memory:
	// the steps are control operations, never part of a data transfer.
	n atomic.Int64
}

// Closed is far from any count, so that a release too many cannot reopen.
const closed = math.MinInt64 / 2

// Acquire adds a user. It fails with fi.EBADF once the object is closed.
func (c *Count) Acquire() error {
	for {
		n := c.n.Load()
		if n < 0 {
			return fi.EBADF
		}
		if c.n.CompareAndSwap(n, n+1) {
			return nil
		}
	}
}

// Release takes away a user that Acquire added.
func (c *Count) Release() {
	if c.n.Add(-1) < 0 {
		panic("refs: release without acquire")
	}
}

// Reopen takes a Close back that has succeeded. The caller is the one whose call that was.
func (c *Count) Reopen() { c.n.Store(0) }

// Close closes the object: of several callers one gets nil, once no user is
// left. It fails with fi.EBUSY while there are users and with fi.EBADF when
// the object is closed already; then nothing has happened.
func (c *Count) Close() error {
	if c.n.CompareAndSwap(0, closed) {
		return nil
	}
	if c.n.Load() < 0 {
		return fi.EBADF
	}
	return fi.EBUSY
}
