package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Reads and writes that are too short to be cut between two processors (rma_share.go) are delegated whole: while an
// application posts some ahead of what it reads from its completion queue, every other one is left to the target, whose
// processor copies it while the initiator's copies the next. A delegated operation is a round of one chunk that the
// initiator does not take at once. The initiator reclaims it if the target does not take it: when the application has
// read all completions, and so waits for this one, or after delegatePatience polls.
//
// Two processors that write to the same lines are slower than one alone. So an operation is delegated only if the one
// before it was of other memory.

const (
	// delegatePatience is how often an initiator finds a delegated operation not taken
	// before it reclaims it.
	delegatePatience = 16
	// delegateRest is how many copies the data plane makes without asking when one could
	// not be delegated (hot.EP.DelegateRest).
	delegateRest = 64
)

// delegateMin is the shortest operation, in bytes, about which the data plane asks the
// runtime before it copies (dataplane.RMA); 0: none.
func (e *peering) delegateMin() uint32 {
	if least := e.domain.cfg.RMADelegateSize; least <= wire.MaxShareChunk && e.txCQ != nil &&
		e.iface.DoorbellFD() < 0 && !e.orderedRMA() {
		return uint32(least)
	}
	return 0
}

// memoryOf is the memory that an operation writes: two that meet are not done by two
// processors.
func memoryOf(a *RMAArgs) span {
	if a.Read {
		return span{uint64(a.IOV[0].Base), a.IOV[0].Len}
	}
	return span{a.Remote[0].Addr, a.Remote[0].Len}
}

// span is n bytes at an address.
type span struct{ at, n uint64 }

// meets reports whether two spans have bytes in common.
func (s span) meets(o span) bool { return s.at-o.at < o.n || o.at-s.at < s.n }

// delegate offers an operation to the target. It reports false when the caller is to do it.
func (e *initiator) delegate(a *RMAArgs, l *link, p *path, total uint64, completes bool) bool {
	least := uint64(e.domain.cfg.RMADelegateSize)
	if least == 0 || total < least || total > wire.MaxShareChunk || !completes || !e.mayHelp(a, p) ||
		e.txCQ.Unread() < hot.DelegateAhead {
		return false
	}
	e.reapShares(nil)
	s, r := &e.shares, p.rounds
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	last := r.last
	r.last = memoryOf(a)
	if r.last.meets(last) {
		atomic.StoreUint32(&e.hot.DelegateRest, delegateRest)
		return false
	}
	round, ok := e.offerRound(p, 1, a.Remote[0].Addr, shareOf(a, max(total, wire.MinShareChunk)))
	if !ok {
		if r.Unseen(r.words) >= claim.MaxRounds {
			atomic.StoreUint32(&e.hot.DelegateRest, delegateRest) // the target reads no offers
		}
		return false
	}
	op := sharedOf(a, l, p, completes)
	op.round, op.needs = round, r.Delegate()
	r.delegated = e.addShared(op)
	return true
}

// taken reports whether the target has taken the operation that is delegated to it, and ends the delegation then. The
// caller has sharedOps.mu.
func (r *peerRounds) taken() bool {
	if _, left := r.words.Left(r.delegated.round, 1); left {
		r.delegated.polls++
		return false
	}
	r.delegated = nil
	r.Close()
	return true
}

// reclaim reports whether an operation is delegated no more. It reclaims and does one that should not wait for the
// target any longer: all completions are read, or delegatePatience polls have passed. lease: the caller holds the
// progress lease, without which none is reclaimed. The caller has sharedOps.mu.
func (e *peering) reclaim(op *sharedOp, lease bool) bool {
	r := op.path.rounds
	if r.taken() {
		return true
	}
	late := op.polls >= delegatePatience
	if !lease || !late && e.txCQ.Unread() != 0 {
		return false
	}
	if _, ok := r.words.TakeFront(op.round, 1); !ok {
		return r.taken()
	}
	if late {
		atomic.StoreUint32(&e.hot.DelegateRest, delegateRest)
	}
	r.delegated = nil
	r.Reclaim()
	op.ended = true
	op.again = e.copyReclaimed(op) != nil // by messages, which say why
	return true
}

// copyReclaimed does a reclaimed operation in the calling thread.
func (e *peering) copyReclaimed(op *sharedOp) error {
	a := op.args
	a.IOV = []fi.IOVec{op.local}
	return e.copyPart(&a, op.path, &op.remote, 0)
}
