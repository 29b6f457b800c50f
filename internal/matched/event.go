package matched

import (
	"errors"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/mem"
	"github.com/weft-fabric/weft/internal/stats"
)

// Completion is what there is to report of an operation that has ended.
type Completion struct {
	Entry   hot.CQE // but for Seq
	Flags   uint64  // with which it was posted
	Bytes   uint64  // that were sent, received, read or written
	Receive bool    // it is a receive or a search
	Inject  bool    // of a send or write: it writes no completion unless it fails
}

// fill stores what an operation and its event say, but for the sender's address, and what the operation has fetched
// where that is to be. It needs nothing of the runtime.
func (c *Completion) fill(o *operation, ev *hot.MatchEvent) {
	n := &c.Entry
	n.Context, n.Flags, n.Len, n.Buf, n.Data, n.Tag = o.context, flagsOf(o), 0, 0, 0, o.tag
	n.Src = uint64(fi.AddrNotAvail)
	c.Flags, c.Bytes, c.Receive, c.Inject = o.flags, o.len, o.kind.receives(), o.inject
	if ev.Flags&hot.MatchReceive == 0 {
		if ev.Flags&hot.MatchRead != 0 && o.kind == kindFetch {
			copy(mem.Bytes(o.buf, o.len), ev.Fetched[:])
		}
		return
	}
	n.Len, n.Buf, n.Tag, c.Bytes = ev.Length, o.buf, ev.Tag, ev.Length
	if ev.Flags&hot.MatchData != 0 {
		n.Flags |= fi.RemoteCQData
		n.Data = ev.Data
	}
}

// Counted is the word of package stats that counts such operations, and behind it their bytes. It needs nothing of the
// runtime.
func (c *Completion) Counted() int {
	switch {
	case c.Receive:
		return stats.RxMatchReceived
	case c.Entry.Flags&fi.Atomic != 0:
		return stats.RxMatchAtomic
	case c.Entry.Flags&fi.Read != 0:
		return stats.RxMatchRead
	case c.Entry.Flags&fi.Write != 0:
		return stats.RxMatchWritten
	}
	return stats.RxMatchSent
}

// event takes in what has become of an operation. Lease.
func (e *Endpoint) event(ev *hw.MatchEvent) {
	switch ev.Kind {
	case hw.MatchExposed, hw.MatchWithdrawn, hw.MatchWritten:
		e.regionEvent(ev)
		return
	}
	o, ok := e.leaving(ev)
	if !ok {
		return
	}
	m := short(ev)
	e.fill(&o, &m)
	n := &e.ended
	if ev.Err != nil {
		n.Err = Errno(ev.Err)
	}
	switch ev.Kind {
	case hw.MatchReceived:
		n.received(&o, ev)
	case hw.MatchCanceled:
		n.Entry.Buf = o.buf
		if o.flags&fi.MultiRecv != 0 {
			n.Entry.Flags |= fi.MultiRecv
		}
	case hw.MatchFound:
		e.found(&o, ev.Claim)
	case hw.MatchTransferred:
		if errors.Is(ev.Err, hw.ErrInvalid) { // the device finds an element out of alignment, or the like
			n.Err = fi.EIO
		}
	case hw.MatchMissing:
		n.Err = fi.ENOMSG
	}
	e.o.Ended(n)
}

// short is an event without what few have. Of a message that a search has found all bytes count.
func short(ev *hw.MatchEvent) hot.MatchEvent {
	m := hot.MatchEvent{Context: ev.Context}
	if ev.Shared {
		return m
	}
	if ev.Kind == hw.MatchTransferred && ev.Err == nil {
		m.Flags, m.Fetched = hot.MatchRead, ev.Fetched
	}
	if ev.Kind != hw.MatchReceived && ev.Kind != hw.MatchFound {
		return m
	}
	m.From, m.Tag, m.Data, m.Length, m.Flags = uint64(ev.From), ev.Tag, ev.Data, ev.Length, hot.MatchReceive
	if ev.Kind == hw.MatchFound {
		m.Length = ev.Wanted
	}
	if ev.HasData {
		m.Flags |= hot.MatchData
	}
	return m
}

// leaving is the operation that an event is of. False: there is nothing to report. Lease.
func (e *Endpoint) leaving(ev *hw.MatchEvent) (operation, bool) {
	if ev.Shared {
		e.endShared()
		return sharedOf(ev.Context, ev.Length), !e.closing.Load()
	}
	return e.leave(ev.Context, ev.Last)
}

// leave takes an operation out of the table, if last, and gives back what it had. False: there is nothing to report.
// Lease.
func (e *Endpoint) leave(context uint64, last bool) (o operation, ok bool) {
	p, s := e.ops.at(context)
	if p == nil {
		return o, false
	}
	o = p.operation
	if last {
		e.ops.end(p, s, context)
	}
	if e.closing.Load() {
		if last && o.memory != 0 {
			e.left = append(e.left, o.memory)
		}
		return o, false
	}
	if last {
		e.unregistered(&o)
	}
	return o, true
}

// fill stores in e.ended what an operation and its event say. Lease.
func (e *Endpoint) fill(o *operation, ev *hot.MatchEvent) {
	e.ended = Ended{Search: o.kind == kindSearch}
	e.ended.fill(o, ev)
	if ev.Flags&hot.MatchReceive != 0 {
		e.sender(hw.MatchAddress(ev.From))
	}
}

// flagsOf are the completion flags of an operation.
func flagsOf(o *operation) uint64 {
	flags := fi.Send
	switch {
	case o.kind == kindRead:
		return fi.RMA | fi.Read
	case o.kind == kindWrite:
		return fi.RMA | fi.Write
	case o.kind == kindAtomic:
		return fi.Atomic | fi.Write
	case o.kind == kindFetch:
		return fi.Atomic | fi.Read
	case o.kind.receives():
		flags = fi.Recv
	}
	if o.tagged {
		return flags | fi.Tagged
	}
	return flags | fi.Msg
}

// sender stores the sender of a message: its address, or its name if it has none. Lease.
func (e *Endpoint) sender(from hw.MatchAddress) {
	a := e.source(from)
	e.ended.Entry.Src = uint64(a)
	if a == fi.AddrNotAvail {
		e.ended.From = from
		e.names = e.o.Matcher.AppendMatchName(e.names[:0], from)
		e.ended.Name = e.names
	}
}

// received stores what an event says of the message of a receive, beside what all say.
func (n *Ended) received(o *operation, ev *hw.MatchEvent) {
	n.Entry.Buf += ev.Offset
	if o.flags&fi.MultiRecv != 0 && ev.Last {
		n.Entry.Flags |= fi.MultiRecv
	}
	if o.kind == kindDiscard {
		n.Entry.Len = ev.Wanted
		return
	}
	if ev.Wanted > ev.Length && n.Err == fi.Success {
		n.Err, n.OLen = fi.ETRUNC, ev.Wanted-ev.Length
	}
}
