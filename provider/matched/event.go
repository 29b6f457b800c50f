package matched

import (
	"errors"

	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
)

// event takes in what has become of an operation. Lease.
func (e *Endpoint) event(ev *hw.MatchEvent) {
	switch ev.Kind {
	case hw.MatchExposed, hw.MatchWithdrawn, hw.MatchWritten:
		e.regionEvent(ev)
		return
	}
	o, ok := e.ops.take(ev.Context, ev.Last)
	if !ok {
		return
	}
	if e.closing.Load() {
		if ev.Last && o.memory != 0 {
			e.left = append(e.left, o.memory)
		}
		return
	}
	if ev.Last {
		e.release(&o)
	}
	e.ended = Ended{Flags: o.flags, Receive: o.kind.receives(), Search: o.kind == kindSearch, Inject: o.inject,
		Bytes: o.len}
	e.ended.Entry = cq.Entry{Context: o.context, Flags: flagsOf(&o), Src: fi.AddrNotAvail}
	if ev.Err != nil {
		e.ended.Err = Errno(ev.Err)
	}
	switch ev.Kind {
	case hw.MatchReceived:
		e.received(&o, ev)
	case hw.MatchCanceled:
		e.ended.Entry.Buf, e.ended.Entry.Tag = o.buf, o.tag
		if o.flags&fi.MultiRecv != 0 {
			e.ended.Entry.Flags |= fi.MultiRecv
		}
	case hw.MatchFound:
		e.describe(ev)
		e.ended.Entry.Len = ev.Wanted
		e.found(&o, ev.Claim)
	case hw.MatchTransferred:
		switch {
		case o.kind == kindFetch && ev.Err == nil:
			copy(bytesAt(o.buf, o.len), ev.Fetched[:])
		case errors.Is(ev.Err, hw.ErrInvalid): // the device finds an element out of alignment, or the like
			e.ended.Err = fi.EIO
		}
	case hw.MatchMissing:
		e.ended.Err, e.ended.Entry.Tag = fi.ENOMSG, o.tag
	}
	e.o.Ended(&e.ended)
}

// flagsOf are the completion flags of an operation.
func flagsOf(o *operation) uint64 {
	flags := uint64(fi.Send)
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

// describe stores what an event says of a message.
func (e *Endpoint) describe(ev *hw.MatchEvent) {
	entry := &e.ended.Entry
	entry.Tag = ev.Tag
	if ev.HasData {
		entry.Flags |= fi.RemoteCQData
		entry.Data = ev.Data
	}
	if entry.Src = e.source(ev.From); entry.Src == fi.AddrNotAvail {
		e.names = e.o.Matcher.AppendMatchName(e.names[:0], ev.From)
		e.ended.Name = e.names
	}
}

// received stores what an event says of the message of a receive.
func (e *Endpoint) received(o *operation, ev *hw.MatchEvent) {
	e.describe(ev)
	entry := &e.ended.Entry
	entry.Len, entry.Buf, e.ended.Bytes = ev.Length, o.buf+ev.Offset, ev.Length
	if o.flags&fi.MultiRecv != 0 && ev.Last {
		entry.Flags |= fi.MultiRecv
	}
	if o.kind == kindDiscard {
		entry.Len = ev.Wanted
		return
	}
	if ev.Wanted > ev.Length && e.ended.Err == fi.Success {
		e.ended.Err, e.ended.OLen = fi.ETRUNC, ev.Wanted-ev.Length
	}
}
