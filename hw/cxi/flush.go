package cxi

import (
	"errors"

	"github.com/weft-fabric/weft/hw"
)

// mark is a place in what was posted to a peer: messages before pos and operations up to op.
type mark struct {
	e   *Endpoint
	pos uint64
	op  uint64
}

// now is the place behind everything posted. The caller has the queue's lock.
func (e *Endpoint) now() mark { return mark{e, e.w.tail, e.ops.posted} }

// passed reports whether all before the place has ended. The caller has the queue's lock.
func (m *mark) passed() bool { return m.e.w.head >= m.pos && m.e.ops.ended(m.e.q, m.op) }

// flush is a Flush under way.
type flush struct {
	marks []mark
	only  *Endpoint // nil: of all
}

// Flush ends when what was posted to the peer before has ended. The NIC of the peer answers when its memory has what
// was written, so both scopes are the same.
func (e *Endpoint) Flush(_ hw.FlushScope, c *hw.Completion) (hw.Status, error) {
	if err := e.Err(); err != nil {
		return hw.Done, e.gone()
	}
	f := &flush{only: e}
	f.add(e)
	return e.i.awaits(f, c)
}

// Flush ends when what was posted to all peers before has ended.
func (i *Iface) Flush(_ hw.FlushScope, c *hw.Completion) (hw.Status, error) {
	f := &flush{}
	for _, e := range *i.peers.Load() {
		if e != nil && e.failure.Load() == nil {
			f.add(e)
		}
	}
	return i.awaits(f, c)
}

// add has the flush wait for a peer, if there is anything to wait for.
func (f *flush) add(e *Endpoint) {
	e.q.take()
	defer e.q.give()
	if m := e.now(); !m.passed() {
		f.marks = append(f.marks, m)
	}
}

// awaits has Progress update c when all marks are passed.
func (i *Iface) awaits(f *flush, c *hw.Completion) (hw.Status, error) {
	if len(f.marks) == 0 {
		return hw.Done, nil
	}
	i.flushes.Add(f, c)
	return hw.InProgress, nil
}

// Passed reports whether all marks are.
func (f *flush) Passed() bool {
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

// Err is nil, or why the peer has gone that the flush is for.
func (f *flush) Err() error {
	if f.only != nil && f.only.Err() != nil {
		return f.only.gone()
	}
	return nil
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

// passFence reports whether posts may go on behind a Fence. The caller has the queue's lock.
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
