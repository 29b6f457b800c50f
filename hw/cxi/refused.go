package cxi

import (
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// Commands of the transmit queue that the NIC refuses. It says where in the queue the command lies, and each place
// knows where its own does. What the command is of ends with an error, and all else goes on.

// commandSlots is how many slots of 64 bytes a queue has for each place: a message takes at most so many, with 256
// bytes, and where there are several profiles a change of these and padding before it. A write of more than 112 bytes
// takes up to eight, with the state and padding before it: the room in the queue bounds those, and not their places.
func (t *matchTx) commandSlots() int {
	if l := t.m.i.networks; len(l) > 1 || l[0].restrictedApart() {
		return 9
	}
	return 4
}

// refusedCommand takes in that the NIC refuses a command.
func (t *matchTx) refusedCommand(e nic.Event) {
	err := errCommand(e.Code())
	t.m.i.logf("%v", err)
	t.m.rx.flow.counts.refused.Add(1)
	n, found := t.placeOf(&e)
	if found == 0 && t.refusedShared(e.Command(), err) {
		return
	}
	if found != 1 || t.mayBeShared(n, e.Command()) { // not known, or of the state or profile of commands behind it
		t.q.NoState()
		t.state()
		t.q.NoProfile()
		t.failAll(err)
		return
	}
	switch t.slots[n].kind {
	case sentControl, sentAsking, sentNotice: // it goes again
		t.acknowledged(n, wire.RcEntryNotFound, wire.ListPriority)
	default:
		t.abandon(n, err)
	}
}

// placeOf is the place whose command the NIC refuses, and how many there are: there may be several, as the queue has
// been written anew since one's command was taken, and which it is is not known.
func (t *matchTx) placeOf(e *nic.Event) (n uint32, found int) {
	if !nic.Ends(e.Command()) {
		return 0, 0
	}
	for k := range t.slots {
		s := &t.slots[k]
		if s.kind == sentNone || s.kind == sentDropped || s.first != e.Slot() && s.last != e.Slot() {
			continue
		}
		n = uint32(k)
		found++
	}
	return n, found
}

// mayBeShared reports whether a command that is refused where that of a place was may be one without a place, which was
// written there since.
func (t *matchTx) mayBeShared(n uint32, command uint64) bool {
	_, ok := sharedKind(command)
	return ok && t.shared.underway() > 0 && t.q.Rewritten(t.slots[n].first, t.slots[n].lap)
}

// current reports whether a cookie is of what a place has now.
func (t *matchTx) current(cookie uint64) bool {
	n := uint32(cookie) & placeMask
	return uint32(cookie)>>placeBits == t.stripe && n < uint32(len(t.slots)) &&
		t.slots[n].kind != sentNone && t.slots[n].generation == uint32(cookie>>32)
}

// abandon ends what a place has, of which no event is awaited any more.
func (t *matchTx) abandon(n uint32, err error) {
	s := &t.slots[n]
	underway, to := s.underway(), s.out.to
	switch s.kind {
	case sentNone:
	case sentControl:
		t.end(n)
	case sentAsking:
		t.writes.answered(n, wire.RcEntryNotFound)
	case sentFetch, sentNotice:
		t.answers = append(t.answers, answer{a: s.a, kind: s.kind, code: wire.RcCanceled})
		t.endings()
		s.a = nil
		t.end(n)
	default:
		t.complete(n, err)
	}
	if underway && len(t.full) > 0 {
		t.resolved(to)
	}
}
