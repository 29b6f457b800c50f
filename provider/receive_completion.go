package provider

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/dataplane"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/match"
	"github.com/weft-fabric/weft/provider/internal/target"
	"github.com/weft-fabric/weft/provider/names"
)

// recvKind gives the completion flags of a receive posted with flags.
func recvKind(flags uint64) uint64 {
	if flags&hot.RecvTagged != 0 {
		return fi.Recv | fi.Tagged
	}
	return fi.Recv | fi.Msg
}

// completeRecv reports a message of which n bytes were received at buf. flags
// are those of the receive; fi.MultiRecv in them says that the buffer is
// given back with this completion, which is therefore always written.
func (e *leasedEP) completeRecv(context, flags, buf, n uint64, a *arrived) {
	entry := cq.Entry{
		Context: context, Flags: recvKind(flags) | flags&fi.MultiRecv, Len: n, Buf: buf, Data: a.data, Tag: a.tag,
		Src: e.addrOf(a.source),
	}
	if a.flags&msgData != 0 {
		entry.Flags |= fi.RemoteCQData
	}
	if a.length > n {
		e.ep.base.recvError(entry, flags, cq.ErrorInfo{Err: fi.ETRUNC, OLen: a.length - n})
		return
	}
	if entry.Src == fi.AddrNotAvail && e.ep.base.chosen.sourceErr {
		e.recvUnknown(entry, flags, a)
		return
	}
	work, bound := e.ep.base.domain.workIn(&entry, flags), &e.ep.base.bound
	if bound.rxCQ != nil && (!bound.rxSelective && work == 0 || flags&(fi.Completion|fi.MultiRecv) != 0) {
		bound.rxCQ.Complete(entry)
	}
	e.ep.base.countWork(bound.rxCntr.Load(), work, flags&fi.Completion != 0, false, n)
}

// workIn returns the number of the deferred work that a receive with flags is,
// 0 if it is none, and puts its context in the place of the number.
func (d *Domain) workIn(entry *cq.Entry, flags uint64) uint64 {
	if flags&hot.RecvWork == 0 {
		return 0
	}
	work := entry.Context
	entry.Context = d.work.ContextOf(work)
	return work
}

// recvUnknown reports a message from a peer that is not in the AV, with the
// peer's address and its authorisation key if the AV has keys, as FI_SOURCE_ERR asks.
func (e *leasedEP) recvUnknown(entry cq.Entry, flags uint64, a *arrived) {
	name := e.rx.ids.Name(a.source)
	raw, err := names.Encode(e.ep.base.format, name)
	if err != nil {
		raw = nil
	}
	entry.Src = e.ep.base.bound.av.ReportedKey(name.Key)
	e.ep.base.recvError(entry, flags, cq.ErrorInfo{Err: fi.EADDRNOTAVAIL, ErrData: raw})
}

// recvError reports a receive that was posted with flags and failed.
func (e *initiator) recvError(entry cq.Entry, flags uint64, info cq.ErrorInfo) {
	e.counts.Failed(info.Err)
	work := e.domain.workIn(&entry, flags)
	if e.bound.rxCQ != nil {
		e.bound.rxCQ.CompleteError(entry, info)
	}
	e.countWork(e.bound.rxCntr.Load(), work, flags&fi.Completion != 0, true, 0)
}

// cancel ends the receive that was posted with context, if it still waits.
func (r *receiving) cancel(context uint64) {
	for _, eng := range []*match.Engine{r.matching.Tagged, r.matching.Untagged} {
		if rv := eng.Cancel(context); rv != nil {
			r.dropRecv(eng, rv, fi.ECANCELED)
			return
		}
	}
}

// dropRecv completes a receive that is out of the queue without a message.
func (r *receiving) dropRecv(eng *match.Engine, rv *match.Recv, err fi.Errno) {
	t, tag := targetIn(rv), rv.Tag()
	if rv.Kept() && rv.User[dataplane.MultiPending] != 0 {
		return // the last of its messages gives the buffer back
	}
	eng.Release(rv)
	r.endRecv(t, tag, err)
}

// endRecv completes a receive that got no message.
func (r *receiving) endRecv(t target.Target, tag uint64, err fi.Errno) {
	if len(r.eps) != 0 {
		r.eps[0].ep.base.recvError(cq.Entry{
			Context: t.Context, Flags: recvKind(t.Flags) | t.Flags&fi.MultiRecv, Buf: t.Named(), Tag: tag,
			Src: fi.AddrNotAvail,
		}, t.Flags, cq.ErrorInfo{Err: err})
	}
	r.release(t)
}
