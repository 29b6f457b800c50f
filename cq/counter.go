package cq

import (
	"fmt"
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
)

// Counter counts completions (fi_cntr(3)). Any thread may call its methods.
// Values wrap at 2^64.
type Counter struct {
	hot      *hot.Cntr
	wait     *Waiter
	eps      epList
	memory   []byte
	triggers triggers
	closing  func() // see OnClose; nil: nothing
	after    func() // see OnChange; nil: nothing

	// What the last poll of a set saw. Written by polls, which the set's lock
	// serialises, or two sets' race; then one reports what the other has.
	known, knownErrors atomic.Uint64
	// What fi_trywait and wait sets have reported; written by the thread that reports, relaxed.
	reported, reportedErrors atomic.Uint64
}

// OpenCounter opens a counter. The error wraps EINVAL for attributes that
// fi_cntr(3) does not know, EBADFLAGS for flags, ENOSYS for events other than
// completions and their bytes, or what stopped the system from giving memory or descriptors.
func OpenCounter(attr *fi.CntrAttr, wait *WaitSet) (*Counter, error) {
	if attr.Flags != 0 {
		return nil, fmt.Errorf("counter flags %#x: %w", attr.Flags, fi.EBADFLAGS)
	}
	if attr.Events != fi.CntrEventsComp && attr.Events != fi.CntrEventsBytes {
		return nil, fmt.Errorf("counter of events %d: %w", attr.Events, fi.ENOSYS)
	}
	c := &Counter{}
	var err error
	if c.hot, c.memory, err = newCntr(); err != nil {
		return nil, fmt.Errorf("counter: %w", err)
	}
	if c.wait, err = NewWaiter(attr.WaitObj, wait, &c.hot.Armed, c.pending, c.report); err != nil {
		_ = mem.Unmap(c.memory) // the first error says more
		return nil, err
	}
	c.eps.open(&c.hot.EPs)
	if c.wait.Waitable() {
		c.hot.Flags = hot.CQWaitable
	}
	if attr.Events == fi.CntrEventsBytes {
		c.hot.Flags |= hot.CntrBytes
	}
	return c, nil
}

// Close frees the counter. EBUSY: endpoints, regions or poll sets use it.
func (c *Counter) Close() error {
	if c.eps.busy() {
		return fmt.Errorf("counter is in use: %w", fi.EBUSY)
	}
	if c.closing != nil {
		c.closing()
	}
	c.wait.Close()
	err := c.eps.close()
	if e := mem.Unmap(c.memory); err == nil {
		err = e
	}
	c.memory, c.hot = nil, nil
	return err
}

// Hot returns the table that C reads. Handle is the caller's to set.
func (c *Counter) Hot() *hot.Cntr { return c.hot }

// Waiter returns the counter's wait object.
func (c *Counter) Waiter() *Waiter { return c.wait }

// FD returns the descriptor of the wait object, -1 if there is none.
func (c *Counter) FD() int { return c.wait.FD() }

// Attach is as [Queue.Attach].
func (c *Counter) Attach(ep *hot.EP) error { return c.eps.attach(ep) }

// Detach is as [Queue.Detach].
func (c *Counter) Detach(ep *hot.EP) error { return c.eps.detach(ep) }

// Retain is as [Queue.Retain].
func (c *Counter) Retain() { c.eps.retain() }

// Release takes back one [Counter.Retain].
func (c *Counter) Release() { c.eps.release() }

// ReleaseAfter changes the counter by f and takes back one [Counter.Retain], as one
// step to Close: a thread that sees the change may close the counter.
func (c *Counter) ReleaseAfter(f func(*Counter)) {
	c.eps.mu.Lock()
	defer c.eps.mu.Unlock()
	f(c)
	c.eps.uses--
}

// Drive makes readers of the counter poll an endpoint, without being a use that
// keeps the counter open. Each call is taken back by [Counter.Undrive], at the
// latest by what OnClose sets.
func (c *Counter) Drive(ep *hot.EP, s *Source) error {
	if err := c.eps.attach(ep); err != nil {
		return err
	}
	c.eps.release()
	if err := c.wait.AddSource(s); err != nil {
		c.eps.retain()
		_ = c.eps.detach(ep) // it is attached
		return err
	}
	return nil
}

// Undrive takes back one Drive, whose source is one of those given.
func (c *Counter) Undrive(ep *hot.EP, sources ...*Source) {
	for _, s := range sources {
		_ = c.wait.RemoveSource(s) // an error says that Drive was not given this one
	}
	c.eps.retain()
	_ = c.eps.detach(ep)
}

// OnClose sets what Close calls first, when nothing keeps the counter open. To
// be set before the counter is used.
func (c *Counter) OnClose(f func()) { c.closing = f }

// OnChange sets what is called after the application has changed the counter
// (Add, Set and their like), by its thread. To be set before the counter is used.
func (c *Counter) OnChange(f func()) { c.after = f }

func (c *Counter) changedByHand() {
	if c.after != nil {
		c.after()
	}
}

// AddSource is as [Queue.AddSource].
func (c *Counter) AddSource(s *Source) error { return c.wait.AddSource(s) }

// RemoveSource takes back one AddSource.
func (c *Counter) RemoveSource(s *Source) error { return c.wait.RemoveSource(s) }

// Count adds n completions.
func (c *Counter) Count(n uint64) {
	atomic.AddUint64(&c.hot.Value, n)
	c.Wake()
}

// Done counts an operation of n bytes: as one completion, or its bytes.
func (c *Counter) Done(n uint64) { c.Part(n, true) }

// Part counts n bytes of an operation, which is complete with the last of its parts.
func (c *Counter) Part(n uint64, last bool) {
	switch {
	case c.Bytes():
		if n != 0 {
			c.Count(n)
		}
	case last:
		c.Count(1)
	}
}

// Bytes reports whether the counter counts bytes rather than completions.
func (c *Counter) Bytes() bool { return atomic.LoadUint32(&c.hot.Flags)&hot.CntrBytes != 0 }

// CountError adds n failed operations.
func (c *Counter) CountError(n uint64) {
	atomic.AddUint64(&c.hot.Errors, n)
	c.Wake()
}

// Wake wakes the threads that sleep on the counter and fires its triggers, after it was
// changed by a sequentially consistent step.
func (c *Counter) Wake() {
	flags := atomic.LoadUint32(&c.hot.Flags) // T1
	if flags&hot.CQWaitable != 0 {
		c.wait.Wake()
	}
	if flags&hot.CntrTriggers != 0 {
		c.fire()
	}
}

func (c *Counter) values() (value, errors uint64) {
	return atomic.LoadUint64(&c.hot.Value), atomic.LoadUint64(&c.hot.Errors)
}

// Read makes progress and returns the value.
func (c *Counter) Read() uint64 {
	c.wait.Progress()
	return atomic.LoadUint64(&c.hot.Value)
}

// ReadErr makes progress and returns the error value.
func (c *Counter) ReadErr() uint64 {
	c.wait.Progress()
	return atomic.LoadUint64(&c.hot.Errors)
}

// Add adds to the value on the application's behalf. A poll set reports that
// like any change: fi_poll(3) need not, but may, and libfabric's own providers do.
func (c *Counter) Add(n uint64) {
	c.Count(n)
	c.changedByHand()
}

// AddErr adds to the error value.
func (c *Counter) AddErr(n uint64) {
	c.CountError(n)
	c.changedByHand()
}

// Set sets the value. Completions that are counted meanwhile may be lost.
func (c *Counter) Set(v uint64) {
	atomic.StoreUint64(&c.hot.Value, v)
	c.Wake()
	c.changedByHand()
}

// SetErr sets the error value.
func (c *Counter) SetErr(v uint64) {
	atomic.StoreUint64(&c.hot.Errors, v)
	c.Wake()
	c.changedByHand()
}

// Wait sleeps until the value is at least threshold. EAVAIL: the error value
// has changed since the call. ETIMEDOUT: timeout milliseconds have passed
// (negative: never). ENOSYS: the wait object is fi.WaitNone or fi.WaitSet.
func (c *Counter) Wait(threshold uint64, timeout int) error {
	if !c.wait.sleeps() {
		return errNoSys
	}
	_, before := c.values()
	done := func() bool {
		v, e := c.values()
		return v >= threshold || e != before
	}
	for end := until(timeout); ; {
		c.wait.Progress()
		value, errors := c.values()
		switch {
		case value >= threshold:
			return nil
		case errors != before:
			return errAvail
		case expired(end):
			return fi.ETIMEDOUT.Err()
		}
		c.wait.sleep(done, end)
	}
}

// TryWait prepares for a wait on the counter's own wait object; see
// [Waiter.TryWait]. A change of the counter gives EAGAIN once.
func (c *Counter) TryWait() error { return c.wait.TryWait() }

// pending reports whether the counter has changed since that was last reported.
func (c *Counter) pending() bool {
	value, errors := c.values()
	return value != c.reported.Load() || errors != c.reportedErrors.Load()
}

func (c *Counter) report() {
	value, errors := c.values()
	c.reported.Store(value)
	c.reportedErrors.Store(errors)
}

func (c *Counter) progress() { c.wait.Progress() }

// changed reports whether the counter has changed since the last call.
func (c *Counter) changed() bool {
	value, errors := c.values()
	changed := c.known.Swap(value) != value
	return c.knownErrors.Swap(errors) != errors || changed
}
