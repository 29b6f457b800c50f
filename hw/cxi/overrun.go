package cxi

import (
	"fmt"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
	"github.com/weft-fabric/weft/internal/libcxi"
)

// Event queues that overrun. The NIC drops events that find no room. The reader learns of it when it gives read events
// back (nic.EventQueue.Due), and cannot know which events those were.
//
// Of the sender's queue an event is missing of something that was under way: in the first stripe's case of messages
// of any stripe too, as all notices come there. Each such command has overrunWait for an event of its own; those
// without one end with an error, and what is posted meanwhile is not concerned. Of the receiver's queue a message,
// the end of a list entry or a change of state may be missing, so that nothing that is known of the NIC's list holds:
// the list is taken away, which has peers' messages refused, and after overrunWait, in which gets that are under way
// end, all receives and searches end with an error, as those do that are posted from then on. Senders of messages that
// were dropped before are to send them again, which ends them. The queue of control
// messages and regions loses no message, as the NIC refuses those without room, but answers about regions at most,
// for which their owner waits no longer than for any.

// overrunWait is how long commands that were under way when an event was dropped have to end by an event.
const overrunWait = time.Second

// errOverrun says that events of a direction were dropped.
func errOverrun(what string) error {
	return fmt.Errorf("cxi: the event queue of %s was full, and events were dropped: %w", what, unix.EIO)
}

// Directions, as errOverrun names them.
const (
	whatSends    = "sends"
	whatReceives = "receives"
	whatRegions  = "control messages and regions"
)

// overran acts on queues that have overrun. Lease.
func (m *matcher) overran() {
	for _, t := range m.txs {
		m.overranOf(&t.events, whatSends, t.overran)
	}
	m.overranOf(&m.rx.events, whatReceives, m.rx.overran)
	m.overranOf(&m.rx.flow.events, whatRegions, func() {})
}

// overranOf acts on a queue if it has overrun. Lease.
func (m *matcher) overranOf(q *eventQueue, what string, act func()) {
	if !q.Overran() {
		return
	}
	q.ClearOverran()
	m.rx.flow.counts.overruns.Add(1)
	if !q.said {
		q.said = true
		m.i.cfg.Logf("cxi %s: %v", m.i.d.dev.Name, errOverrun(what))
	}
	act()
}

// overran notes what was under way, and had its events to come to the stripe's queue. Lease.
func (t *matchTx) overran() {
	t.doubt((*sent).inFlight, true)
	if t.stripe != 0 {
		return
	}
	for _, o := range t.m.txs[1:] {
		o.doubt((*sent).awaitsNotice, false)
	}
}

// inFlight reports whether the NIC has the command.
func (s *sent) inFlight() bool { return s.kind != sentNone && s.kind != sentDropped }

// awaitsNotice reports whether the command ends by an event in the first stripe's queue.
func (s *sent) awaitsNotice() bool { return s.kind == sentMatched || s.kind == sentRendezvous }

// doubt notes that an event may have been dropped of each command of which that is said, and with all of those without
// a place.
func (t *matchTx) doubt(of func(*sent) bool, all bool) {
	t.lock.take()
	for n := range t.slots {
		s := &t.slots[n]
		s.doubtful = s.doubtful || of(s)
	}
	t.writes.answeredFor()
	if all {
		t.shared.doubt()
	}
	t.doubtUntil = time.Now().Add(overrunWait)
	t.noteControls()
	t.release(false)
}

// answeredFor says of writes with data that wait for room that their answer has come.
func (w *dataWrites) answeredFor() {
	for k := range w.peers.places {
		for _, n := range w.peers.places[k].waiting {
			w.t.slots[n].doubtful = false
		}
	}
}

// endDoubtful ends what was under way when an event was dropped, and had none since. The caller has the lock.
func (t *matchTx) endDoubtful() {
	if t.doubtUntil.IsZero() || time.Now().Before(t.doubtUntil) {
		return
	}
	t.doubtUntil = time.Time{}
	err := errOverrun(whatSends)
	for n := range t.slots {
		if t.slots[n].doubtful {
			t.abandon(uint32(n), err)
		}
	}
	t.abandonShared(&t.shared.doubtful, err)
}

// overran takes the list away.
func (x *matchRx) overran() { x.fail(errOverrun(whatReceives)) }

// fail takes the list away, for a reason with which receives and searches end. Lease, behind rx.progress.
func (x *matchRx) fail(err error) {
	if x.down.Load() {
		return
	}
	x.failure = err
	x.lock.take()
	x.down.Store(true)
	x.flow.core.state = flowDisabled
	x.flow.word.Store(uint32(flowDisabled))
	x.lock.give()
	x.flow.again = [flowCommands]bool{}
	if err := x.portal.end(x.pte); err != nil {
		x.m.i.logf("%v", err)
	}
	x.flow.enable()
	x.downUntil = time.Now().Add(overrunWait)
	x.later.Store(true)
}

// usable is why nothing can be posted any more, nil: it can.
func (x *matchRx) usable() error {
	switch {
	case x.m.i.closed.Load():
		return errClosed
	case x.down.Load():
		return x.failure
	}
	return nil
}

// progressDown is progress behind that. Lease.
func (x *matchRx) progressDown() (n int) {
	for e := x.events.Peek(); e.There(); e = x.events.Peek() {
		if e.Type() == wire.EventCommandFailure && x.slotOf(e) == idOther {
			x.refusedCommand(e)
		}
		x.events.Done(e)
		n++
	}
	x.events.Pause()
	n += x.flow.progress()
	if !x.downUntil.IsZero() && !time.Now().Before(x.downUntil) {
		x.downUntil = time.Time{}
		x.commands = nil
		x.retries.Store(false)
		x.cancel(x.failure)
	}
	x.later.Store(!x.downUntil.IsZero() || x.m.awaitsControls())
	return n
}

// slotOf is what the command is of that an event says is refused (matchRx.slots).
func (x *matchRx) slotOf(e nic.Event) uint16 {
	if slot := e.Slot(); slot < uint32(len(x.slots)) {
		return x.slots[slot]
	}
	return idOther
}

// end gives an entry of the portal table back.
func (p *portal) end(t *libcxi.PtlTE) error {
	p.pte = slices.DeleteFunc(p.pte, func(o *libcxi.PtlTE) bool { return o == t })
	return t.Close()
}

// performs reports whether an event is of an atomic operation, which the NIC lets a peer do where it may write.
func performs(e nic.Event) bool {
	switch e.Type() {
	case wire.EventAtomic, wire.EventFetchAtomic, wire.EventAtomicOverflow, wire.EventFetchAtomicOverflow:
		return true
	}
	return false
}

// byPeer reports whether an event is of what a peer has done, or of the get that its rendezvous has made the NIC do.
func byPeer(e nic.Event) bool {
	switch e.Type() {
	case wire.EventPut, wire.EventPutOverflow, wire.EventGet, wire.EventGetOverflow, wire.EventRendezvous,
		wire.EventReply:
		return true
	}
	return performs(e)
}

// unknown counts and logs an event that nothing here expects. Of what a peer has done in vain it alone is to know.
func (m *matcher) unknown(e nic.Event) {
	if byPeer(e) {
		if e.Code() == wire.RcOk {
			m.rx.refuse("an operation of a peer's, of type %d, that no peer of the protocol does there", e.Type())
		}
		return
	}
	m.rx.flow.counts.unknown.Add(1)
	m.i.logf("an event of type %d that is not expected (%s)", e.Type(), codeText(e.Code()))
}

// unknownOf ends the message or operation that such an event is of.
func (t *matchTx) unknownOf(e nic.Event) {
	t.m.unknown(e)
	if n := uint32(e.UserPtr()) & placeMask; e.Type() == wire.EventSend && t.current(e.UserPtr()) {
		t.abandon(n, errUnknown(e))
	}
}

// unknownOf ends the receive that such an event is of, if it has gone from the NIC's list with it and no message of it
// is on its way: else the event has changed nothing.
func (x *matchRx) unknownOf(e nic.Event) {
	x.m.unknown(e)
	if !e.IsLong() || !e.Last() {
		return
	}
	r := x.posted(uint32(e.BufferID()))
	if r == nil || r.state == receiveEnded || r.once.r != nil || len(r.parts) > 0 {
		return
	}
	ev := hw.MatchEvent{Kind: hw.MatchCanceled, Context: r.context, Last: true, Err: errUnknown(e)}
	x.retire(r)
	x.say(&ev)
}

// errUnknown says that an operation ended by an event that nothing here expects.
func errUnknown(e nic.Event) error {
	return fmt.Errorf("cxi: an event of type %d, %s: %w", e.Type(), codeText(e.Code()), unix.EIO)
}
