package cxi

import (
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
)

// Commands of messages, written when they are posted and again when their receiver had no room for them. Threads
// without the runtime post by postPlaced and what that calls.

// post writes a message's command.
func (t *matchTx) post(o *outgoing, payload []byte, context uint64) error {
	switch {
	case len(t.full) > 0 && t.full[o.to] != nil || len(t.replaying) > 0:
		return hw.ErrNoResource
	case !t.long(o):
		if !t.postEager(o, payload, context) {
			return hw.ErrNoResource
		}
		return nil
	}
	s, n := t.place(o, nil)
	if s == nil {
		return hw.ErrNoResource
	}
	err := t.rendezvous(s, n)
	if err == nil {
		t.posted++
		t.commit(s, sentRendezvous, context)
	}
	return err
}

// long reports whether a message is a rendezvous.
func (t *matchTx) long(o *outgoing) bool { return o.memory.Len > uint32(t.m.cfg.Eager) }

// place finds a place for a message, and stores it there. nil: there is none.
func (t *matchTx) place(o *outgoing, payload []byte) (*sent, uint32) {
	s, n := t.begin(receiverPlaces)
	if s != nil {
		s.out = *o
		s.out.number, s.out.inline = t.posted, uint32(copy(t.inline(n)[:], payload))
	}
	return s, n
}

// postEager posts a message that goes at once. False: no room.
func (t *matchTx) postEager(o *outgoing, payload []byte, context uint64) bool {
	s, n := t.place(o, payload)
	return s != nil && t.postPlaced(s, n, context)
}

// postPlaced is postEager of a message that is stored in a place. False: it has no id.
func (t *matchTx) postPlaced(s *sent, n uint32, context uint64) bool {
	kind, ok := t.emitEager(s, n)
	if ok {
		t.posted++
		t.commit(s, kind, context)
	}
	return ok
}

// emit writes a message's command, for which there is room. Errors: hw.ErrNoResource.
func (t *matchTx) emit(s *sent, n uint32) (kind sentKind, err error) {
	if t.long(&s.out) {
		return sentRendezvous, t.rendezvous(s, n)
	}
	kind, ok := t.emitEager(s, n)
	if !ok {
		err = hw.ErrNoResource
	}
	return kind, err
}

// emitEager is emit of a message that goes at once. False: it has no id.
func (t *matchTx) emitEager(s *sent, n uint32) (kind sentKind, ok bool) {
	o := &s.out
	msg := nic.Message{To: o.at, MatchBits: o.says.Bits(), HeaderData: o.data, UserPtr: t.cookieOf(s, n)}
	kind = sentEager
	if o.matched {
		id, ok := t.m.shared.matches.take(t.owner(n))
		if !ok {
			return sentNone, false
		}
		kind, s.id, msg.MatchBits = sentMatched, id, o.says.BitsMatched(id)
	}
	if o.inline > 0 {
		if !t.messages {
			t.state()
		}
		t.q.Inline(&msg, nil, t.inline(n)[:min(o.inline, nic.MaxInline)])
	} else {
		t.q.Put(&nic.Transfer{Message: msg, Local: o.memory, Initiator: t.m.self, EQ: t.events.number})
	}
	return kind, true
}
