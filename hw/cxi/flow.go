package cxi

import (
	"slices"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// Flow control at the sender. The NIC of a receiver without room takes no messages any more, and counts those that it
// drops. When all messages in flight to it are answered, the sender notifies it of how many were dropped; when it has
// heard of all drops it takes messages again, and says so; then those that were dropped are sent again, in order.

// control is a control message to be sent.
type control struct {
	to       hw.MatchAddress
	bits     uint64
	notUntil time.Time
}

// controlDelay is how long a control message rests that its peer had no room for.
const controlDelay = time.Millisecond

// dropped takes in that a receiver had no room for a message.
func (t *matchTx) dropped(n uint32) {
	s := &t.slots[n]
	to := s.out.to
	f := t.full[to]
	if f == nil {
		f = new(fullPeer)
		for k := range t.slots {
			if o := &t.slots[k]; o.out.to == to && o.underway() {
				f.underway++
			}
		}
		t.full[to] = f
	}
	t.giveID(s)
	s.kind, s.doubtful = sentDropped, false
	s.generation++
	t.drops.Add(1)
	if f.dropped(n) {
		t.notify(to, f)
	}
}

// resolved takes in that a message in flight was answered. The last one has the receiver notified of the drops.
func (t *matchTx) resolved(to hw.MatchAddress) {
	if f := t.full[to]; f != nil && f.answered() {
		t.notify(to, f)
	}
}

// notify sends a receiver the number of the drops.
func (t *matchTx) notify(to hw.MatchAddress, f *fullPeer) {
	t.control(to, proto.Control(proto.ControlNotify, f.drops))
}

// resumed takes in that a receiver takes messages again.
func (t *matchTx) resumed(from hw.MatchAddress) {
	t.lock.take()
	defer t.release(false)
	f := t.full[from]
	if f == nil || f.underway > 0 {
		t.m.rx.refuse("%#x takes messages again, though it was not known to be full", uint64(from))
		return
	}
	delete(t.full, from)
	t.replaying = append(t.replaying, f.waiting...)
	slices.SortFunc(t.replaying, func(a, b uint32) int {
		return int(int64(t.slots[a].out.number - t.slots[b].out.number))
	})
	t.replay()
	t.noteControls()
}

// noteControls notes whether there is something to be sent by and by.
func (t *matchTx) noteControls() {
	t.controlling(len(t.controls) > 0 || len(t.replaying) > 0 || len(t.writes.ask) > 0 ||
		!t.doubtUntil.IsZero())
}

// replay sends messages again, as far as there is room. Those to a receiver that is full again wait with the rest.
func (t *matchTx) replay() {
	for len(t.replaying) > 0 && t.q.Room(1) {
		n := t.replaying[0]
		s := &t.slots[n]
		if f := t.full[s.out.to]; f != nil {
			f.waiting = append(f.waiting, n)
			t.replaying = t.replaying[1:]
			continue
		}
		kind, err := t.emit(s, n)
		if err != nil {
			return
		}
		s.kind, s.seen, s.code, s.acked = kind, 0, wire.RcOk, false
		s.written(&t.q)
		t.replaying = t.replaying[1:]
	}
}

// resume sends senders word that the NIC takes messages again.
func (t *matchTx) resume(senders []hw.MatchAddress) {
	if len(senders) == 0 {
		return
	}
	t.lock.take()
	for _, to := range senders {
		t.control(to, proto.Control(proto.ControlResume, 0))
	}
	t.postControls()
	t.release(false)
}

// control has a control message sent.
func (t *matchTx) control(to hw.MatchAddress, bits uint64) {
	t.controls = append(t.controls, control{to: to, bits: bits})
	t.controlling(true)
}

// postControls sends control messages, as far as there is room.
func (t *matchTx) postControls() {
	if len(t.controls) == 0 {
		return
	}
	now := time.Now()
	t.controls = slices.DeleteFunc(t.controls, func(c control) bool {
		if now.Before(c.notUntil) {
			return false
		}
		to, err := t.m.at(c.to, proto.IndexControl)
		s, n := t.begin(0)
		if err != nil || s == nil {
			return err != nil
		}
		t.q.Put(&nic.Transfer{Message: nic.Message{To: to, MatchBits: c.bits, UserPtr: t.cookie(n)},
			Initiator: t.m.self,
			EQ:        t.events.number})
		t.commit(s, sentControl, 0)
		s.out = outgoing{to: c.to, bits: c.bits}
		return true
	})
}

// controlled takes in the answer to a control message.
func (t *matchTx) controlled(n, code uint32) {
	to, bits := t.slots[n].out.to, t.slots[n].out.bits
	t.end(n)
	if code == wire.RcOk {
		return
	}
	if judge(code) == refused { // it has no room for events
		t.controls = append(t.controls, control{to: to, bits: bits, notUntil: time.Now().Add(controlDelay)})
		return
	}
	f := t.full[to]
	if kind, _, _ := proto.ControlOf(bits); kind != proto.ControlNotify || f == nil {
		return
	}
	delete(t.full, to)
	for _, n := range f.waiting {
		t.complete(n, sendError(code))
	}
}
