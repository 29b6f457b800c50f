package cxi

import (
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/hw/cxi/internal/nic"
	"github.com/weft-fabric/weft/hw/cxi/internal/proto"
	"github.com/weft-fabric/weft/hw/cxi/internal/wire"
)

// Writes with data have room in their target's event queue, or wait for it. A NIC without such room answers as it
// does when no region has the key, so the initiator asks by a write of no bytes to an entry that each endpoint of weft
// has. As long as that is refused the queue is full; else what was refused is written again. An endpoint of libfabric's
// provider has no such entry.

const (
	// roomDelay is how long an initiator rests before it asks again.
	roomDelay = time.Millisecond
	// roomMisses is how often a peer that has never answered is asked.
	roomMisses = 200
	// roomTries is how often a write is refused by a peer that has room: others may have taken it.
	roomTries = 16
)

// eventRoom is what is known of a peer's room for the events of writes with data.
type eventRoom struct {
	to      hw.MatchAddress
	used    bool     // the place of the table is this peer's
	known   bool     // it is asked, or needs not be, and has not failed since
	waiting []uint32 // places of writes that it has refused, in order
	asked   bool     // an answer is to come, or it is to be asked
	seen    bool     // it has answered that it has room
	misses  int
}

// rooms are the peers that writes with data went to: a table of which half at least is free. The place of a peer is the
// first from that of its address on that is its own or free.
type rooms struct {
	places []eventRoom // a power of two, or none
	used   int
}

// at is the place of a peer, nil: there are none. It needs nothing of the runtime.
func (s *rooms) at(to hw.MatchAddress) *eventRoom {
	if len(s.places) == 0 {
		return nil
	}
	mask := uint64(len(s.places) - 1)
	for k := uint64(to) * roomFactor >> 32; ; k++ {
		if r := &s.places[k&mask]; !r.used || r.to == to {
			return r
		}
	}
}

// roomFactor spreads addresses, which differ in few bits: 2^64 by the golden ratio.
const roomFactor = 0x9e3779b97f4a7c15

// leastRooms is how many places a table has at first.
const leastRooms = 16

// add is at of a peer that has a place then. Pointers into the table end.
func (s *rooms) add(to hw.MatchAddress) *eventRoom {
	if r := s.at(to); r != nil && r.used {
		return r
	}
	if s.used++; 2*s.used > len(s.places) {
		was := s.places
		s.places = make([]eventRoom, max(leastRooms, 2*len(was)))
		for k := range was {
			if was[k].used {
				*s.at(was[k].to) = was[k]
			}
		}
	}
	r := s.at(to)
	r.to, r.used = to, true
	return r
}

// asking is a peer that is to be asked.
type asking struct {
	to       hw.MatchAddress
	notUntil time.Time
}

// dataWrites are writes with data of a sender. Everything is guarded by its lock.
type dataWrites struct {
	t     *matchTx
	peers rooms
	ask   []asking
	put   []nic.Transfer // by place; made for the first
}

// of is what is known of a peer, nil: nothing. It needs nothing of the runtime.
func (w *dataWrites) of(to hw.MatchAddress) *eventRoom {
	if r := w.peers.at(to); r != nil && r.known {
		return r
	}
	return nil
}

// admits reports whether a write with data may be posted to a peer that is known. It needs nothing of the runtime.
func (w *dataWrites) admits(to hw.MatchAddress) bool {
	r := w.of(to)
	return r != nil && len(r.waiting) == 0
}

// keep keeps the command of a write with data in a place, which its peer may refuse. It needs nothing of the runtime.
func (w *dataWrites) keep(s *sent, n uint32, to hw.MatchAddress, c *nic.Transfer) {
	s.data, s.out.to = true, to
	w.put[n] = *c
}

// admit reports whether a write with data may be posted. Those before it have no room otherwise.
func (w *dataWrites) admit(p *hw.MatchTransfer) bool {
	if w.put == nil {
		w.put = make([]nic.Transfer, len(w.t.slots))
	}
	r := w.peers.add(p.To)
	if !r.known {
		r.known = true
		if !proto.IsChosen(p.Key) { // it is an endpoint of weft
			w.later(p.To, r, time.Time{})
			w.post()
		}
	}
	return len(r.waiting) == 0
}

// later has a peer be asked.
func (w *dataWrites) later(to hw.MatchAddress, r *eventRoom, at time.Time) {
	r.asked = true
	w.ask = append(w.ask, asking{to, at})
	w.t.controlling(true)
}

// post asks the peers that are to be asked, as far as there is room.
func (w *dataWrites) post() {
	if len(w.ask) == 0 {
		return
	}
	now, rest := time.Now(), w.ask[:0]
	for _, a := range w.ask {
		to, err := w.t.m.at(a.to, proto.IndexWrite)
		s, n := w.t.begin(0)
		switch {
		case err != nil: // it was valid
		case s == nil || now.Before(a.notUntil):
			rest = append(rest, a)
		default:
			w.t.q.Put(&nic.Transfer{Message: nic.Message{To: to, MatchBits: proto.RoomBits, UserPtr: w.t.cookie(n)},
				Initiator: w.t.m.self, EQ: w.t.events.number})
			w.t.commit(s, sentAsking, 0)
			s.out = outgoing{to: a.to}
		}
	}
	w.ask = rest
}

// refused takes in that a write with data found no entry, and reports whether it waits.
func (w *dataWrites) refused(n uint32) bool {
	s := &w.t.slots[n]
	r := w.of(s.out.to)
	if s.tries++; r == nil || s.tries > roomTries {
		return false
	}
	r.waiting = append(r.waiting, n)
	s.doubtful = false
	if !r.asked {
		w.later(s.out.to, r, time.Time{})
	}
	return true
}

// answered takes in a peer's answer.
func (w *dataWrites) answered(n, code uint32) {
	to := w.t.slots[n].out.to
	w.t.end(n)
	r := w.of(to)
	if r == nil {
		return
	}
	r.asked = false
	if code == wire.RcOk {
		r.seen, r.misses = true, 0
		w.again(to, r)
		return
	}
	if code == wire.RcEntryNotFound && len(r.waiting) == 0 {
		return
	}
	if r.misses++; code == wire.RcEntryNotFound && (r.seen || r.misses < roomMisses) {
		w.later(to, r, time.Now().Add(roomDelay))
		return
	}
	for _, n := range r.waiting {
		w.t.complete(n, transferError(false, code))
	}
	*r = eventRoom{to: to, used: true}
}

// again writes what a peer has refused, as far as there is room.
func (w *dataWrites) again(to hw.MatchAddress, r *eventRoom) {
	for len(r.waiting) > 0 && w.t.q.Room(1) {
		n := r.waiting[0]
		w.t.q.Put(&w.put[n])
		w.t.slots[n].written(&w.t.q)
		r.waiting = r.waiting[1:]
	}
	if len(r.waiting) > 0 {
		w.later(to, r, time.Time{})
	}
}

// forget ends that anything waits; the caller ends what does.
func (w *dataWrites) forget() {
	w.peers = rooms{}
	w.ask = nil
}
