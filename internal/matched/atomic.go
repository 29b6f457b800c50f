package matched

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
)

// Atomic describes an atomic operation on one element of a region of a peer's. Lengths are in bytes.
type Atomic struct {
	Op       hw.MatchOp
	Type     hw.MatchType
	Size     uint64        // of an element
	Operand  []fi.IOVec    // one element; none for hw.MatchRead
	Compare  []fi.IOVec    // likewise, for operations that compare
	Result   []fi.IOVec    // likewise, if Fetch
	Remote   []fi.RMAIOVec // one
	Dest     fi.Addr
	Flags    uint64
	Context  uint64
	Fetch    bool
	Inject   bool // fi_inject_atomic: no completion
	Compares bool // the operation has a comparand
}

const (
	atomicFlags = sendFlags &^ fi.RemoteCQData
	elementMax  = 16 // bytes
)

// element is the address of the only element of a vector. Errors: fi.EINVAL.
func (a *Atomic) element(what string, iov []fi.IOVec) (uint64, error) {
	v, err := one("atomic "+what, iov)
	if err == nil && (v.Len != a.Size || v.Base == 0) {
		err = log.Reject(log.EPData, fi.EINVAL, "atomic: %s of %d bytes at %#x, not %d", what, v.Len, v.Base, a.Size)
	}
	return uint64(v.Base), err
}

// elements are the addresses of an operation's elements here, 0: it has not that one.
type elements struct{ operand, compare, result uint64 }

// elements finds them. Errors: fi.EINVAL.
func (a *Atomic) elements() (at elements, err error) {
	if a.Op != hw.MatchRead {
		if at.operand, err = a.element("operand", a.Operand); err != nil {
			return at, err
		}
	}
	if a.Compares {
		if at.compare, err = a.element("comparand", a.Compare); err != nil {
			return at, err
		}
	}
	if a.Fetch {
		at.result, err = a.element("result", a.Result)
	}
	return at, err
}

// checkAtomic judges an operation, and stores it in p, but for the values of its elements.
func (e *Endpoint) checkAtomic(a *Atomic, p *hot.Post) (at elements, err error) {
	*p = hot.Post{Dest: uint64(a.Dest), Flags: a.Flags, Context: a.Context, Kind: kindOf(false, false, a.Inject)}
	if a.Fetch {
		p.Atomic = hot.AtomicFetch
	}
	if err := e.judge(p, atomicRulesOf(a.Fetch), 0); err != nil {
		return at, err
	}
	switch {
	case e.atomics == nil || !e.atomics.AtomicValid(a.Op, a.Type, a.Fetch) || a.Size > elementMax:
		return at, log.Reject(log.EPData, fi.EOPNOTSUPP,
			"atomic: the device has no operation %d on type %d", a.Op, a.Type)
	case len(a.Remote) != 1 || a.Remote[0].Len != a.Size:
		return at, log.Reject(log.EPData, fi.EINVAL, "atomic: not one remote element of %d bytes", a.Size)
	case !e.memory.KeyValid(a.Remote[0].Key, false):
		return at, log.Reject(log.EPData, fi.EKEYREJECTED, "atomic: no region has key %#x", a.Remote[0].Key)
	}
	if at, err = a.elements(); err != nil {
		return at, err
	}
	p.Len, p.Result = a.Size, uintptr(at.result)
	return at, nil
}

// performing is an atomic operation of Len bytes at a peer.
func performing(p *hot.Post, to hw.MatchAddress) operation {
	o := operation{kind: kindAtomic, to: to, context: p.Context, flags: p.Flags,
		inject: p.Kind&hot.PostInject != 0, len: p.Len}
	if p.Atomic != hot.AtomicPlain {
		o.kind, o.buf = kindFetch, uint64(p.Result)
	}
	return o
}

// orderedAtomics are the message orders with which atomic operations keep theirs.
const orderedAtomics = fi.OrderWAW | fi.OrderAtomicRAR | fi.OrderAtomicRAW | fi.OrderAtomicWAR | fi.OrderAtomicWAW

// Atomic posts an atomic operation. What the peer's device refuses ends with an error. Errors: as Transfer's, and
// fi.EOPNOTSUPP for an operation that the device does not have on the type.
func (e *Endpoint) Atomic(a *Atomic) error {
	c := calls.Get().(*call)
	defer c.done()
	p := &c.post
	at, err := e.checkAtomic(a, p)
	if err != nil {
		return err
	}
	m := hw.MatchAtomic{Key: a.Remote[0].Key, Offset: a.Remote[0].Addr, Op: a.Op, Type: a.Type, Fetch: a.Fetch,
		Events: e.reportsToOwner(), Ordered: e.o.Order&orderedAtomics != 0,
		Delivered: a.Flags&(fi.DeliveryComplete|fi.MatchComplete) != 0, More: a.Flags&fi.More != 0}
	o := performing(p, 0)
	o.hint = c.hint
	if at.operand != 0 {
		copy(m.Operand[:], mem.Bytes(at.operand, a.Size))
	}
	if at.compare != 0 {
		copy(m.Compare[:], mem.Bytes(at.compare, a.Size))
	}
	to, err := e.address(a.Dest, c.name[:0])
	if err != nil {
		return log.Reject(log.EPData, Errno(err), "atomic at address %d: %v", a.Dest, err)
	}
	m.To, o.to = to, to
	return e.post("atomic", &o, func(context uint64) error {
		m.Context, m.Shared = context, isShared(context)
		return e.atomics.PostAtomic(&m)
	}, m.More)
}
