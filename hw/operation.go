package hw

import (
	"sync/atomic"
	"time"
)

// Status says how far an operation that returned no error has got.
type Status int

const (
	// Done: it has ended; the completion is not notified.
	Done Status = iota
	// InProgress: the completion is notified when it ends.
	InProgress
)

// Completion counts operations in progress and reports when the last has ended.
// The caller sets Count to the number of operations before it starts the first
// and takes off those that returned Done or an error with Update. It must not
// move while operations are in progress.
type Completion struct {
	// Func is called once, by the thread that ends the last operation: in Progress or
	// in the caller's own Update. It may start operations.
	Func func(c *Completion)
	// Context is the caller's.
	Context uint64
	// Idempotent allows that an operation is performed twice, the second time
	// after a path was lost and it is not known whether the first was. Of a put
	// whose target nothing else uses until it has ended. Set before the first is
	// started.
	Idempotent bool
	// More says that the caller posts another operation to the peer at once, or calls Uncork ([Corker]): the endpoint
	// may keep this one until then, and have it end with a later one. Set before the operation is started.
	More bool
	// Late is how long ago the last operation had ended when it was reported, by the
	// clock of a device; 0: not known. Cleared by Expect, written by the holder of the
	// backend's progress lease before the count goes down, read by Func.
	Late time.Duration

	// count is written by callers and by the holder of the progress lease, added
	// to atomically; sequentially consistent.
	count atomic.Int32
	// status is the first error, nil while all succeed. Written by
	// compare-and-swap before the count goes down, read after it reached zero.
	status atomic.Pointer[error]
}

// Expect sets the number of operations; before the first is started.
func (c *Completion) Expect(n int) {
	c.status.Store(nil)
	c.Late = 0
	c.count.Store(int32(n))
}

// Update takes off n operations that have ended with err, nil for success, and
// calls Func when they were the last.
func (c *Completion) Update(n int, err error) {
	if err != nil {
		c.fail(err)
	}
	if c.count.Add(-int32(n)) == 0 && c.Func != nil {
		c.Func(c)
	}
}

// fail notes an error. The parameter is allocated with the call, so only an operation that has failed makes it.
func (c *Completion) fail(err error) { c.status.CompareAndSwap(nil, &err) }

// Err is the first error of the operations. Valid when all have ended.
func (c *Completion) Err() error {
	if e := c.status.Load(); e != nil {
		return *e
	}
	return nil
}

// OneSided is what endpoints implement that read and write memory which the
// peer has registered. addr is in the peer's terms (see Region.Base). The
// operations complete, locally, when the caller's memory may be used again;
// [Flusher] reports when the peer's memory has it.
//
// Errors, from the call or given to the completion: ErrNoResource, ErrTooLong,
// ErrInvalid, ErrKey, ErrPermission, ErrPeerDead.
type OneSided interface {
	// PutZcopy writes local, which must stay until the operation has ended.
	PutZcopy(local []Segment, addr uint64, key RemoteKey, c *Completion) (Status, error)
	// GetZcopy reads into local, which must stay until the operation has ended.
	GetZcopy(local []Segment, addr uint64, key RemoteKey, c *Completion) (Status, error)
}

// Corker is what endpoints implement that may keep operations for the next one (Completion.More).
type Corker interface {
	// Uncork has what was kept go, and end without another. Any thread, after its last operation.
	Uncork()
}

// FlushScope says how far operations must have got.
type FlushScope int

const (
	// FlushLocal: the memory of this side is free again.
	FlushLocal FlushScope = iota
	// FlushRemote: the peer's memory has what was written, and its handlers' interface has the messages.
	FlushRemote
	// FlushMemory: the peer's memory has what was written. Of messages it says nothing, though it may wait for them.
	FlushMemory
)

// Flusher is what endpoints and interfaces implement that can say when all
// operations posted before (by the caller, or in an order that it sees) have
// ended, over the endpoint or over all endpoints of the interface.
type Flusher interface {
	// Flush ends when the operations have. An operation that failed has been
	// reported by itself; ErrPeerDead says that the endpoint is broken.
	Flush(scope FlushScope, c *Completion) (Status, error)
	// Fence makes operations posted later be performed after those posted
	// before, as the peer sees it. It may wait for nothing. ErrNoResource: nothing
	// was done, progress makes room.
	Fence() error
}
