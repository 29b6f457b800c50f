package matched

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
)

// Transfer describes one read or write of a region of a peer's.
type Transfer struct {
	IOV     []fi.IOVec    // local memory
	Remote  []fi.RMAIOVec // the peer's: one, as long as IOV
	Dest    fi.Addr
	Data    uint64
	Flags   uint64
	Context uint64
	Read    bool
	HasData bool // Data goes with the write
	Inject  bool // fi_inject_write forms: no completion
}

const (
	writeFlags = sendFlags
	readFlags  = fi.Completion | fi.More | fi.Fence | fi.Priority | fi.InjectComplete | fi.TransmitComplete |
		fi.DeliveryComplete
)

// checkTransfer judges a read or write, and stores it in p.
func (e *Endpoint) checkTransfer(t *Transfer, p *hot.Post) error {
	r := transferRules(t.Read)
	v, err := one(r.what, t.IOV)
	switch {
	case err != nil:
		return err
	case e.memory == nil:
		return log.Reject(log.EPData, fi.EOPNOTSUPP, "%s: the device reaches no memory of peers", r.what)
	case len(t.Remote) != 1:
		return log.Reject(log.EPData, fi.EINVAL, "%s: %d remote elements, not 1", r.what, len(t.Remote))
	}
	remote := &t.Remote[0]
	p.Buf, p.Len, p.Dest, p.Header, p.Key, p.Data = v.Base, v.Len, uint64(t.Dest), remote.Addr, remote.Key, t.Data
	p.Flags, p.Context, p.Kind = t.Flags, t.Context, kindOf(false, t.data(), t.Inject)
	if t.Read {
		p.Kind |= hot.PostRead
	}
	if err := e.judge(p, r, 0); err != nil {
		return err
	}
	switch {
	case remote.Len != v.Len:
		return log.Reject(log.EPData, fi.EINVAL, "%s: %d bytes here, %d there", r.what, v.Len, remote.Len)
	case !e.memory.KeyValid(remote.Key, false):
		return log.Reject(log.EPData, fi.EKEYREJECTED, "%s: no region has key %#x", r.what, remote.Key)
	case t.data() && !e.memory.KeyValid(remote.Key, true):
		return log.Reject(log.EPData, fi.EINVAL, "%s with data: no region with key %#x takes it", r.what, remote.Key)
	}
	return nil
}

// transferring is a read or write at a peer.
func transferring(p *hot.Post, to hw.MatchAddress) operation {
	o := operation{kind: kindWrite, to: to, context: p.Context, flags: p.Flags, inject: p.Kind&hot.PostInject != 0,
		len: p.Len}
	if p.Kind&hot.PostRead != 0 {
		o.kind = kindRead
	}
	return o
}

// orderedWrites are the message orders with which reads and writes of a peer's memory keep that of writes.
const orderedWrites = fi.OrderWAW | fi.OrderRMAWAW

// reportsToOwner reports whether owners of peers' regions may have to know of operations on them.
func (e *Endpoint) reportsToOwner() bool { return e.o.Caps&fi.RMAEvent != 0 }

// data reports whether data goes with a write.
func (t *Transfer) data() bool { return t.HasData || t.Flags&fi.RemoteCQData != 0 }

// Transfer posts a read or write. What the peer's device refuses (a key that no region has, a range or a right that the
// region has not) ends with an error. Errors: fi.EAGAIN (nothing happened, the caller may try again after progress),
// fi.EBADFLAGS, fi.EINVAL, fi.EMSGSIZE (also for more bytes than can be injected), fi.EKEYREJECTED for a key that no
// region can have, fi.EHOSTUNREACH, fi.EOPNOTSUPP where the device has no such operations.
func (e *Endpoint) Transfer(t *Transfer) error {
	c := calls.Get().(*call)
	defer c.done()
	p := &c.post
	if err := e.checkTransfer(t, p); err != nil {
		return err
	}
	what := transferRules(t.Read).what
	to, err := e.address(t.Dest, c.name[:0])
	if err != nil {
		return log.Reject(log.EPData, Errno(err), "%s at address %d: %v", what, t.Dest, err)
	}
	o := transferring(p, to)
	o.hint = c.hint
	m := &c.transfer
	*m = hw.MatchTransfer{To: to, Key: p.Key, Offset: p.Header, Get: t.Read, Data: t.Data,
		HasData: t.data(), Events: e.reportsToOwner(), Ordered: e.o.Order&orderedWrites != 0,
		Delivered: t.Flags&(fi.DeliveryComplete|fi.MatchComplete) != 0, More: t.Flags&fi.More != 0}
	if m.Inject, m.Local, err = e.bring(what, &o, uint64(p.Buf)); err != nil {
		return err
	}
	return e.post(what, &o, func(context uint64) error {
		m.Context, m.Shared = context, isShared(context)
		return e.memory.PostTransfer(m)
	}, m.More)
}
