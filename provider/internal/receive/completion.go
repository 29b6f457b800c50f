package receive

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/provider/internal/target"
)

// EntryOf returns a completion as package cq takes it.
func EntryOf(e *hot.CQE) cq.Entry {
	return cq.Entry{
		Context: e.Context, Flags: e.Flags, Len: e.Len, Buf: e.Buf, Data: e.Data, Tag: e.Tag, Src: fi.Addr(e.Src),
	}
}

// kindOf gives the completion flags of a receive posted with flags.
func kindOf(flags uint64) uint64 {
	if flags&hot.RecvTagged != 0 {
		return fi.Recv | fi.Tagged
	}
	return fi.Recv | fi.Msg
}

// complete reports a message of which n bytes were received at buf. flags
// are those of the receive; fi.MultiRecv in them says that the buffer is
// given back with this completion, which is therefore always written.
func (a *message) complete(context, flags, buf, n uint64) {
	e := a.at
	entry := cq.Entry{
		Context: context, Flags: kindOf(flags) | flags&fi.MultiRecv, Len: n, Buf: buf, Data: a.data, Tag: a.tag,
		Src: e.host.AddrOf(a.from.ID),
	}
	if a.flags&msgData != 0 {
		entry.Flags |= fi.RemoteCQData
	}
	if a.length > n {
		e.host.Fail(entry, flags, cq.ErrorInfo{Err: fi.ETRUNC, OLen: a.length - n})
		return
	}
	if entry.Src == fi.AddrNotAvail && e.sourceErr {
		var name []byte
		entry.Src, name = e.host.Stranger(a.from.ID)
		e.host.Fail(entry, flags, cq.ErrorInfo{Err: fi.EADDRNOTAVAIL, ErrData: name})
		return
	}
	e.host.Complete(entry, flags)
}

// failed completes a receive whose message, of which n bytes are in place, failed.
func (a *message) failed(t *target.Target, flags, n uint64, status fi.Errno) {
	a.at.host.Fail(cq.Entry{
		Context: t.Context, Flags: kindOf(flags) | flags&fi.MultiRecv, Len: n, Buf: t.Named(), Data: a.data,
		Tag: a.tag, Src: a.at.host.AddrOf(a.from.ID),
	}, flags, cq.ErrorInfo{Err: status})
}

// storeFailed completes a receive whose message could not be copied to a
// device, and returns the outcome.
func (a *message) storeFailed(t *target.Target, err error) fi.Errno {
	log.Warnf(log.EPData, "copy %d bytes to a device: %v", a.length, err)
	a.failed(t, t.Flags, 0, fi.EIO)
	return fi.EIO
}

// cancel ends the receive that was posted with context, if it still waits.
func (c *Context) cancel(context uint64) {
	for _, eng := range c.engines() {
		if rv := eng.Cancel(context); rv != nil {
			c.drop(eng, rv, fi.ECANCELED)
			return
		}
	}
}

// drop completes a receive that is out of the queue without a message.
func (c *Context) drop(eng *match.Engine, rv *match.Recv, err fi.Errno) {
	t, tag := targetIn(rv), rv.Tag()
	if rv.Kept() && rv.User[dataplane.MultiPending] != 0 {
		return // the last of its messages gives the buffer back
	}
	eng.Release(rv)
	c.end(t, tag, err)
}

// Refuse reports a receive that could not be posted.
func (c *Context) Refuse(m *Recv, err fi.Errno) {
	entry := m.entry()
	c.end(targetOf(&entry), m.Tag, err)
}

// end completes a receive that got no message.
func (c *Context) end(t target.Target, tag uint64, err fi.Errno) {
	if e := c.first(); e != nil {
		e.host.Fail(cq.Entry{
			Context: t.Context, Flags: kindOf(t.Flags) | t.Flags&fi.MultiRecv, Buf: t.Named(), Tag: tag,
			Src: fi.AddrNotAvail,
		}, t.Flags, cq.ErrorInfo{Err: err})
	}
	c.release(t)
}
