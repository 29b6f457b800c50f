package verbs

import (
	"fmt"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
)

// ended deals with the completion of a posted operation and of those before it
// that were not signaled, and returns how many callers' completions were updated.
func (i *Iface) ended(d *ibv.Done) int {
	class, peer := splitID(d.ID)
	list := *i.peers.Load()
	if uint64(peer) >= uint64(len(list)) || list[peer] == nil {
		return 0
	}
	e := list[peer]
	q := e.queueOf(class)
	if q == nil {
		return 0
	}
	pos, ok := q.Position(d.ID)
	if !ok {
		return 0
	}
	if d.Status == ibv.StatusOK {
		e.c.Heard = 1
		return e.endUpTo(q, pos+1, allPosted, i.late(q, pos, d), nil)
	}
	// A queue pair works in order: what came before the failure has been done.
	pos -= uint64(q.place(pos).Joined)
	n := e.endUpTo(q, pos, allPosted, 0, nil)
	return n + e.broken(q, class, pos, d)
}

func (e *Endpoint) queueOf(class uint64) *queue {
	switch class {
	case classMessage:
		return &e.msg
	case classMemory:
		return e.mem.started()
	}
	return nil
}

// allPosted is the position up to which operations were posted when their
// completions say so.
const allPosted = ^uint64(0)

// endUpTo ends the operations before position end with err and updates their
// completions, the number of which it returns. Those before posted have a place in the
// completion queue, which is given back. The last of them ended late ago, 0: unknown.
func (e *Endpoint) endUpTo(q *queue, end, posted uint64, late time.Duration, err error) int {
	n := 0
	for pos := q.Head.Load(); pos < end; pos++ {
		n += e.endOne(q, pos, posted, late, err)
	}
	return n
}

// endOne ends the operation at the head of q.
func (e *Endpoint) endOne(q *queue, pos, posted uint64, late time.Duration, err error) int {
	en, bounce := q.entry(pos), q.place(pos).Bounce
	comp := en.comp
	en.kind, en.comp = entryPlain, nil
	if bounce >= 0 {
		e.i.pools.Put(bounce)
	}
	if pos < posted {
		q.cq.Used.Add(-1)
	}
	q.Head.Store(pos + 1) // last: now the place may be claimed
	if comp == nil {
		return 0
	}
	comp.Late = late
	comp.Update(1, err)
	return 1
}

// broken deals with an operation that failed, which has broken its queue pair.
func (e *Endpoint) broken(q *queue, class, pos uint64, d *ibv.Done) int {
	reason := statusError(d)
	e.i.logf("peer %s: operation failed: %v", e, reason)
	if class == classMemory {
		return e.memoryBroken(q, pos, reason)
	}
	e.lease.ringRefused = e.lease.ringRefused || d.Status == ibv.StatusAccess // nothing else there needs a key
	e.breakMessages()
	return 0
}

// statusError is what a completion's status means.
func statusError(d *ibv.Done) error {
	text := ibv.StatusText(d.Status)
	switch d.Status {
	case ibv.StatusAccess:
		return fmt.Errorf("verbs: %s (%d): %w", text, d.VendorErr, hw.ErrKey)
	case ibv.StatusReq, ibv.StatusRemOp, ibv.StatusProt, ibv.StatusLength:
		return fmt.Errorf("verbs: %s (%d): %w", text, d.VendorErr, hw.ErrInvalid)
	}
	return fmt.Errorf("verbs: %s (%d): %w", text, d.VendorErr, hw.ErrPeerDead)
}
