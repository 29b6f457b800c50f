package cq

import (
	"fmt"
	"math/bits"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// Sizes of a ring, in entries.
const (
	defaultEntries = 1024
	maxEntries     = 1 << 24
)

// maxStripes is the most rings for stripes; more stripes share them.
const maxStripes = 64

// Options are what opening a queue needs beside the application's attributes.
type Options struct {
	// Stripes is the number of transmit stripes that complete into the queue
	// without the progress lease. They get a ring each, up to 64, rounded up to
	// a power of two; with 0 all use ring 0.
	Stripes int
	// Exclusive says that the application serializes all that uses the queue, until [cqring.Share].
	Exclusive bool
	// RingEntries replaces the size that the application asks for, if not 0.
	RingEntries int
}

// Queue is a completion queue. See the package comment for which thread may call what.
type Queue struct {
	hot      *hot.CQ
	rings    []ring
	waitable bool
	wait     *Waiter
	cond     fi.CQWaitCond

	overflow overflow
	errors   errorList
	last     []byte // data of the error read last, off the Go heap
	eps      epList
	memory   []byte
}

// Open opens a queue. The error wraps EINVAL for attributes that fi_cq(3) does
// not know, EBADFLAGS for flags, or what stopped the system from giving memory
// or descriptors.
func Open(attr *fi.CQAttr, opts Options, wait *WaitSet) (*Queue, error) {
	l, err := plan(attr, opts)
	if err != nil {
		return nil, err
	}
	memory, err := mem.Map(l.bytes(), mem.NoReserve)
	if err != nil {
		return nil, fmt.Errorf("completion queue: %w", err)
	}
	q, err := newQueue(attr, opts, wait, l, memory)
	if err != nil {
		_ = mem.Unmap(memory) // the first error says more
		return nil, err
	}
	q.memory = memory
	return q, nil
}

// plan checks the attributes and sizes the rings.
func plan(attr *fi.CQAttr, opts Options) (layout, error) {
	bad := func(what string, v any) (layout, error) {
		return layout{}, fmt.Errorf("completion queue %s %v: %w", what, v, fi.EINVAL)
	}
	if attr.Flags&^fi.Affinity != 0 {
		return layout{}, fmt.Errorf("completion queue flags %#x: %w", attr.Flags, fi.EBADFLAGS)
	}
	if attr.Format < fi.CQFormatUnspec || attr.Format > fi.CQFormatTagged {
		return bad("format", attr.Format)
	}
	if attr.WaitObj != fi.WaitNone && attr.WaitCond != fi.CQCondNone && attr.WaitCond != fi.CQCondThreshold {
		return bad("wait condition", attr.WaitCond)
	}
	size := attr.Size
	if opts.RingEntries > 0 {
		size = uint64(opts.RingEntries)
	}
	if size == 0 {
		size = defaultEntries
	}
	if size > maxEntries {
		return bad("size", size)
	}
	rings := uint32(1)
	if n := min(opts.Stripes, maxStripes); n > 0 {
		rings += 1 << bits.Len(uint(n-1))
	}
	return newLayout(uint32(bits.Len64(size-1)), rings), nil
}

// newQueue makes a queue in zeroed memory, which the caller keeps.
func newQueue(attr *fi.CQAttr, opts Options, set *WaitSet, l layout, memory []byte) (*Queue, error) {
	q := &Queue{cond: attr.WaitCond}
	q.hot, q.last, q.rings = lay(memory, l)
	if err := q.errors.open(); err != nil {
		return nil, err
	}
	var err error
	if q.wait, err = NewWaiter(attr.WaitObj, set, &q.hot.Armed, q.pending, q.dropSignal); err != nil {
		return nil, err
	}
	q.eps.open(&q.hot.EPs)
	q.hot.Format = uint32(attr.Format)
	if attr.Format == fi.CQFormatUnspec {
		q.hot.Format = uint32(fi.CQFormatContext)
	}
	if opts.Exclusive {
		q.hot.Flags |= hot.CQExclusive
	}
	if q.waitable = q.wait.Waitable(); q.waitable {
		q.hot.Flags |= hot.CQWaitable
	}
	return q, nil
}

// Close frees the queue; what it holds is lost. EBUSY: endpoints or poll sets
// use it. No call that reads it or completes into it may be in progress: a thread that
// completes still checks whether to wake after a reader has seen the completion,
// so an endpoint must wait for its own progress and posts before it detaches.
func (q *Queue) Close() error {
	if q.eps.busy() {
		return fmt.Errorf("completion queue is in use: %w", fi.EBUSY)
	}
	q.wait.Close()
	q.overflow.free()
	err := q.errors.slab.Close()
	if e := q.eps.close(); err == nil {
		err = e
	}
	if e := mem.Unmap(q.memory); err == nil {
		err = e
	}
	q.memory, q.hot, q.rings = nil, nil, nil
	return err
}

// Hot returns the table that C reads. Handle is the caller's to set.
func (q *Queue) Hot() *hot.CQ { return q.hot }

// Format returns the format of entries: that asked for, or the default.
func (q *Queue) Format() fi.CQFormat { return fi.CQFormat(q.hot.Format) }

// Size returns the number of completions that ring 0 holds.
func (q *Queue) Size() uint64 { return q.rings[0].Slots() }

// Waiter returns the queue's wait object.
func (q *Queue) Waiter() *Waiter { return q.wait }

// FD returns the descriptor of the wait object, -1 if there is none.
func (q *Queue) FD() int { return q.wait.FD() }

// Attach makes an endpoint visible to pollers and counts as a use. An endpoint
// that is bound twice is attached twice.
func (q *Queue) Attach(ep *hot.EP) error { return q.eps.attach(ep) }

// Detach takes back one Attach. Threads that poll may still read ep's table
// for a while after the last.
func (q *Queue) Detach(ep *hot.EP) error { return q.eps.detach(ep) }

// Retain and Release count a use that pollers need not see: an endpoint bound
// but not enabled, a poll set.
func (q *Queue) Retain() { q.eps.retain() }

// Release takes back one [Queue.Retain].
func (q *Queue) Release() { q.eps.release() }

// AddSource makes Read and the waits include a source; see [Source].
func (q *Queue) AddSource(s *Source) error { return q.wait.AddSource(s) }

// RemoveSource takes back one AddSource.
func (q *Queue) RemoveSource(s *Source) error { return q.wait.RemoveSource(s) }

// pending reports whether a read would return something, or a wait has been
// signaled.
func (q *Queue) pending() bool { return q.changed() || atomic.LoadUint32(&q.hot.Signaled) != 0 }
