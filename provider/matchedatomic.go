package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/matched"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/backends"
)

// Atomic operations of matched endpoints: on one element, as far as the device has them.

// matchedAtomic is what devices that match call an operation. False: they have none of this kind.
func matchedAtomic(k atomics.Kind, d fi.Datatype, op fi.Op) (hw.MatchOp, hw.MatchType, bool) {
	o, t := hw.MatchOp(op), hw.MatchType(d)
	fits := op >= 0 && int(op) == int(o) && d >= 0 && int(d) == int(t) &&
		(k == atomics.Compare) == (op >= fi.OpCSwap)
	return o, t, fits && backends.MatchAtomic(o, t, k != atomics.Base)
}

// AtomicCount is the number of elements of a datatype that one call of a kind can operate on, at endpoints of the
// domain. Errors: fi.EOPNOTSUPP when there is no such operation.
func (d *Domain) AtomicCount(k atomics.Kind, t fi.Datatype, op fi.Op) (uint64, error) {
	if d.Matches() {
		if _, _, ok := matchedAtomic(k, t, op); !ok {
			return 0, fi.EOPNOTSUPP
		}
		return 1, nil
	}
	if !atomics.Valid(k, t, op) {
		return 0, fi.EOPNOTSUPP
	}
	return uint64(AtomicCount(k, t)), nil
}

// Atomic posts an atomic operation, with fi.Trigger when a counter reaches a value. Errors as of
// matched.Endpoint.Atomic, fi.EOPBADSTATE, and fi.EOPNOTSUPP for an endpoint without the capability.
func (e *MatchedEndpoint) Atomic(a *AtomicArgs) error {
	if a.Flags&fi.Trigger != 0 {
		return e.domain.triggeredAtomic(e, a)
	}
	return e.atomic(a)
}

func (e *MatchedEndpoint) atomic(a *AtomicArgs) error {
	t, m, err := e.matchedAtomic(a)
	if err != nil {
		return err
	}
	return t.Atomic(&m)
}

// matchedAtomic is an atomic operation as package matched has it, and where it is posted. Errors as of Atomic.
func (e *MatchedEndpoint) matchedAtomic(a *AtomicArgs) (t *matched.Endpoint, m matched.Atomic, err error) {
	if t, err = e.posts(a.Flags); err != nil {
		return nil, m, err
	}
	op, kind, ok := matchedAtomic(a.Kind, a.Datatype, a.Op)
	if !ok {
		return nil, m, refuse(log.EPData, fi.EOPNOTSUPP, "atomic: no operation %d on datatype %d", a.Op, a.Datatype)
	}
	m = matched.Atomic{
		Op: op, Type: kind, Size: uint64(a.Datatype.Size()), Operand: a.Operand, Compare: a.Compare,
		Result: a.Result,
		Remote: a.Remote, Dest: a.Dest, Flags: a.Flags, Context: a.Context, Fetch: a.Kind != atomics.Base,
		Inject: a.Inject, Compares: a.Kind == atomics.Compare,
	}
	asWork(a.work, &m.Context, &m.Flags)
	return t, m, nil
}
