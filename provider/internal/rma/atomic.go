package rma

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/internal/hmem"
	"github.com/weft-fabric/weft/provider/internal/vector"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Atomic describes one atomic operation. All lengths are in bytes.
type Atomic struct {
	Kind     atomics.Kind
	Op       fi.Op
	Datatype fi.Datatype
	Operand  []fi.IOVec    // as long in all as Remote; empty for fi.OpRead
	Compare  []fi.IOVec    // likewise, for atomics.Compare
	Result   []fi.IOVec    // likewise, for atomics.Fetch and Compare
	Remote   []fi.RMAIOVec // each a whole number of elements
	Flags    uint64
	Context  uint64
	Work     uint64 // as in Operation
	Inject   bool   // fi_inject_atomic: never a completion
}

// injects reports whether the caller's memory is the caller's again when the operation is posted.
func (a *Atomic) injects() bool { return a.Inject || a.Flags&fi.Inject != 0 }

// atomicFlags are the flags that an atomic operation may carry.
const atomicFlags = writeFlags &^ fi.RemoteCQData

// AtomicCount is the number of elements of a datatype that one call of a kind can operate on, for a datatype that has a
// size.
func AtomicCount(k atomics.Kind, d fi.Datatype) int {
	n := atomics.MaxBytes / d.Size()
	if k == atomics.Compare {
		n /= 2
	}
	return n
}

// PostAtomic posts an atomic operation of total bytes, which is checked, over a path. The caller holds its link, and
// has found the operation to be in turn. Errors as of Post.
func (in *Initiator) PostAtomic(a *Atomic, l *Link, p *Path, total uint64) error {
	r := Request{
		context: a.Context, work: a.Work, total: total, link: l.Index, flags: flagIsAtomic,
		parts: uint32(len(a.Remote)), count: uint32(len(a.Result)),
		operands: uint32(len(a.Operand)), compares: uint32(len(a.Compare)),
		kind: a.Kind, op: a.Op, datatype: a.Datatype,
	}
	copy(r.iov[:], a.Result)
	copy(r.operand[:], a.Operand)
	copy(r.compare[:], a.Compare)
	copy(r.remote[:], a.Remote)
	r.left.Store(uint64(r.parts))
	if a.Kind != atomics.Base {
		r.flags |= flagIsFetch
		r.left.Store(total)
	}
	if !a.Inject && in.host.Completes(a.Work, a.Flags) {
		r.flags |= flagCompletes
	}
	if a.Flags&fi.Completion != 0 {
		r.flags |= flagAsked
	}
	return in.post(l, p, &r, a.injects())
}

// Check validates the arguments and returns the operation's length in bytes. Errors: fi.EBADFLAGS; fi.EOPNOTSUPP for an
// operation that the datatype or the kind of call does not have; fi.EINVAL for lengths that do not fit each other or
// the datatype, too many elements, and what is too long to inject; fi.EMSGSIZE.
func (a *Atomic) Check(l Limits) (uint64, error) {
	switch {
	case a.Flags&^atomicFlags != 0:
		return 0, log.Reject(log.EPData, fi.EBADFLAGS, "atomic: flags %#x are not for it", a.Flags&^atomicFlags)
	case !atomics.Valid(a.Kind, a.Datatype, a.Op):
		return 0, log.Reject(log.EPData, fi.EOPNOTSUPP,
			"atomic: there is no operation %d on datatype %d in this kind of call", a.Op, a.Datatype)
	case max(len(a.Operand), len(a.Compare), len(a.Result), len(a.Remote)) > wire.IOVLimit:
		return 0, log.Reject(log.EPData, fi.EINVAL, "atomic: more than %d elements", wire.IOVLimit)
	}
	total := uint64(0)
	size := uint64(a.Datatype.Size())
	for _, v := range a.Remote {
		if v.Len == 0 || v.Len%size != 0 || v.Len > atomics.MaxBytes {
			return 0, log.Reject(log.EPData, fi.EINVAL,
				"atomic: remote element of %d bytes for a datatype of %d", v.Len, size)
		}
		total += v.Len
	}
	if n := uint64(AtomicCount(a.Kind, a.Datatype)); total == 0 || total > n*size {
		return 0, log.Reject(log.EPData, fi.EINVAL, "atomic: %d elements, 1 to %d are possible", total/size, n)
	}
	want := func(what string, iov []fi.IOVec, n uint64) error {
		sum := uint64(0)
		for _, v := range iov {
			if hmem.Nowhere(v) || v.Len > total {
				return log.Reject(log.EPData, fi.EINVAL, "atomic: %s of %d bytes at %#x", what, v.Len, v.Base)
			}
			sum += v.Len
		}
		if sum != n {
			return log.Reject(log.EPData, fi.EINVAL, "atomic: %d bytes of %s for %d of target", sum, what, n)
		}
		hmem.Touch(iov)
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
	if total > l.Most {
		return 0, log.Reject(log.EPData, fi.EMSGSIZE, "atomic: %d bytes, at most %d", total, l.Most)
	}
	if a.injects() && operand+compare > l.Inject {
		return 0, log.Reject(log.EPData, fi.EINVAL, "inject: %d bytes, at most %d", operand+compare, l.Inject)
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
func (in *Initiator) sendAtomic(p *Path, req *Request, id uint64, part *fi.RMAIOVec, lease int) error {
	sc := &in.scratch[lease]
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
	return in.host.Send(p, wire.AMAtomic, part.Addr, h.Put(sc.head[:]), iov, n, lease)
}
