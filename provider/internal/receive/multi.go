package receive

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/provider/internal/target"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// Multi-receive buffers (FI_MULTI_RECV), as far as the data plane leaves them to the runtime. Such a receive stays in
// matching (match.Recv.Kept); its User words say how much of the buffer is used and how many messages are being read
// into it (dataplane.MultiUsed, MultiPending).

// DefaultMinMulti is the FI_OPT_MIN_MULTI_RECV of a new endpoint, bytes.
const DefaultMinMulti = 64

// postMulti posts a buffer that receives messages one after the other until
// less than FI_OPT_MIN_MULTI_RECV bytes of it are left.
func (c *Context) postMulti(eng *match.Engine, entry *hot.RecvEntry) {
	source := c.sources.SourceOf(fi.Addr(entry.Src), entry.Flags)
	rv := eng.Queue(source, entry.Tag, entry.Ignore)
	if rv == nil {
		c.end(targetOf(entry), entry.Tag, fi.ENOMEM)
		return
	}
	rv.Buf, rv.Len, rv.Context, rv.Flags = entry.Buf, entry.Len, entry.Context, entry.Flags
	rv.User = [len(rv.User)]uint64{}
	rv.SetKeep(true)
	// Unexpected messages come first; the queue matches nothing else meanwhile.
	for c.MultiRoom(rv) {
		m := eng.Take(source, entry.Tag, entry.Ignore)
		if m == nil {
			return
		}
		c.deliverUnexpectedMulti(eng, rv, m)
	}
}

// nextTarget is the unused rest of a multi-receive buffer.
func nextTarget(rv *match.Recv) target.Target {
	used := rv.User[dataplane.MultiUsed]
	return target.Target{Buf: rv.Buf + used, Len: rv.Len - used, Context: rv.Context, Flags: rv.Flags &^ fi.MultiRecv}
}

func (c *Context) deliverUnexpectedMulti(eng *match.Engine, rv *match.Recv, m *match.Message) {
	a := c.unexpectedAs(m)
	if a.flags&msgRTS != 0 {
		c.rts = *rtsAt(m.Payload)
		c.releaseUnexpected(eng, m)
		c.rendezvousMulti(eng, rv, &a, &c.rts)
		return
	}
	c.deliverMulti(eng, rv, &a, keptPayload(m))
	c.releaseUnexpected(eng, m)
}

// deliverMulti copies a complete message into the buffer's next free bytes.
func (c *Context) deliverMulti(eng *match.Engine, rv *match.Recv, a *message, payload []byte) {
	t := nextTarget(rv)
	n, err := t.Scatter(payload)
	rv.User[dataplane.MultiUsed] += n
	t.Flags |= c.Retire(eng, rv)
	status := fi.Success
	if err == nil {
		a.complete(t.Context, t.Flags, t.Named(), n)
	} else {
		status = a.storeFailed(&t, err)
	}
	if a.flags&msgSync != 0 {
		a.ack(status)
	}
}

// rendezvousMulti gives a rendezvous the buffer's next free bytes.
func (c *Context) rendezvousMulti(eng *match.Engine, rv *match.Recv, a *message, rts *wire.RTS) {
	t := nextTarget(rv)
	t.Len = min(t.Len, rts.Length)
	rv.User[dataplane.MultiUsed] += t.Len
	rv.User[dataplane.MultiPending]++
	if !c.MultiRoom(rv) {
		eng.Remove(rv)
	}
	c.startRendezvous(t, rv, a, rts)
}
