package rma

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Reads and writes that are too short to be cut between two processors (share.go) are delegated whole: while an
// application posts some ahead of what it reads from its completion queue, every other one is left to the target, whose
// processor copies it while the initiator's copies the next. A delegated operation is a round of one chunk that the
// initiator does not take at once. The initiator reclaims it if the target does not take it: when the application has
// read all completions, and so waits for this one, or after DelegatePatience polls.
//
// Two processors that write to the same lines are slower than one alone. So an operation is delegated only if the one
// before it was of other memory.

const (
	// DelegatePatience is how often an initiator finds a delegated operation not taken
	// before it reclaims it.
	DelegatePatience = 16
	// delegateRest is how many copies the data plane makes without asking when one could
	// not be delegated (hot.EP.DelegateRest).
	delegateRest = 64
)

// memoryOf is the memory that an operation writes: two that meet are not done by two
// processors.
func memoryOf(a *Operation) span {
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
func (in *Initiator) delegate(a *Operation, l *Link, p *Path, total uint64, completes bool) bool {
	least := uint64(in.cfg.RMADelegateSize)
	if least == 0 || total < least || total > wire.MaxShareChunk || !completes || !in.mayHelp(a, p) ||
		in.host.Unread() < hot.DelegateAhead {
		return false
	}
	in.Reap()
	s, r := &in.shares, p.rounds
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	last := r.last
	r.last = memoryOf(a)
	if r.last.meets(last) {
		atomic.StoreUint32(&in.hot.DelegateRest, delegateRest)
		return false
	}
	round, ok := in.offer(p, 1, a.Remote[0].Addr, shareOf(a, max(total, wire.MinShareChunk)))
	if !ok {
		if r.Unseen(r.words) >= claim.MaxRounds {
			atomic.StoreUint32(&in.hot.DelegateRest, delegateRest) // the target reads no offers
		}
		return false
	}
	op := sharedOf(a, l, p, completes)
	op.round, op.needs = round, r.Delegate()
	r.delegated = in.addShared(op)
	return true
}

// taken reports whether the target has taken the operation that is delegated to it, and ends the delegation then. The
// caller has shares.mu.
func (r *Rounds) taken() bool {
	if _, left := r.words.Left(r.delegated.round, 1); left {
		r.delegated.polls++
		return false
	}
	r.delegated = nil
	r.Close()
	return true
}

// reclaim reports whether an operation is delegated no more. It reclaims and does one that should not wait for the
// target any longer: all completions are read, or DelegatePatience polls have passed. lease: the caller holds the
// progress lease, without which none is reclaimed. The caller has shares.mu.
func (in *Initiator) reclaim(op *sharedOp, lease bool) bool {
	r := op.path.rounds
	if r.taken() {
		return true
	}
	late := op.polls >= DelegatePatience
	if !lease || !late && in.host.Unread() != 0 {
		return false
	}
	if _, ok := r.words.TakeFront(op.round, 1); !ok {
		return r.taken()
	}
	if late {
		atomic.StoreUint32(&in.hot.DelegateRest, delegateRest)
	}
	r.delegated = nil
	r.Reclaim()
	op.ended = true
	op.again = copyReclaimed(op) != nil // by messages, which say why
	return true
}

// copyReclaimed does a reclaimed operation in the calling thread.
func copyReclaimed(op *sharedOp) error {
	a := op.args
	a.IOV = []fi.IOVec{op.local}
	return copyPart(&a, op.path, &op.remote, 0)
}
