package coll

import (
	"math/bits"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/provider/atomics"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/internal/region"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// CollectiveArgs describes one collective operation.
type CollectiveArgs struct {
	Kind     collective.Kind
	Buf      uintptr // what is given; of a broadcast the data, at every member
	Result   uintptr // what is got, not used by a broadcast
	Count    uint64  // elements, as [collective.Call] counts them
	Datatype fi.Datatype
	Op       fi.Op   // of a kind that reduces
	Group    fi.Addr // [Group.Addr]
	Root     fi.Addr // of a kind that has one: a member's address
	Flags    uint64
	Context  uint64
	Descs    [2]uint64 // of Buf and Result, which are not in device memory
}

// collectiveFlags are the flags that a collective operation may carry. It
// completes when the caller's buffers may be used again and have the result.
const collectiveFlags = fi.Completion | fi.More | fi.InjectComplete | fi.TransmitComplete | fi.Priority

// Collective posts one collective operation, as provider.Endpoint.Collective says.
func (c *Groups) Collective(a *CollectiveArgs) error {
	if !c.host.Enabled() {
		return fi.EOPBADSTATE
	}
	call, err := c.checkCollective(a)
	if err != nil {
		return err
	}
	if err := c.post(a, call); err != nil {
		return err
	}
	c.host.Notify()
	return nil
}

// checkCollective checks what does not depend on the group.
func (c *Groups) checkCollective(a *CollectiveArgs) (call collective.Call, err error) {
	call = collective.Call{Kind: a.Kind, Count: a.Count, Elem: uint64(a.Datatype.Size())}
	if err := c.checkForm(a.Descs, a.Flags); err != nil {
		return call, err
	}
	switch {
	case a.Kind == collective.Barrier:
		return collective.Call{}, nil
	case a.Kind >= collective.Kinds || !collectiveValid(a.Kind, a.Datatype, a.Op):
		return call, log.Reject(log.EPData, fi.EOPNOTSUPP, "collective: kind %d has no operation %d on datatype %d",
			a.Kind, a.Op, a.Datatype)
	}
	return call, nil
}

// checkForm checks what all collective operations have.
func (c *Groups) checkForm(descs [2]uint64, flags uint64) error {
	switch {
	case c.deviceMemory && (descs[0]|descs[1])&region.DescSpecial != 0:
		return log.Reject(log.EPData, fi.EOPNOTSUPP, "collective: device memory")
	case flags&^collectiveFlags != 0:
		return log.Reject(log.EPData, fi.EBADFLAGS, "collective: flags %#x are not for it", flags&^collectiveFlags)
	}
	return nil
}

// collectiveValid reports whether a kind has an operation on a datatype. Kinds
// that only move data take any operation.
func collectiveValid(k collective.Kind, d fi.Datatype, op fi.Op) bool {
	if k.Reduces() {
		return atomics.Combines(d, op)
	}
	return k == collective.Barrier || d.Size() != 0
}

// QueryCollective says what a kind of operation can do (fi_query_collective):
// the most elements of a call, by its way of counting (0 for a barrier), the
// size of one, and the most members. Errors: fi.EOPNOTSUPP.
func QueryCollective(k collective.Kind, d fi.Datatype, op fi.Op) (count, size, members uint64, err error) {
	if k >= collective.Kinds || !collectiveValid(k, d, op) {
		return 0, 0, 0, fi.EOPNOTSUPP
	}
	if k == collective.Barrier {
		return 0, 0, wire.MaxMembers, nil
	}
	return wire.MaxMessage / uint64(d.Size()), uint64(d.Size()), wire.MaxMembers, nil
}

// post completes the call, and leaves an operation to progress. Errors as of
// Collective.
func (c *Groups) post(a *CollectiveArgs, call collective.Call) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	g, err := c.complete(a, &call)
	if err != nil {
		return err
	}
	if call.Kind == collective.AllToAll && g.ways.ordered(call.Count*call.Elem) {
		return c.postOrdered(g, a, &call)
	}
	p := g.plans.get(&call)
	o, err := c.take(p)
	if err != nil {
		return err
	}
	in, out := call.Lengths()
	result := a.Result
	if call.Kind == collective.Broadcast {
		result = a.Buf
	}
	var fold func(dst, x, y []byte)
	if call.Kind.Reduces() {
		fold = o.combine(a.Datatype, a.Op)
	}
	o.run.Start(p, viewOf(a.Buf, in), viewOf(result, out), o.scratch, fold)
	c.enqueue(g, o, call.Kind, a.Flags, a.Context)
	return nil
}

// postOrdered leaves an all-to-all of long slices to an engine. Errors as of Collective.
func (c *Groups) postOrdered(g *Group, a *CollectiveArgs, call *collective.Call) error {
	slice, n := call.Count*call.Elem, len(g.members)
	x, err := g.exchanger()
	if err != nil {
		return err
	}
	x.layOut(g, func(r int) (in, out collective.Piece) {
		in = collective.Piece{Off: uint64(r) * slice, Len: slice}
		return in, in
	})
	o, err := c.take(&collective.Plan{})
	if err != nil {
		g.engines.put(x)
		return err
	}
	x.given, x.got = viewOf(a.Buf, slice*uint64(n)), viewOf(a.Result, slice*uint64(n))
	o.exchange = x
	c.enqueue(g, o, call.Kind, a.Flags, a.Context)
	return nil
}

// take takes an operation from the free ones, with the scratch memory of a plan. The
// caller has c.mu.
func (c *Groups) take(p *collective.Plan) (*collOp, error) {
	o := c.free
	if o == nil {
		o = &collOp{}
	}
	if o.reserve(p.Scratch) != nil {
		return nil, fi.ENOMEM
	}
	if o == c.free {
		c.free = o.next
	}
	return o, nil
}

// enqueue leaves an operation whose run was started to progress. The caller has c.mu.
func (c *Groups) enqueue(g *Group, o *collOp, kind collective.Kind, flags, context uint64) {
	o.next, o.group, o.kind, o.seq, o.context, o.status = nil, g, kind, g.runs.next, context, fi.Success
	o.refused = fi.Success
	o.completes = c.host.Completes(flags)
	g.runs.next++
	c.outstanding++
	c.posted = append(c.posted, o)
	c.queued.Store(int32(len(c.posted)))
}

// ready returns the group of an address for one operation more. The caller has c.mu.
func (c *Groups) ready(addr fi.Addr) (*Group, error) {
	g, err := c.joined(addr)
	if err == nil && c.outstanding >= maxCollectives {
		return nil, fi.EAGAIN
	}
	return g, err
}

// joined returns the group of an address. The caller has c.mu.
func (c *Groups) joined(addr fi.Addr) (*Group, error) {
	g := c.find(addr)
	if g == nil {
		return nil, log.Reject(log.EPData, fi.EINVAL, "collective: %#x is not a group of the endpoint", uint64(addr))
	}
	if g.state.Load() != groupJoined {
		return nil, log.Reject(log.EPData, fi.EOPBADSTATE, "collective: group %#x is not joined", uint64(addr))
	}
	return g, nil
}

// complete adds to the call what the group knows, and checks it.
func (c *Groups) complete(a *CollectiveArgs, call *collective.Call) (*Group, error) {
	g, err := c.ready(a.Group)
	if err != nil {
		return nil, err
	}
	call.Rank, call.Size = g.rank, len(g.members)
	if call.Kind.Rooted() {
		root, ok := g.ranks[a.Root]
		if !ok {
			return nil, log.Reject(log.EPData, fi.EINVAL, "collective: root %#x is not a member", uint64(a.Root))
		}
		call.Root = root
	}
	if high, all := bits.Mul64(call.Count, call.Elem*uint64(call.Size)); high != 0 || all > wire.MaxMessage {
		return nil, log.Reject(log.EPData, fi.EMSGSIZE,
			"collective: %d elements of %d bytes among %d members, at most %d bytes",
			call.Count, call.Elem, call.Size, uint64(wire.MaxMessage))
	}
	in, out := call.Lengths()
	buf, result := a.Buf, a.Result
	if call.Kind == collective.Broadcast {
		result = buf
	}
	if in != 0 && buf == 0 || out != 0 && result == 0 {
		return nil, log.Reject(log.EPData, fi.EINVAL,
			"collective: no buffer for %d bytes to give or %d to get", in, out)
	}
	return g, nil
}

// viewOf views a caller's buffer, which may be at address 0 if it is empty.
func viewOf(addr uintptr, n uint64) []byte {
	if n == 0 {
		return nil
	}
	return mem.Bytes(uint64(addr), n)
}

// combine returns the function for an operation, the last one again if it is
// the same.
func (o *collOp) combine(d fi.Datatype, op fi.Op) func(dst, a, b []byte) {
	if o.fold == nil || o.datatype != d || o.op != op {
		o.fold, o.datatype, o.op = atomics.Combine(d, op), d, op
	}
	return o.fold
}

// keepScratch is how much scratch memory an operation keeps for the next one
// that uses its place, bytes.
const keepScratch = 1 << 20

// reserve provides n bytes of scratch memory.
func (o *collOp) reserve(n uint64) error {
	if n <= uint64(cap(o.scratch)) {
		o.scratch = o.scratch[:n]
		return nil
	}
	b, err := mem.Map(int(n), 0)
	if err != nil {
		return err
	}
	o.drop()
	o.mapped, o.scratch = b, b[:n]
	return nil
}

// drop gives the scratch memory back.
func (o *collOp) drop() {
	if o.mapped != nil {
		_ = mem.Unmap(o.mapped)
	}
	o.mapped, o.scratch = nil, nil
}

// recycle takes back an operation that has ended.
func (c *Groups) recycle(o *collOp) {
	if len(o.mapped) > keepScratch {
		o.drop()
	}
	o.run = collective.Run{}
	c.mu.Lock()
	o.group = nil
	o.next, c.free = c.free, o
	c.outstanding--
	c.mu.Unlock()
}

// dropPosted ends the operations of a group that have not begun.
func (c *Protocol) dropPosted(g *Group) {
	c.mu.Lock()
	var list []*collOp
	c.posted.Step(func(o **collOp) bool {
		if (*o).group != g {
			return false
		}
		list = append(list, *o)
		return true
	})
	c.queued.Store(int32(len(c.posted)))
	c.mu.Unlock()
	for _, o := range list {
		o.status = fi.ECANCELED
		c.end(o)
	}
}
