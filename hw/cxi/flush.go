package cxi

import (
	"errors"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
)

// mark is a place in what was posted to a peer: messages before pos and operations up to op.
type mark struct {
	e   *Endpoint
	pos uint64
	op  uint64
}

// now is the place behind everything posted. The queue's lock is held.
func (e *Endpoint) now() mark { return mark{e, e.w.tail, e.ops.posted} }

// passed tells whether all before the place has ended. The queue's lock is held.
func (m *mark) passed() bool { return m.e.w.head >= m.pos && m.e.ops.ended(m.e.q, m.op) }

// flush is a Flush under way.
type flush struct {
	marks []mark
	only  *Endpoint // nil: of all
	c     *hw.Completion
}

// flushList are the flushes under way.
type flushList struct {
	// count is the length of list. Stored under mu, read by every Progress.
	count atomic.Int64
	mu    sync.Mutex // flushes only
	list  []flush
}

// Flush ends when what was posted to the peer before has ended. The NIC of the peer answers when its memory has what was
// written, so both scopes are the same.
func (e *Endpoint) Flush(_ hw.FlushScope, c *hw.Completion) (hw.Status, error) {
	if err := e.Err(); err != nil {
		return hw.Done, e.gone()
	}
	f := flush{only: e, c: c}
	f.add(e)
	return e.i.awaits(f)
}

// Flush ends when what was posted to all peers before has ended.
func (i *Iface) Flush(_ hw.FlushScope, c *hw.Completion) (hw.Status, error) {
	f := flush{c: c}
	for _, e := range *i.peers.Load() {
		if e != nil && e.failure.Load() == nil {
			f.add(e)
		}
	}
	return i.awaits(f)
}

// add has the flush wait for a peer, if there is anything to wait for.
func (f *flush) add(e *Endpoint) {
	e.q.take()
	defer e.q.give()
	if m := e.now(); !m.passed() {
		f.marks = append(f.marks, m)
	}
}

// awaits has Progress tell of the flush when all marks are passed.
func (i *Iface) awaits(f flush) (hw.Status, error) {
	if len(f.marks) == 0 {
		return hw.Done, nil
	}
	i.flushes.mu.Lock()
	i.flushes.list = append(i.flushes.list, f)
	i.flushes.count.Store(int64(len(i.flushes.list)))
	i.flushes.mu.Unlock()
	return hw.InProgress, nil
}

// passed tells whether all marks are.
func (f *flush) passed() bool {
	for n := range f.marks {
		q := f.marks[n].e.q
		q.take()
		passed := f.marks[n].passed()
		q.give()
		if !passed {
			return false
		}
	}
	return true
}

// tellFlushes tells the flushes that have ended and returns how many. Lease.
func (i *Iface) tellFlushes() int {
	l := &i.flushes
	var done []flush
	l.mu.Lock()
	kept := l.list[:0]
	for _, f := range l.list {
		if f.passed() {
			done = append(done, f)
		} else {
			kept = append(kept, f)
		}
	}
	clear(l.list[len(kept):])
	l.list = kept
	l.count.Store(int64(len(kept)))
	l.mu.Unlock()
	for _, f := range done {
		if f.c == nil {
			continue
		}
		var err error
		if f.only != nil && f.only.Err() != nil {
			err = f.only.gone()
		}
		f.c.Update(1, err)
	}
	return len(done)
}

// cancelFlushes ends all flushes when the interface closes.
func (i *Iface) cancelFlushes(err error) {
	i.flushes.mu.Lock()
	list := i.flushes.list
	i.flushes.list = nil
	i.flushes.count.Store(0)
	i.flushes.mu.Unlock()
	for _, f := range list {
		if f.c != nil {
			f.c.Update(1, err)
		}
	}
}

// Fence makes what is posted later be performed after what was posted before: posts find no resource until that has
// ended. The NIC's own fence does not help, since a message that is refused is sent again behind it.
func (e *Endpoint) Fence() error {
	if err := e.Err(); err != nil {
		return e.gone()
	}
	e.q.take()
	defer e.q.give()
	if m := e.now(); !m.passed() {
		e.fence = m
		e.fenced.Store(true)
	}
	return nil
}

// passFence tells whether posts may go on behind a Fence. The queue's lock is held.
func (e *Endpoint) passFence() bool {
	if !e.fence.passed() {
		return false
	}
	e.fenced.Store(false)
	return true
}

// Fence is Endpoint.Fence for all peers.
func (i *Iface) Fence() error {
	for _, e := range *i.peers.Load() {
		if e == nil {
			continue
		}
		if err := e.Fence(); err != nil && !errors.Is(err, hw.ErrPeerDead) {
			return err
		}
	}
	return nil
}
