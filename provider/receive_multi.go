package provider

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

// postMulti posts a buffer that receives messages one after the other until
// less than FI_OPT_MIN_MULTI_RECV bytes of it are left.
func (r *leasedRx) postMulti(eng *match.Engine, entry *hot.RecvEntry) {
	source := r.sourceOf(fi.Addr(entry.Src), entry.Flags)
	rv := eng.Queue(source, entry.Tag, entry.Ignore)
	if rv == nil {
		r.endRecv(targetOf(entry), entry.Tag, fi.ENOMEM)
		return
	}
	rv.Buf, rv.Len, rv.Context, rv.Flags = entry.Buf, entry.Len, entry.Context, entry.Flags
	rv.User = [len(rv.User)]uint64{}
	rv.SetKeep(true)
	// Unexpected messages come first; the queue matches nothing else meanwhile.
	for r.matching.MultiRoom(rv) {
		m := eng.Take(source, entry.Tag, entry.Ignore)
		if m == nil {
			return
		}
		r.deliverUnexpectedMulti(eng, rv, m)
	}
}

// nextTarget is the unused rest of a multi-receive buffer.
func nextTarget(rv *match.Recv) target.Target {
	used := rv.User[dataplane.MultiUsed]
	return target.Target{Buf: rv.Buf + used, Len: rv.Len - used, Context: rv.Context, Flags: rv.Flags &^ fi.MultiRecv}
}

func (r *leasedRx) deliverUnexpectedMulti(eng *match.Engine, rv *match.Recv, m *match.Message) {
	a := r.unexpectedAs(m)
	if a.flags&msgRTS != 0 {
		rts := *rtsAt(m.Payload)
		r.releaseUnexpected(eng, m)
		r.rendezvousMulti(eng, rv, &a, &rts)
		return
	}
	r.deliverMulti(eng, rv, &a, keptPayload(m))
	r.releaseUnexpected(eng, m)
}

// deliverMulti copies a complete message into the buffer's next free bytes.
func (r *receiving) deliverMulti(eng *match.Engine, rv *match.Recv, a *arrived, payload []byte) {
	t := nextTarget(rv)
	n, err := t.Scatter(payload)
	rv.User[dataplane.MultiUsed] += n
	t.Flags |= r.matching.Retire(eng, rv)
	status := fi.Success
	if err == nil {
		a.ep.completeRecv(t.Context, t.Flags, t.Named(), n, a)
	} else {
		status = a.ep.storeFailed(&t, a, err)
	}
	if a.flags&msgSync != 0 {
		r.sendAck(a, status)
	}
}

// rendezvousMulti gives a rendezvous the buffer's next free bytes.
func (r *leasedRx) rendezvousMulti(eng *match.Engine, rv *match.Recv, a *arrived, rts *wire.RTS) {
	t := nextTarget(rv)
	t.Len = min(t.Len, rts.Length)
	rv.User[dataplane.MultiUsed] += t.Len
	rv.User[dataplane.MultiPending]++
	if !r.matching.MultiRoom(rv) {
		eng.Remove(rv)
	}
	r.startRendezvous(t, rv, a, rts)
}
