package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/ordering"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
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

const atomicFlags = sendFlags &^ (fi.MatchComplete | fi.RemoteCQData)

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
func AtomicCount(k atomics.Kind, d fi.Datatype) int {
	n := atomicBytes / d.Size()
	if k == atomics.Compare {
		n /= 2
	}
	return n
}

// atomicBytes is the most bytes of operands and comparands of one call.
const atomicBytes = atomics.MaxBytes

// Atomic posts one atomic operation. Errors are as of RMA, and fi.EOPNOTSUPP
// for an operation that the datatype or the kind of call does not have.
func (e *Endpoint) Atomic(a *AtomicArgs) error {
	if a.Flags&fi.Trigger != 0 {
		return e.domain.triggeredAtomic(e, a)
	}
	err := e.atomic(a)
	e.domain.work.PostReady()
	return err
}

func (e *initiator) atomic(a *AtomicArgs) error {
	total, err := e.checkAtomic(a)
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
	r := rmaRequest{
		context: a.Context, work: a.work, total: total, link: l.index, flags: rmaIsAtomic, parts: uint32(len(a.Remote)),
		count: uint32(len(a.Result)), operands: uint32(len(a.Operand)), compares: uint32(len(a.Compare)),
		kind: a.Kind, op: a.Op, datatype: a.Datatype,
	}
	copy(r.iov[:], a.Result)
	copy(r.operand[:], a.Operand)
	copy(r.compare[:], a.Compare)
	copy(r.remote[:], a.Remote)
	r.left.Store(uint64(r.parts))
	if a.Kind != atomics.Base {
		r.flags |= rmaIsFetch
		r.left.Store(total)
	}
	if !a.Inject && e.txCompletes(a.work, a.Flags) {
		r.flags |= rmaCompletes
	}
	if a.Flags&fi.Completion != 0 {
		r.flags |= rmaAsked
	}
	return e.postRMA(l, p, &r, a.Inject || a.Flags&fi.Inject != 0)
}

// checkAtomic validates the arguments and returns the bytes of the target.
func (e *peering) checkAtomic(a *AtomicArgs) (uint64, error) {
	switch {
	case e.state.Load() != stateEnabled:
		return 0, fi.EOPBADSTATE
	case a.Flags&^atomicFlags != 0:
		return 0, e.refuse(fi.EBADFLAGS, "atomic: flags %#x are not for it", a.Flags&^atomicFlags)
	case !atomics.Valid(a.Kind, a.Datatype, a.Op):
		return 0, e.refuse(fi.EOPNOTSUPP,
			"atomic: there is no operation %d on datatype %d in this kind of call", a.Op, a.Datatype)
	case max(len(a.Operand), len(a.Compare), len(a.Result), len(a.Remote)) > wire.IOVLimit:
		return 0, e.refuse(fi.EINVAL, "atomic: more than %d elements", wire.IOVLimit)
	}
	total := uint64(0)
	size := uint64(a.Datatype.Size())
	for _, v := range a.Remote {
		if v.Len == 0 || v.Len%size != 0 || v.Len > atomicBytes {
			return 0, e.refuse(fi.EINVAL, "atomic: remote element of %d bytes for a datatype of %d", v.Len, size)
		}
		total += v.Len
	}
	if n := uint64(AtomicCount(a.Kind, a.Datatype)); total == 0 || total > n*size {
		return 0, e.refuse(fi.EINVAL, "atomic: %d elements, 1 to %d are possible", total/size, n)
	}
	want := func(what string, iov []fi.IOVec, n uint64) error {
		sum := uint64(0)
		for _, v := range iov {
			if v.Base == 0 && v.Len != 0 || v.Len > total {
				return e.refuse(fi.EINVAL, "atomic: %s of %d bytes at %#x", what, v.Len, v.Base)
			}
			sum += v.Len
		}
		if sum != n {
			return e.refuse(fi.EINVAL, "atomic: %d bytes of %s for %d of target", sum, what, n)
		}
		return nil
	}
	operand, compare, result := total, uint64(0), uint64(0)
	if a.Op == fi.OpRead {
		operand = 0
	}
	if a.Kind != atomics.Base {
		result = total
	}
	if a.Kind == atomics.Compare {
		compare = total
	}
	if n := e.size(fi.OptMaxAtomicSize); total > n {
		return 0, e.refuse(fi.EMSGSIZE, "atomic: %d bytes, at most %d", total, n)
	}
	if n := e.size(fi.OptInjectAtomicSize); (a.Inject || a.Flags&fi.Inject != 0) && operand+compare > n {
		return 0, e.refuse(fi.EINVAL, "inject: %d bytes, at most %d", operand+compare, n)
	}
	for _, err := range []error{
		want("operands", a.Operand, operand), want("comparands", a.Compare, compare), want("results", a.Result, result),
	} {
		if err != nil {
			return 0, err
		}
	}
	return total, nil
}

// sendAtomic sends the message for one part.
func (e *initiator) sendAtomic(p *path, req *rmaRequest, id uint64, part *fi.RMAIOVec, lease int) error {
	sc := &e.scratch[lease]
	h := wire.Atomic{
		Key: part.Key, Request: id, Op: req.op, Datatype: req.datatype, Kind: req.kind,
		Ends:  req.ends(req.part, true),
		Count: uint32(part.Len) / uint32(req.datatype.Size()), At: uint32(req.done),
	}
	iov := vector.Window(sc.frag[:0], req.operand[:req.operands], req.done, part.Len)
	iov = vector.Window(iov, req.compare[:req.compares], req.done, part.Len)
	n := 0
	for _, v := range iov {
		n += int(v.Len)
	}
	return e.sendPayload(p, wire.AMAtomic, part.Addr, h.Put(sc.head[:]), iov, n, lease)
}
