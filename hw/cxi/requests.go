package cxi

import (
	"slices"

	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// requestBuffer is a buffer of messages that software is to match, each behind its packet's header.
type requestBuffer struct {
	listed bool
	next   uint32              // where the next message begins, in the order in which they came
	end    uint32              // where the last ends, once the buffer is off the list
	later  map[uint32]nic.Kept // events of messages behind next, by where they begin
}

// requests are the buffers of the request list. Messages are matched in the order in which they lie there: their events
// may come in another. Lease, but for what is marked.
type requests struct {
	x       *matchRx
	memory  pinned
	buffers []requestBuffer
	order   []int // buffers that are listed, in the order of the list
	spare   spares
	now     softMessage
}

// open maps the buffers, if software may have to match.
func (y *requests) open(x *matchRx) (err error) {
	c := &x.m.cfg
	y.x = x
	if c.Mode == MatchHardware {
		return nil
	}
	y.buffers = make([]requestBuffer, c.Requests)
	y.spare.n = c.Requests
	y.memory, err = x.m.i.d.newPinned(c.Requests*c.RequestBytes, libcxi.MapRead|libcxi.MapWrite)
	return err
}

// id is that of a buffer's list entry.
func (y *requests) id(n int) uint16 { return uint16(len(y.x.early.buffers) + 1 + n) }

// number is the buffer with the id of a list entry.
func (y *requests) number(id uint16) (n int, ok bool) {
	n = int(id) - int(y.id(0))
	return n, n >= 0 && n < len(y.buffers)
}

// listAll gives the NIC the buffers that are free. The caller has the receiver's lock.
func (y *requests) listAll() {
	c := &y.x.m.cfg
	for n := range y.buffers {
		b := &y.buffers[n]
		if b.listed {
			continue
		}
		e := nic.Entry{
			PtlTE: y.x.pte.Number(), List: wire.ListRequest, ID: y.id(n),
			Memory: y.memory.at(n*c.RequestBytes, 0), Length: uint64(c.RequestBytes), Ignore: ^uint64(0),
			MatchID: nic.AnyID(),
			MinFree: uint32(c.Eager + nic.MaxHeader), Managed: true, Put: true, NoLink: true,
			NoUnlink: true,
			// As long as the NIC matches, receives that it has refused come first.
			InOrder: !y.x.flow.core.software,
		}
		if !y.x.append(&e) {
			return
		}
		*b = requestBuffer{listed: true, later: b.later}
		y.order = append(y.order, n)
		y.spare.n--
	}
}

// list does so when there are some.
func (y *requests) list() {
	if y.spare.due() {
		y.x.relist(&y.spare, y.listAll)
	}
}

// refused takes in that the NIC had no entry for a buffer.
func (y *requests) refused(n int) {
	b := &y.buffers[n]
	if !b.listed || b.next != 0 || b.end != 0 {
		return
	}
	b.listed = false
	y.order = slices.DeleteFunc(y.order, func(k int) bool { return k == n })
	y.spare.refused()
}

// take takes in an event of a buffer.
func (y *requests) take(n int, e nic.Event) {
	switch {
	case e.Type() == wire.EventPut || performs(e):
		y.landed(n, e)
	case e.Type() == wire.EventLink && e.Code() != wire.RcOk:
		y.refused(n)
	}
}

// landed takes in that a message lies in a buffer.
func (y *requests) landed(n int, e nic.Event) {
	b := &y.buffers[n]
	at := uint32(e.Start() - y.memory.iova - uint64(n*y.x.m.cfg.RequestBytes))
	if e.Last() {
		b.end = at + e.Length()
	}
	matches := y.x.flow.core.matches()
	if matches && y.order[0] == n && b.next == at {
		y.match(n, e)
		y.settle()
		return
	}
	if b.later == nil {
		b.later = map[uint32]nic.Kept{}
	}
	b.later[at] = e.Keep()
	if !matches { // a NIC that still matches has not had a buffer for it
		y.x.lock.take()
		y.x.flow.stop(true, true)
		y.x.lock.give()
	}
}

// settle matches messages that lie behind those that were, and finds out which buffers are free.
func (y *requests) settle() {
	for len(y.order) > 0 && y.x.flow.core.matches() {
		n := y.order[0]
		b := &y.buffers[n]
		if k, ok := b.later[b.next]; ok {
			delete(b.later, b.next)
			y.match(n, k.Event())
			continue
		}
		if b.end == 0 || b.next != b.end {
			return
		}
		b.listed = false
		y.order = y.order[1:]
		y.spare.n++
	}
}

// match finds the receive of a message, or holds it for one that comes later.
func (y *requests) match(n int, e nic.Event) {
	x, b := y.x, &y.buffers[n]
	at := uint64(n*x.m.cfg.RequestBytes) + uint64(b.next)
	b.next += e.Length()
	if e.Code() != wire.RcOk {
		x.m.i.logf("a message was not written: %s", codeText(e.Code()))
		return
	}
	header, offset, ok := 0, uint64(0), false
	if all := uint64(len(y.memory.memory)); at+uint64(e.Length()) <= all {
		y.now.payload = y.memory.memory[at : at+uint64(e.Length())]
		header, offset, ok = nic.Header(y.now.payload)
	}
	if !ok {
		x.refuse("a message of %d bytes without the header of a packet", e.Length())
		return
	}
	s := &y.now
	s.ev, s.payload, s.ready = e.Keep(), s.payload[header:], true
	s.source = offset + uint64(len(s.payload))
	x.lock.take()
	given := x.soft.arrive(s)
	if !given {
		kept := *s
		x.soft.store(&kept, s.payload)
		x.soft.keep(&kept)
	}
	x.lock.give()
	if given {
		x.soft.deliver() // the buffer is not given back before
	}
}
