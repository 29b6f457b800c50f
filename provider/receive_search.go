package provider

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/internal/stats"
)

// search acts on FI_PEEK, FI_CLAIM and FI_DISCARD, as fi_tagged(3) defines
// them:
//
//	PEEK          report whether a matching message is unexpected
//	PEEK|CLAIM    and reserve it for a receive with this context
//	PEEK|DISCARD  and drop it
//	CLAIM         receive the message that was reserved with this context
//	CLAIM|DISCARD drop it
func (r *leasedRx) search(eng *match.Engine, entry *hot.RecvEntry) {
	if st := r.base.stats.Load(); st != nil {
		st.Rx(stats.RxSearches, 1)
	}
	if entry.Flags&fi.Peek != 0 {
		r.peek(eng, entry)
		return
	}
	m := eng.TakeClaimed(entry.Context)
	switch {
	case m == nil:
		r.searchFailed(entry)
	case entry.Flags&fi.Discard != 0:
		r.report(m, entry)
		r.discard(eng, m)
	default:
		r.deliverUnexpected(eng, targetOf(entry), m)
	}
}

// peek finds an unexpected message, after everything that has arrived was taken
// in: a peek must find what was sent before it.
func (r *receiving) peek(eng *match.Engine, entry *hot.RecvEntry) {
	source := r.sourceOf(fi.Addr(entry.Src), entry.Flags)
	m := eng.Peek(source, entry.Tag, entry.Ignore)
	if m == nil {
		for _, e := range r.eps {
			e.arrivals(r.base.cfg.RingSlots * hot.RxRings)
		}
		m = eng.Peek(source, entry.Tag, entry.Ignore)
	}
	if m == nil {
		r.searchFailed(entry)
		return
	}
	r.report(m, entry)
	switch {
	case entry.Flags&fi.Claim != 0:
		eng.Claim(m, entry.Context)
	case entry.Flags&fi.Discard != 0:
		eng.RemoveMessage(m)
		r.discard(eng, m)
	}
	r.release(targetOf(entry))
}

// report completes a search with what is known of the message.
func (r *receiving) report(m *match.Message, entry *hot.RecvEntry) {
	a := r.unexpectedAs(m)
	a.ep.completeRecv(entry.Context, entry.Flags&^fi.MultiRecv|fi.Completion, 0, a.length, &a)
}

func (r *receiving) searchFailed(entry *hot.RecvEntry) {
	if len(r.eps) != 0 {
		r.eps[0].ep.base.recvError(cq.Entry{
			Context: entry.Context, Flags: recvKind(entry.Flags), Tag: entry.Tag, Src: fi.AddrNotAvail,
		}, entry.Flags, cq.ErrorInfo{Err: fi.ENOMSG})
	}
	r.release(targetOf(entry))
}

// discard drops a message that is out of the queue. Its sender is notified that it
// was received.
func (r *receiving) discard(eng *match.Engine, m *match.Message) {
	if a := r.unexpectedAs(m); a.flags&(msgRTS|msgSync) != 0 {
		r.sendAck(&a, fi.Success)
	}
	r.releaseUnexpected(eng, m)
}
