package verbs

import (
	"errors"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/hw/verbs/internal/transport"
)

// Flush and fence. Each connection of a peer completes its operations in order, so a flush takes down up to where each
// queue is posted and ends when all have got there; a fence orders what is posted over one connection behind the other.

// mark is where a flush must get: position end of a queue.
type mark struct {
	q   *queue
	end uint64
}

// flush is a Flush under way. It implements what hw.Pending asks of one.
type flush struct {
	marks []mark
	only  *Endpoint // of this endpoint, nil: of all
}

// Flush ends when what was posted to the peer before has ended, for hw.FlushRemote and hw.FlushMemory when the peer's
// memory has it. hw.FlushMemory does not wait for messages.
// Done, or InProgress and c is updated by Progress. Errors: hw.ErrPeerDead; hw.ErrNoResource, and nothing has happened.
func (e *Endpoint) Flush(scope hw.FlushScope, c *hw.Completion) (hw.Status, error) {
	if err := e.Err(); err != nil {
		return hw.Done, e.gone()
	}
	marks, err := e.marks(nil, scope)
	if err != nil {
		return hw.Done, err
	}
	return e.i.awaits(&flush{marks, e}, c)
}

// Flush is Endpoint.Flush for all peers. A peer that is gone does not fail it.
func (i *Iface) Flush(scope hw.FlushScope, c *hw.Completion) (hw.Status, error) {
	var marks []mark
	for _, e := range *i.peers.Load() {
		if e == nil || e.failure.Load() != nil {
			continue
		}
		var err error
		if marks, err = e.marks(marks, scope); err != nil {
			return hw.Done, err
		}
	}
	return i.awaits(&flush{marks, nil}, c)
}

// marks appends the positions up to which the peer's queues must have ended. A
// device acknowledges a write before the peer's memory has it; so unless the flush is local
// a read of 8 bytes is posted behind it: its answer comes after the write.
func (e *Endpoint) marks(to []mark, scope hw.FlushScope) ([]mark, error) {
	q := e.mem.started()
	if q != nil && !e.settled(q) && scope != hw.FlushLocal {
		pos, ok := q.Claim(0)
		if !ok {
			return to, e.full()
		}
		op := q.op(pos)
		op.Opcode, op.Flags, op.Pieces = ibv.OpRead, 0, 1
		op.RemoteAddr, op.RKey = e.mem.scratchAddr, e.mem.scratchKey
		op.SGE[0] = q.slotSGE(pos, 8)
		q.entry(pos).kind = entryControl
		q.signal(pos)
		e.mem.flushed.Store(pos + 1)
		q.publish(pos)
	}
	if q != nil && !q.quiet() {
		to = append(to, mark{q, q.End()})
	}
	if !e.msg.quiet() && scope != hw.FlushMemory {
		to = append(to, mark{&e.msg, e.msg.End()})
	}
	return to, nil
}

// settled reports whether the last operation of the memory queue was a read for
// a flush, so that nothing has been written since.
func (e *Endpoint) settled(q *queue) bool { return e.mem.flushed.Load() == q.End() }

// awaits has Progress update c when all marks are passed.
func (i *Iface) awaits(f *flush, c *hw.Completion) (hw.Status, error) {
	if len(f.marks) == 0 {
		return hw.Done, nil
	}
	i.flushes.Add(f, c)
	i.wantSignals()
	return hw.InProgress, nil
}

// Passed reports whether all marks have ended.
func (f *flush) Passed() bool {
	for _, m := range f.marks {
		if m.q.Head.Load() < m.end {
			return false
		}
	}
	return true
}

// Err is nil, or why the only peer of the flush is gone.
func (f *flush) Err() error {
	if f.only != nil && f.only.Err() != nil {
		return f.only.gone()
	}
	return nil
}

// Fence makes operations posted later be performed after those posted before.
// Each connection keeps its own order but for reads and atomics, which the
// device ends first if the next operation has its fence flag; an operation over
// one connection gives ErrNoResource until what came before the fence over the other
// has ended.
func (e *Endpoint) Fence() error {
	if err := e.Err(); err != nil {
		return e.gone()
	}
	if q := e.mem.started(); q != nil {
		q.fence.Store(true)
		e.msgFence.raise(q.End())
		e.c.Blocked.Or(transport.PeerFenced) // after it: usable reads them in the other order
	}
	e.mem.fence.raise(e.msg.End())
	return nil
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

// barrier is a position of one connection that must have ended before
// operations over the other are posted. Raised by Fence, read by every post;
// sequentially consistent.
type barrier struct{ at atomic.Uint64 }

// raise moves the position up to to.
func (b *barrier) raise(to uint64) {
	for {
		was := b.at.Load()
		if to <= was || b.at.CompareAndSwap(was, to) {
			return
		}
	}
}

// fenced reports whether an operation must wait for the other connection's queue.
func (e *Endpoint) fenced(other *queue, b *barrier) bool {
	at := b.at.Load()
	return at != 0 && other.Head.Load() < at
}

// takeFence is ibv.Fence if a fence was asked for since the last operation, else 0: a flag of the next one.
func (q *queue) takeFence() uint32 {
	if q.fence.Load() && q.fence.Swap(false) {
		return ibv.Fence
	}
	return 0
}
