package provider

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/internal/coll"
	"github.com/weft-fabric/weft/provider/names"
)

// Collective operations are package coll's. What applications name of them:
type (
	// Group is an endpoint's part in a group of collective operations: what fi_join_collective returns.
	Group = coll.Group
	// CollectiveArgs describes one collective operation.
	CollectiveArgs = coll.CollectiveArgs
	// AllToAllVArgs describes an all-to-all in which each two members exchange as much as they have for each other.
	AllToAllVArgs = coll.AllToAllVArgs
	// AllToAllVRequest is an all-to-all of parts that is begun again and again, made by [Endpoint.AllToAllVInit].
	AllToAllVRequest = coll.AllToAllVRequest
)

// QueryCollective says what a kind of operation can do (fi_query_collective):
// the most elements of a call, by its way of counting (0 for a barrier), the
// size of one, and the most members. Errors: fi.EOPNOTSUPP.
func QueryCollective(k collective.Kind, d fi.Datatype, op fi.Op) (count, size, members uint64, err error) {
	return coll.QueryCollective(k, d, op)
}

// collectives are the collective operations of an endpoint of any kind.
type collectives struct {
	coll *coll.Groups // nil: there are none; immutable from Enable on
}

// openCollectives prepares an endpoint for collective operations if it is to have them.
func (e *leasedEP) openCollectives() {
	if e.ep.base.info.Caps&fi.Collective != 0 && e.ep.base.scalable == nil {
		e.ep.coll, e.collective = coll.New(collAny{collBinder{&e.ep.base.binder}, &e.ep}, collHolder{leasedHost{e}},
			coll.Settings{Config: e.ep.base.domain.cfg, DeviceMemory: e.ep.base.domain.hmem()})
	}
}

// joinFlags are the flags of a join: both directions are what a group has.
const joinFlags = fi.Collective | fi.Send | fi.Recv

// Join begins to join the group of a set's members. addr is the set's address,
// fi.AddrNotAvail, or the address of a group that this endpoint is in, with
// which joins of equal sets are distinguished. [Group.Notify] notifies the others;
// the event comes then. Errors: fi.ENOSYS without the capability or on a
// context of a scalable endpoint, fi.EOPBADSTATE before Enable, fi.ENOEQ
// without an event queue, fi.EBADFLAGS for flags other than fi.Collective and
// both of fi.Send and fi.Recv, fi.EINVAL for an address that is neither, for
// a set of another address vector, for one that this endpoint is not in, that
// has an endpoint twice or addresses that were removed, and fi.ENOSPC.
func (e *Endpoint) Join(addr fi.Addr, set *AVSet, flags uint64, context uint64) (*Group, error) {
	return join(&e.base.binder, e.coll, addr, set, flags, context)
}

// Join is as [Endpoint.Join].
func (e *MatchedEndpoint) Join(addr fi.Addr, set *AVSet, flags uint64, context uint64) (*Group, error) {
	return join(&e.binder, e.coll, addr, set, flags, context)
}

// join has an endpoint join the group of a set's members.
func join(e *binder, groups *coll.Groups, addr fi.Addr, set *AVSet, flags uint64, context uint64) (*Group, error) {
	bad := func(err fi.Errno, format string, args ...any) error {
		return log.Reject(log.EPData, err, "join: "+format, args...)
	}
	events := e.bound.eq.Load()
	switch {
	case groups == nil && e.state.Load() == stateCreated && e.info.Caps&fi.Collective != 0 && e.scalable == nil:
		return nil, fi.EOPBADSTATE
	case groups == nil:
		return nil, bad(fi.ENOSYS, "the endpoint has no collective operations")
	case e.state.Load() != stateEnabled:
		return nil, fi.EOPBADSTATE
	case flags&^joinFlags != 0 || flags&(fi.Send|fi.Recv) != 0 && flags&(fi.Send|fi.Recv) != fi.Send|fi.Recv:
		return nil, bad(fi.EBADFLAGS, "flags %#x", flags)
	case events == nil:
		return nil, bad(fi.ENOEQ, "the endpoint has no event queue")
	case set == nil || !set.Of(e.bound.av):
		return nil, bad(fi.EINVAL, "not a set of the endpoint's address vector")
	}
	return groups.Join(addr, set.Addr(), set.Members(), events, context)
}

// Collective posts one collective operation. It returns nil when the operation
// was posted, and fi.EAGAIN when as many as possible are under way and the
// caller may try again after progress. Other errors: fi.EOPBADSTATE (not
// enabled, or the group is not joined yet), fi.EBADFLAGS, fi.EOPNOTSUPP (a
// datatype or operation that the kind does not have, device memory), fi.EINVAL (not a group's
// address, a root that is no member, no buffer), fi.EMSGSIZE, fi.ENOMEM, and why
// the join failed. What goes wrong later is an error completion: fi.ECONNRESET
// when a member is gone, fi.ETRUNC and fi.EINVAL when members do not agree on
// lengths or on the operation.
func (c *collectives) Collective(a *CollectiveArgs) error {
	if c.coll == nil {
		return fi.EOPBADSTATE
	}
	return c.coll.Collective(a)
}

// AllToAllV posts an all-to-all of parts of different lengths. It returns nil when the
// operation was posted, and fi.EAGAIN when as many as possible are under way. Other
// errors: fi.EOPBADSTATE (not enabled, or the group is not joined yet), fi.EBADFLAGS,
// fi.EOPNOTSUPP (device memory), fi.EDOMAIN (a counter of another domain), fi.EINVAL (not a
// group's address, a counter of bytes, arrays that are not as long as the group has members,
// elements of 0 bytes, no buffer, or one that ends behind the address space), fi.EMSGSIZE
// (more than 2^40 bytes) and fi.ENOMEM. What goes wrong later is an error completion, at the
// member that finds it and at those that have not completed yet: fi.ECONNRESET when a member
// is gone, fi.ETRUNC when two do not agree on a count, fi.EINVAL when one has called another
// operation.
func (c *collectives) AllToAllV(a *AllToAllVArgs) error {
	if c.coll == nil {
		return fi.EOPBADSTATE
	}
	return c.coll.AllToAllV(a)
}

// AllToAllVInit prepares an all-to-all that [AllToAllVRequest.Start] begins any number of
// times. The arrays are the caller's again when it returns; the buffers belong to each
// operation from its start to its completion, and must be mapped until the request is freed. Nothing
// is sent. Errors are those of [Endpoint.AllToAllV] but fi.EAGAIN.
func (c *collectives) AllToAllVInit(a *AllToAllVArgs) (*AllToAllVRequest, error) {
	if c.coll == nil {
		return nil, fi.EOPBADSTATE
	}
	return c.coll.AllToAllVInit(a)
}

// Members returns how many members a group has that the endpoint is in. Errors:
// fi.EOPBADSTATE, fi.EINVAL if there is no such group.
func (c *collectives) Members(group fi.Addr) (int, error) {
	g, err := c.GroupOf(group)
	if err != nil {
		return 0, err
	}
	return g.Size(), nil
}

// GroupOf returns the group of an address. Errors: fi.EOPBADSTATE on an endpoint without
// collective operations, fi.EINVAL if there is no such group.
func (c *collectives) GroupOf(group fi.Addr) (*Group, error) {
	if c.coll == nil {
		return nil, fi.EOPBADSTATE
	}
	return c.coll.Find(group)
}

// copiesCollectives reports whether chunks of the endpoint's all-to-alls go as puts or gets where they can.
func (e *attributes) copiesCollectives() bool {
	return e.info.Caps&fi.Collective != 0 && coll.Copies(e.domain.cfg)
}

// collBinder is an endpoint of any kind as its collective operations have it in any thread.
type collBinder struct{ *binder }

func (h collBinder) Enabled() bool               { return h.state.Load() == stateEnabled }
func (h collBinder) Closed() bool                { return h.state.Load() == stateClosed }
func (h collBinder) Acquire() error              { return h.refs.Acquire() }
func (h collBinder) Release()                    { h.refs.Release() }
func (h collBinder) Completes(flags uint64) bool { return h.bound.txCompletes(0, flags) }

// CountsAt has readers of a counter of the domain make progress of the endpoint.
func (h collBinder) CountsAt(c *cq.Counter) error {
	if !h.domain.queues.Has(c) {
		return fi.EDOMAIN
	}
	return h.domain.drives.Drive(c)
}

// collAny is an endpoint as its collective operations have it in any thread.
type collAny struct {
	collBinder
	ep *Endpoint
}

func (h collAny) Progress() { h.ep.Progress() }

// Member finds what an address leads to: nil for the endpoint itself.
func (h collAny) Member(addr fi.Addr) (names.Name, coll.Peer, error) {
	n, ok := h.ep.base.bound.av.Name(addr)
	if !ok {
		return n, nil, refuse(log.EPCtrl, fi.EINVAL, "address %d is not in the address vector any more", addr)
	}
	if h.ep.isSelf(n) {
		return n, nil, nil
	}
	l, err := h.ep.base.linkOf(addr)
	if err != nil {
		return n, nil, err
	}
	return n, member{&h.ep.base, l}, nil
}

// Notify has progress start what was posted, and makes progress once.
func (h collAny) Notify() {
	h.ep.base.rx.notifyPoll()
	h.ep.base.rx.ring()
	h.ep.base.rx.advance()
}

// WithLease calls f with the progress lease.
func (h collAny) WithLease(f func(*coll.Protocol)) {
	r := h.ep.base.rx.acquire()
	f(h.ep.leased.Of(r).collective)
	r.publish()
	r.give()
}

// collHolder is an endpoint as its collective operations have it with the progress lease.
type collHolder struct{ leasedHost }

func (h collHolder) Now() congestion.Time { return h.e.ep.base.now() }
func (h collHolder) Name() names.Name     { return h.e.ep.base.name }
func (h collHolder) Stats() coll.Counters { return h.e.ep.base.stats }
func (h collHolder) Closed() bool         { return h.e.ep.base.state.Load() == stateClosed }
func (h collHolder) TransportOf(s hw.Source) *coll.Transport {
	p, _ := h.e.ep.base.links.Transports().Of(s)
	return &p.Coll
}

// IsFrom reports whether a source is a peer.
func (h collHolder) IsFrom(src hw.Source, p coll.Peer) bool { return h.Owns(src, p.Number()) }

// Transports are the endpoint's, in its order.
func (h collHolder) Transports() (list []*coll.Transport) {
	for _, p := range h.e.ep.base.links.Transports() {
		list = append(list, &p.Coll)
	}
	return list
}

// Post sends a message with its payload.
func (h collHolder) Post(p coll.Path, id hw.AMID, header uint64, head, data []byte) error {
	return h.e.ep.base.sends.SendBytes(&p.(*path).Path, id, header, head, data, h.e.ep.base.sends.Progress())
}

// Send sends a message without payload, now or when there is room.
func (h collHolder) Send(to coll.Peer, id hw.AMID, header uint64, head []byte) {
	h.e.rx.send(h.e, to.(member).link, id, header, head)
}

// Answer is Send to the peer behind a source.
func (h collHolder) Answer(src hw.Source, id hw.AMID, header uint64, head []byte) {
	h.e.rx.answer(h.e, src, h.e.senderOf(src), id, header, head)
}

// Hold keeps a payload, and accounts for a message, as one that is unexpected.
func (h collHolder) Hold(payload []byte, cost int) (addr uint64, err error) {
	if len(payload) != 0 {
		if addr, err = h.e.rx.matching.Pool.Get(len(payload)); err != nil {
			return 0, err
		}
		copy(mem.Bytes(addr, uint64(len(payload))), payload)
	}
	h.e.rx.matching.Hold(cost, cost)
	return addr, nil
}

// Unhold gives the memory back.
func (h collHolder) Unhold(addr uint64, n, cost int) {
	if addr != 0 {
		h.e.rx.matching.Pool.Put(addr, n)
	}
	h.e.rx.matching.Unhold(cost, cost)
}

// Complete ends an operation at the queue of transmits and at the counter of writes.
func (h collHolder) Complete(context uint64, completes bool, status fi.Errno) {
	e := &h.e.ep.base
	coll.Complete(e.bound.txCQ, e.bound.writeCntr.Load(), e.stats, context, completes, status)
}

// member is a peer of a group: its link, at the endpoint.
type member struct {
	e *initiator
	*link
}

// Number is the link's.
func (m member) Number() uint32 { return m.Index }

// Connect returns the link's path, connecting if need be.
func (m member) Connect() (coll.Path, error) {
	p, err := m.e.links.Connect(m.link)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// Ready returns the link's path if it works.
func (m member) Ready() (coll.Path, bool) {
	p, ok := m.link.Ready()
	if !ok {
		return nil, false
	}
	return p, true
}

// isSelf reports whether a name leads to this endpoint.
func (e *Endpoint) isSelf(n names.Name) bool {
	if n == e.base.name {
		return true
	}
	every := e.socket.Inet && n.Family == names.AFInet || e.socket.Inet6 && n.Family == names.AFInet6
	return every && n.Port == e.base.name.Port && e.base.domain.local.Has(n)
}
