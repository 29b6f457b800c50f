package cxi

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// progress takes in events until about limit were said, and returns how many were.
func (x *matchRx) progress(limit int) (n int) {
	if x.down.Load() {
		return x.progressDown()
	}
	x.relieve()
	if x.retries.Load() {
		n += x.retry()
	}
	n += x.soft.deliver() // older than what the NIC has
	for n < limit {
		e := x.events.Peek()
		if !e.There() {
			break
		}
		x.take(e)
		x.events.Done(e)
		if !taking(x.flow.state()) {
			x.events.Return() // it may be full, and its room is needed
		}
		n++
	}
	x.events.Pause()
	n += x.endLeaving()
	n += x.flow.progress()
	x.early.list()
	x.requests.list()
	if len(x.commands) > 0 {
		x.postCommands()
	}
	x.later.Store(x.crowded.Load() || len(x.commands) > 0 || len(x.leaving.list) > 0 ||
		x.early.spare.n > 0 || x.requests.spare.n > 0 ||
		x.retries.Load() || x.m.awaitsControls() ||
		x.flow.again != [flowCommands]bool{})
	return n
}

// take takes one event in.
func (x *matchRx) take(e nic.Event) {
	switch e.Type() {
	case wire.EventReply:
		x.replied(e)
		return
	case wire.EventCommandFailure:
		x.refusedCommand(e)
		return
	case wire.EventStateChange:
		x.flow.changed(e)
		return
	case wire.EventPut, wire.EventPutOverflow, wire.EventRendezvous, wire.EventUnlink, wire.EventSearch,
		wire.EventLink:
	default:
		if !performs(e) {
			x.unknownOf(e)
			return
		}
	}
	id := e.BufferID()
	if id != 0 && int(id) <= len(x.early.buffers) {
		switch {
		case e.Type() == wire.EventPut || performs(e):
			x.early.landed(e)
		case e.Type() == wire.EventLink && e.Code() != wire.RcOk:
			x.early.refused(int(id) - 1)
		}
		return
	}
	if n, ok := x.requests.number(id); ok {
		x.requests.take(n, e)
		return
	}
	if id == x.idOnload() {
		x.flow.take(e)
		return
	}
	r := x.posted(uint32(id))
	switch {
	case r != nil:
		x.takeOf(r, e)
	case e.Type() == wire.EventPut && e.Code() == wire.RcOk: // else of a message that the NIC has refused
		x.refuse("message of %d bytes of %#x for receive %d, which has ended", e.Wanted(), e.Initiator(), id)
	}
}

// takeOf takes in an event of a receive or search.
func (x *matchRx) takeOf(r *receive, e nic.Event) {
	switch e.Type() {
	case wire.EventPut, wire.EventAtomic, wire.EventFetchAtomic:
		x.put(r, e)
	case wire.EventPutOverflow, wire.EventAtomicOverflow, wire.EventFetchAtomicOverflow:
		if x.retries.Load() {
			x.listed(uint32(e.BufferID())) // one that is used up at once gives no other event
		}
		x.early.taken(r, e)
	case wire.EventRendezvous:
		x.asked(r, e)
	case wire.EventUnlink:
		if !e.Last() {
			x.unlinked(r, e.Code())
		}
	case wire.EventSearch:
		x.searched(r, e)
	case wire.EventLink:
		if e.Code() != wire.RcOk {
			x.refusedEntry(uint32(e.BufferID()), e.Code())
		} else {
			x.listed(uint32(e.BufferID()))
		}
	}
}

// refusedCommand takes in that the NIC refuses a command: what it was for ends.
func (x *matchRx) refusedCommand(e nic.Event) {
	err := errCommand(e.Code())
	x.m.i.logf("matching: %v", err)
	slot := e.Slot()
	if slot >= uint32(len(x.slots)) {
		return
	}
	x.flow.counts.refused.Add(1)
	id := x.slots[slot]
	if id == idOther {
		if !x.regions.refused(slot, err) {
			x.m.shared.notAdmitted()
		}
		return
	}
	if id >= idFlow {
		x.flow.refusedCommand(flowCommand(id - idFlow))
		return
	}
	if int(id) <= len(x.early.buffers) {
		x.early.refused(int(id) - 1)
		return
	}
	if n, ok := x.requests.number(id); ok {
		x.requests.refused(n)
		return
	}
	x.lock.take()
	if x.probing && len(x.waiting) > 0 && x.waiting[0] == uint32(id) {
		x.probing, x.waiting = false, x.waiting[1:]
	}
	r := x.receive(uint32(id))
	x.lock.give()
	unlink := e.Command()>>wire.CommandOpcodeShift == wire.CmdqOpUnlink
	switch {
	case r == nil:
	case unlink && r.recalling:
		x.flow.recallRefused(r)
	case unlink: // it stays
		x.unlinked(r, wire.RcEntryNotFound)
	default:
		ev := hw.MatchEvent{Kind: hw.MatchCanceled, Context: r.context, Last: true, Err: err}
		x.retire(r)
		x.say(&ev)
	}
}
