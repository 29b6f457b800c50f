package provider

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
)

// Reads and writes that are too short to be cut between two processors (rma_share.go)
// are shared whole: while an application posts some ahead of what it reads from its
// completion queue, every other one is lent to the target, whose processor copies it
// while the initiator's copies the next. A lent operation is a round of one chunk that
// the initiator does not take at once. It takes it back when the target does not come:
// when the application has read all completions, so waits, and after a number of looks.
//
// Two processors that write to the same lines are slower than one alone. So an
// operation is lent only if the one before it was of other memory.

const (
	// lendPatience is how often an initiator finds that the target has not come yet,
	// before it does the operation itself.
	lendPatience = 16
	// lendRest is how many copies C makes without asking when one could not be lent.
	lendRest = 64
)

// lendMin is the shortest operation, in bytes, that C asks about before it copies
// (dataplane.Copy); 0: none.
func (e *Endpoint) lendMin() uint32 {
	if least := e.domain.cfg.RMALendSize; least <= maxShareChunk && e.txCQ != nil && e.iface.DoorbellFD() < 0 && !e.orderedRMA() {
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

// lend offers an operation to the target. It reports false when the caller is to do it.
func (e *Endpoint) lend(a *RMAArgs, l *link, p *path, total uint64, completes bool) bool {
	least := uint64(e.domain.cfg.RMALendSize)
	if least == 0 || total < least || total > maxShareChunk || !completes || !e.mayHelp(a, p) || e.txCQ.Unread() < hot.LendAhead {
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
		atomic.StoreUint32(&e.hot.LendRest, lendRest)
		return false
	}
	round, ok := e.offerRound(a, p, max(total, minShareChunk), 1)
	if !ok {
		if unseen(atomic.LoadUint64(&r.words[1]), r.offers) >= maxRounds {
			atomic.StoreUint32(&e.hot.LendRest, lendRest) // the target does not look
		}
		return false
	}
	r.count++ // unless it is taken back
	r.lent = e.addShared(a, l, p, completes)
	r.lent.round = round
	return true
}

// taken reports whether the target has taken the operation that is lent to it, and then
// it is not lent any more. The caller has sharedOps.mu.
func (r *peerRounds) taken() bool {
	if round, front, back := splitClaim(atomic.LoadUint64(&r.words[0])); round == uint64(r.lent.round) && front < back {
		r.lent.looks++
		return false
	}
	r.lent, r.open = nil, false
	return true
}

// regain reports whether an operation is lent no more. It takes it back and does it, if nobody
// should wait for the target any longer. lease: the caller holds the progress lease, without
// which none is taken back. The caller has sharedOps.mu.
func (e *Endpoint) regain(op *sharedOp, lease bool) bool {
	r := op.path.rounds
	if r.taken() {
		return true
	}
	late := op.looks >= lendPatience
	if !lease || !late && e.txCQ.Unread() != 0 {
		return false
	}
	if _, ok := takeFront(&r.words[0], uint64(op.round), 1); !ok {
		return r.taken()
	}
	if late {
		atomic.StoreUint32(&e.hot.LendRest, lendRest)
	}
	r.lent, r.open = nil, false
	r.rounds--
	r.count--
	op.ended = true
	op.again = e.copyLent(op) != nil // by messages, which tell why
	return true
}

// copyLent does an operation that was lent, in the calling thread.
func (e *Endpoint) copyLent(op *sharedOp) error {
	key, err := op.path.Endpoint.(hw.KeyDirectory).FindKey(op.remote.Key)
	if err != nil {
		return err
	}
	a := op.args
	a.IOV = []fi.IOVec{op.local}
	return e.directPart(&a, op.path, &op.remote, key, 0)
}
