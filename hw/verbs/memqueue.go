package verbs

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// States of a memoryPath.
const (
	memoryNone uint32 = iota
	memoryStarted
	memoryReady
)

// memoryPath is the connection for our one-sided operations, made by the first.
type memoryPath struct {
	// state is memoryNone, memoryStarted once queue has its memory and queue
	// pair, memoryReady once the peer has answered. Stored by the thread that starts it
	// (release) and by the service, read by any thread (acquire).
	state atomic.Uint32
	start sync.Mutex // starting only
	queue queue

	scratchAddr uint64 // what is read to find that writes have arrived; stored by the service before memoryReady
	scratchKey  uint32
	// flushed is the position after the last read of a flush. Stored by Flush.
	flushed atomic.Uint64
	fence   barrier // of the message queue
}

// started is the queue once it exists, else nil.
func (m *memoryPath) started() *queue {
	if m.state.Load() == memoryNone {
		return nil
	}
	return &m.queue
}

// memoryQueue is the queue for one-sided operations. The first call starts the
// connection; until it stands the error is hw.ErrNoResource.
func (e *Endpoint) memoryQueue() (*queue, error) {
	if err := e.usable(); err != nil {
		return nil, err
	}
	m := &e.mem
	switch m.state.Load() {
	case memoryReady:
		return &m.queue, nil
	case memoryStarted:
		return nil, hw.ErrNoResource
	}
	m.start.Lock()
	defer m.start.Unlock()
	if m.state.Load() != memoryNone {
		return nil, hw.ErrNoResource
	}
	q := &m.queue
	if q.ops == nil {
		if err := e.i.blocks.attach(e, q); err != nil {
			return nil, err
		}
		q.ID = queueID(classMemory, e.index)
		q.GatherMax = uint32(min(ibv.MaxGather, e.i.d.attr.MaxSGE))
		q.GatherReads = uint32(min(ibv.MaxGather, e.i.maxReadSGE()))
		q.reports(e.msg.cq)
	}
	m.state.Store(memoryStarted) // before the service can make it ready
	if err := e.newMemoryQP(); err != nil {
		m.state.Store(memoryNone)
		return nil, err
	}
	return nil, hw.ErrNoResource
}

// newMemoryQP gives the stopped memory queue a fresh queue pair and has the
// service connect it.
func (e *Endpoint) newMemoryQP() error {
	q := &e.mem.queue
	qp, err := e.i.makeQP(q, 0)
	if err != nil {
		return err
	}
	q.use(qp)
	e.i.svc.do(func() { e.i.svc.connectMemory(e, qp) })
	return nil
}

// memoryBroken deals with a one-sided operation that failed, the first of its request. What came behind it was not
// performed if the peer refused it, and is posted again; so are all of a request of several, each alone, so that those
// fail that are refused. If the path was lost that is unknown; then only reads may be done again, and what is
// idempotent.
func (e *Endpoint) memoryBroken(q *queue, pos uint64, reason error) int {
	q.stop()
	e.retire(q.qp)
	q.Gen++
	n := 0
	if errors.Is(reason, hw.ErrPeerDead) {
		for p := pos; p < q.Posted; p++ {
			if !q.repeatable(p) {
				q.qp = nil
				e.fail(fmt.Errorf("the path to peer %s is lost with an operation of unknown outcome: %w: %w", e,
					reason, errPath))
				return 0
			}
		}
	} else if !q.Apart(pos) {
		n = e.endOne(q, pos, q.Posted, 0, reason)
	}
	q.rewind()
	q.qp = nil
	if err := e.newMemoryQP(); err != nil {
		e.fail(e.lost(fmt.Errorf("connect to the memory of peer %s again: %w", e, err)))
	}
	e.i.notify(e) // for the queue pair that was retired
	return n
}

// repeatable reports whether an operation of which it is unknown whether it was performed may be
// performed again.
func (q *queue) repeatable(pos uint64) bool {
	kind := q.entry(pos).kind
	return q.op(pos).Opcode == ibv.OpRead || kind == entryControl || kind == entryRepeat
}

// memoryDied ends all one-sided operations.
func (e *Endpoint) memoryDied(err error) {
	q := e.mem.started()
	if q == nil {
		return
	}
	q.stop()
	if q.qp != nil {
		e.retire(q.qp)
		q.qp = nil
	}
	q.Gen++
	e.endQueue(q, err)
}

// discardMemory is memoryDied when the interface closes.
func (e *Endpoint) discardMemory(err error) error {
	q := e.mem.started()
	if q == nil {
		return nil
	}
	q.stop()
	var closed error
	if q.qp != nil {
		closed = q.qp.Close()
	}
	e.endQueue(q, err)
	return closed
}
