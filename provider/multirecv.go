package provider

import (
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hot"
	"github.com/weft-fabric/weft/provider/match"
)

// User words of a multi-receive buffer's match.Recv. Buf, Len, Context and
// Flags are those of the whole buffer.
const (
	multiUsed    = iota // bytes given to messages
	multiPending        // messages whose payload is still being read
)

// postMulti posts a buffer that receives messages one after the other until
// less than FI_OPT_MIN_MULTI_RECV bytes of it are left.
func (r *rxContext) postMulti(eng *match.Engine, entry *hot.RecvEntry) {
	source := r.sourceOf(fi.Addr(entry.Src), entry.Flags)
	rv := eng.Queue(source, entry.Tag, entry.Ignore)
	if rv == nil {
		r.endRecv(targetOf(entry), entry.Tag, fi.ENOMEM)
		return
	}
	rv.Buf, rv.Len, rv.Context, rv.Flags = entry.Buf, entry.Len, entry.Context, entry.Flags
	rv.User = [len(rv.User)]uint64{}
	rv.SetKeep(true)
	// Held messages come first; the queue matches nothing else meanwhile.
	for r.multiRoom(rv) {
		m := eng.Take(source, entry.Tag, entry.Ignore)
		if m == nil {
			return
		}
		r.deliverHeldMulti(eng, rv, m)
	}
}

// multiRoom tells whether the buffer takes another message.
func (r *rxContext) multiRoom(rv *match.Recv) bool {
	return rv.Len-rv.User[multiUsed] >= r.minMulti.Load()
}

// nextTarget is the unused rest of a multi-receive buffer.
func nextTarget(rv *match.Recv) target {
	used := rv.User[multiUsed]
	return target{buf: rv.Buf + used, len: rv.Len - used, context: rv.Context, flags: rv.Flags &^ fi.MultiRecv}
}

func (r *rxContext) deliverHeldMulti(eng *match.Engine, rv *match.Recv, m *match.Message) {
	a := r.heldAs(m)
	if a.flags&msgRTS != 0 {
		announced := *rtsAt(m.Payload)
		r.releaseHeld(eng, m)
		r.rendezvousMulti(eng, rv, &a, &announced)
		return
	}
	r.deliverMulti(eng, rv, &a, heldPayload(m))
	r.releaseHeld(eng, m)
}

// deliverMulti copies a complete message into the buffer's next free bytes.
func (r *rxContext) deliverMulti(eng *match.Engine, rv *match.Recv, a *arrived, payload []byte) {
	t := nextTarget(rv)
	n, err := t.scatter(payload)
	rv.User[multiUsed] += n
	t.flags |= r.retireMulti(eng, rv)
	status := fi.Success
	if err == nil {
		a.ep.completeRecv(t.context, t.flags, t.buffer(), n, a)
	} else {
		status = a.ep.storeFailed(&t, a, err)
	}
	if a.flags&msgSync != 0 {
		r.acknowledge(a, status)
	}
}

// rendezvousMulti gives an announced message the buffer's next free bytes.
func (r *rxContext) rendezvousMulti(eng *match.Engine, rv *match.Recv, a *arrived, announced *rts) {
	t := nextTarget(rv)
	t.len = min(t.len, announced.length)
	rv.User[multiUsed] += t.len
	rv.User[multiPending]++
	if !r.multiRoom(rv) {
		eng.Remove(rv)
	}
	r.startRendezvous(t, rv, a, announced)
}

// retireMulti takes a used-up buffer out of matching. It returns fi.MultiRecv
// if the completion at hand is the buffer's last, and forgets the buffer then.
func (r *rxContext) retireMulti(eng *match.Engine, rv *match.Recv) uint64 {
	if r.multiRoom(rv) && rv.Posted() {
		return 0
	}
	eng.Remove(rv)
	if rv.User[multiPending] != 0 {
		return 0
	}
	eng.Release(rv)
	return fi.MultiRecv
}
