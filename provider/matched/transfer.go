package matched

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
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
	// Ordered has writes to a peer be performed one after the other.
	Ordered bool
	// Events says that the owner of the peer's region may have to know of the operation.
	Events bool
}

const (
	writeFlags = sendFlags
	readFlags  = fi.Completion | fi.More | fi.Fence | fi.Priority | fi.InjectComplete | fi.TransmitComplete |
		fi.DeliveryComplete
)

// checkTransfer judges a read or write, and returns its buffers.
func (e *Endpoint) checkTransfer(what string, t *Transfer) (v fi.IOVec, remote fi.RMAIOVec, err error) {
	if v, err = one(what, t.IOV); err != nil {
		return v, remote, err
	}
	allowed := writeFlags
	if t.Read {
		allowed = readFlags
	}
	inject := t.Inject || t.Flags&fi.Inject != 0
	switch {
	case e.memory == nil:
		return v, remote, refuse(fi.EOPNOTSUPP, "%s: the device reaches no memory of peers", what)
	case len(t.Remote) != 1:
		return v, remote, refuse(fi.EINVAL, "%s: %d remote elements, not 1", what, len(t.Remote))
	case t.Flags&^(allowed|workFlag) != 0:
		return v, remote, refuse(fi.EBADFLAGS, "%s: flags %#x are not for it", what, t.Flags&^allowed)
	case v.Len > e.attr.MaxMessage || inject && v.Len > uint64(e.attr.MaxInject):
		return v, remote, refuse(fi.EMSGSIZE, "%s: %d bytes, at most %d, injected %d", what, v.Len,
			e.attr.MaxMessage, e.attr.MaxInject)
	case t.Remote[0].Len != v.Len:
		return v, remote, refuse(fi.EINVAL, "%s: %d bytes here, %d there", what, v.Len, t.Remote[0].Len)
	case !e.memory.KeyValid(t.Remote[0].Key, false):
		return v, remote, refuse(fi.EKEYREJECTED, "%s: no region has key %#x", what, t.Remote[0].Key)
	case t.data() && !e.memory.KeyValid(t.Remote[0].Key, true):
		return v, remote, refuse(fi.EINVAL, "%s with data: no region with key %#x takes it", what, t.Remote[0].Key)
	}
	return v, t.Remote[0], nil
}

// what names the operation in the log.
func (t *Transfer) what() string {
	if t.Read {
		return "read"
	}
	return "write"
}

// data reports whether data goes with a write.
func (t *Transfer) data() bool { return t.HasData || t.Flags&fi.RemoteCQData != 0 }

// Transfer posts a read or write. What the peer's device refuses (a key that no region has, a range or a right that the
// region has not) ends with an error. Errors: fi.EAGAIN (nothing happened, the caller may try again after progress),
// fi.EBADFLAGS, fi.EINVAL, fi.EMSGSIZE (also for more bytes than can be injected), fi.EKEYREJECTED for a key that no
// region can have, fi.EHOSTUNREACH, fi.EOPNOTSUPP where the device has no such operations.
func (e *Endpoint) Transfer(t *Transfer) error {
	what, kind, access := t.what(), kindWrite, hw.Access(0)
	if t.Read {
		kind, access = kindRead, hw.LocalWrite
	}
	v, remote, err := e.checkTransfer(what, t)
	if err != nil {
		return err
	}
	c := calls.Get().(*call)
	defer c.done()
	to, err := e.address(t.Dest, c.name[:0])
	if err != nil {
		return refuse(Errno(err), "%s at address %d: %v", what, t.Dest, err)
	}
	o := operation{kind: kind, to: to, context: t.Context, flags: t.Flags, inject: t.Inject, len: v.Len}
	m := &c.transfer
	*m = hw.MatchTransfer{To: to, Key: remote.Key, Offset: remote.Addr, Get: t.Read, Data: t.Data,
		HasData: t.data(), Events: t.Events, Ordered: t.Ordered,
		Delivered: t.Flags&(fi.DeliveryComplete|fi.MatchComplete) != 0, More: t.Flags&fi.More != 0}
	switch {
	case v.Len == 0:
	case !t.Read && v.Len <= uint64(e.attr.MaxInject):
		m.Inject = bytesAt(uint64(v.Base), v.Len)
	default:
		if m.Local, err = e.register(what, &o, v, access); err != nil {
			return err
		}
	}
	return e.post(what, &o, func(context uint64) error {
		m.Context = context
		return e.memory.PostTransfer(m)
	}, m.More)
}
