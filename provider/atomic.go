package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/rma"
)

// AtomicArgs describes one atomic operation. All lengths are in bytes.
type AtomicArgs struct {
	Kind     atomics.Kind
	Op       fi.Op
	Datatype fi.Datatype
	Operand  []fi.IOVec    // as long in all as Remote; empty for fi.OpRead
	Compare  []fi.IOVec    // likewise, for atomics.Compare
	Result   []fi.IOVec    // likewise, for atomics.Fetch and Compare
	Remote   []fi.RMAIOVec // each a whole number of elements
	Dest     fi.Addr
	Flags    uint64
	Context  uint64
	Inject   bool      // fi_inject_atomic: never a completion
	On       Threshold // with fi.Trigger in Flags

	work uint64 // as in SendArgs
}

// AtomicCount is the number of elements of a datatype that one call of a kind
// can operate on: fi_atomicvalid and its like. Errors: fi.EOPNOTSUPP when there
// is no such operation.
func (e *Endpoint) AtomicCount(k atomics.Kind, d fi.Datatype, op fi.Op) (uint64, error) {
	if !atomics.Valid(k, d, op) {
		return 0, fi.EOPNOTSUPP
	}
	return uint64(AtomicCount(k, d)), nil
}

// AtomicCount is the number of elements of a datatype that one call of a kind
// can operate on, on any endpoint, for a datatype that has a size.
func AtomicCount(k atomics.Kind, d fi.Datatype) int { return rma.AtomicCount(k, d) }

// Atomic posts one atomic operation. Errors are as of RMA, and fi.EOPNOTSUPP
// for an operation that the datatype or the kind of call does not have.
func (e *Endpoint) Atomic(a *AtomicArgs) error {
	if a.Flags&fi.Trigger != 0 {
		return e.base.domain.triggeredAtomic(e, a)
	}
	err := e.base.atomic(a)
	e.base.domain.work.PostReady()
	return err
}

// operation is what package rma has of the arguments.
func (a *AtomicArgs) operation() rma.Atomic {
	return rma.Atomic{
		Kind: a.Kind, Op: a.Op, Datatype: a.Datatype, Operand: a.Operand, Compare: a.Compare, Result: a.Result,
		Remote: a.Remote, Flags: a.Flags, Context: a.Context, Work: a.work, Inject: a.Inject,
	}
}

func (e *initiator) atomic(a *AtomicArgs) error {
	op := a.operation()
	total, err := e.checkAtomic(&op)
	if err != nil {
		return err
	}
	l, p, err := e.peerFor(a.Dest, a.Flags)
	if err != nil {
		return err
	}
	defer l.Release()
	if !e.inTurn(l, ordering.Update) {
		return fi.EAGAIN
	}
	return e.rmas.PostAtomic(&op, &l.Link, &p.Path, total)
}

// checkAtomic validates the arguments and returns the operation's length.
func (e *peering) checkAtomic(op *rma.Atomic) (uint64, error) {
	if e.state.Load() != stateEnabled {
		return 0, fi.EOPBADSTATE
	}
	return op.Check(rma.Limits{Most: e.size(fi.OptMaxAtomicSize), Inject: e.size(fi.OptInjectAtomicSize)})
}
