package provider

import (
	"github.com/weft-fabric/weft/cq"
	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/info"
	"github.com/weft-fabric/weft/internal/matched"
	"github.com/weft-fabric/weft/internal/stats"
	"github.com/weft-fabric/weft/provider/internal/deferred"
)

// What a matched endpoint is as a WorkEndpoint and as a receiver, beside its operations. The device knows deferred work
// by its number, with fi.Trigger in the flags.

// asWork gives an operation the number of the deferred work that it is; 0: it is none.
func asWork(work uint64, context, flags *uint64) {
	if work != 0 {
		*context, *flags = work, *flags|fi.Trigger
	}
}

// workIn returns the number of the deferred work that an operation is that has ended, 0 if it is none, and puts its
// context in the place of the number.
func (l *leasedMatched) workIn(n *matched.Ended) uint64 {
	if n.Flags&fi.Trigger == 0 {
		return 0
	}
	work := n.Entry.Context
	n.Entry.Context = l.e.domain.work.ContextOf(work)
	return work
}

func (e *MatchedEndpoint) receives() receiver { return e }

func (e *MatchedEndpoint) backlog() *deferred.Backlog { return &e.waiting }

func (e *MatchedEndpoint) addressed(what string, a fi.Addr) error {
	t, err := e.enabled()
	if err != nil {
		return err
	}
	return t.Reaches(what, a)
}

func (e *MatchedEndpoint) transfers() transfers { return e }

func (e *MatchedEndpoint) judgeSend(s *SendArgs) error {
	t, err := e.posts(s.Flags)
	if err != nil {
		return err
	}
	m := matchedSend(s)
	return t.JudgeSend(&m)
}

func (e *MatchedEndpoint) judgeRMA(a *RMAArgs) error {
	t, m, err := e.matchedTransfer(a)
	if err != nil {
		return err
	}
	return t.JudgeTransfer(&m)
}

func (e *MatchedEndpoint) judgeAtomic(a *AtomicArgs) error {
	t, m, err := e.matchedAtomic(a)
	if err != nil {
		return err
	}
	return t.JudgeAtomic(&m)
}

func (e *MatchedEndpoint) checkRecv(a *RecvArgs) error {
	t, err := e.enabled()
	if err != nil {
		return err
	}
	m := matchedReceive(a)
	if info.Directed(e.info.Caps, a.Tagged) && m.Src != fi.AddrUnspec {
		if err := t.Reaches("receive", m.Src); err != nil {
			return err
		}
	}
	return t.JudgeReceive(&m)
}

// failRecv reports a receive that could not be posted.
func (e *MatchedEndpoint) failRecv(a *RecvArgs, err fi.Errno) {
	entry := cq.Entry{Context: a.Context, Flags: fi.Recv | fi.Msg, Src: fi.AddrNotAvail, Tag: a.Tag}
	if a.Tagged {
		entry.Flags = fi.Recv | fi.Tagged
	}
	if e.bound.rxCQ != nil {
		e.bound.rxCQ.CompleteError(entry, cq.ErrorInfo{Err: err})
	}
	e.countWork(e.bound.rxCntr.Load(), a.work, a.Flags&fi.Completion != 0, true, 0)
}

func (e *MatchedEndpoint) refused() { e.stats.Shared(stats.SharedRefused, 1) }

// drive makes readers of a counter make progress of the endpoint, and undrive takes that back. The caller has the lock
// of the domain's drives.
func (e *MatchedEndpoint) drive(c *cq.Counter) error { return c.Drive(e.hot, e.wakes) }

func (e *MatchedEndpoint) undrive(c *cq.Counter) { c.Undrive(e.hot, e.wakes) }
