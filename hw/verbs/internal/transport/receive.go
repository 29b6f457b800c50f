package transport

import (
	"sync/atomic"

	"github.com/weft-fabric/weft/hw/verbs/internal/ibv"
	"github.com/weft-fabric/weft/internal/hot"
	"github.com/weft-fabric/weft/internal/order"
)

// Receiving. A message is found, by C or by Progress, and found again until it is taken.

// read finds out whether b starts with a message that comes next from its sender. The bytes do not change any more.
func (p *Transport) read(b []byte, m *hot.TransportMessage) *Peer {
	h, next, ok := Parse(b)
	if !ok {
		return nil
	}
	peer := p.peer(h.Index & IndexMask)
	if peer == nil || int32(h.Seq-peer.LastSeq) <= 0 {
		return nil
	}
	f := &p.lease.found
	f.keep(peer)
	f.seq, f.index, f.bytes = h.Seq, h.Index, next
	describe(m, &h, b)
	return peer
}

// FindIn finds the message that comes next from a peer in its ring: hot.TransportEmpty, hot.TransportArrival, or
// hot.TransportGo where there is one that the peer must not write. Lease.
func (p *Transport) FindIn(peer *Peer, m *hot.TransportMessage) uintptr {
	b := peer.readRing(&p.lease.copy)
	if b == nil {
		return hot.TransportEmpty
	}
	f := &p.lease.found
	if p.read(b, m) == peer && f.bytes == 0 {
		f.ring = true
		return hot.TransportArrival
	}
	f.ring = true
	f.keep(peer)
	return hot.TransportGo
}

// FindWritten finds a message in one of the rings, which have their turns, as FindIn does. Lease.
func (p *Transport) FindWritten(m *hot.TransportMessage) uintptr {
	if atomic.LoadUint32(&p.Hot.Silent) == 0 {
		return hot.TransportEmpty
	}
	for k := range uint32(Rings) {
		n := (p.lease.ringTurn + k) % Rings
		peer := peerAt(p.rings[n].Load())
		if peer == nil || !peer.written() {
			continue
		}
		if found := p.FindIn(peer, m); found != hot.TransportEmpty {
			p.lease.found.turn = n + 1
			return found
		}
	}
	return hot.TransportEmpty
}

// Arrival is the first staged arrival, nil if there is none. Lease.
func (p *Transport) Arrival() *ibv.Done {
	if p.Staged() == 0 || p.nexts[0] >= p.counts[0] { // in this order: while nothing is staged another thread may poll
		return nil
	}
	return &p.done[p.nexts[0]]
}

// Left are the bytes of an arrival that are not dealt with. False: it is no message's, or not of a buffer.
func (p *Transport) Left(d *ibv.Done) (b []byte, ok bool) {
	if d.Status != ibv.StatusOK || d.Opcode != ibv.DoneRecv || d.ID >= uint64(len(p.free)) {
		return nil, false
	}
	b = p.arrived(d.ID, d.Bytes)
	if p.lease.at > len(b) {
		return nil, false
	}
	return b[p.lease.at:], true
}

// FindArrived finds the message with which what is left of the first staged arrival starts: hot.TransportArrival, or
// hot.TransportGo where that is none; hot.TransportEmpty: nothing has arrived. Its bytes were written by the peer's
// device before its completion. What its sender has written into a ring before comes first: the device has written
// that, too. Lease.
func (p *Transport) FindArrived(m *hot.TransportMessage) uintptr {
	d, f := p.Arrival(), &p.lease.found
	if d == nil {
		return hot.TransportEmpty
	}
	f.ring = false
	b, ok := p.Left(d)
	if !ok {
		return hot.TransportGo
	}
	peer := p.read(b, m)
	if peer == nil || !peer.Has(d.QP) {
		return hot.TransportGo
	}
	if found := p.FindIn(peer, m); found != hot.TransportEmpty {
		f.turn = p.lease.ringTurn
		return found
	}
	return hot.TransportArrival
}

// Has reports whether messages of the peer may come from a queue pair. Lease.
func (p *Peer) Has(qp uint32) bool { return qp == p.QPNums[0] || qp == p.QPNums[1] }

// InRing reports whether the message that was found last lies in its sender's ring.
func (p *Transport) InRing() bool { return p.lease.found.ring }

// Ring is the number of the ring in which FindWritten has found something. Lease.
func (p *Transport) Ring() uint32 { return p.lease.found.turn - 1 }

// PassRing has FindWritten begin behind it. Lease.
func (p *Transport) PassRing() { p.lease.ringTurn = p.lease.found.turn }

// Written is what was found last in a ring. Lease.
func (p *Transport) Written() []byte {
	return p.lease.copy[:min(bytesOf(p.lease.copy[:]), RingSlotBytes)]
}

// Take is done with the message that was found last (hot.TransportArrival), and reports whether another one is at hand.
// Lease.
func (p *Transport) Take() (more bool) {
	l := &p.lease
	peer := peerAt(l.found.peer)
	peer.LastSeq = l.found.seq
	peer.Heard, peer.Source = 1, 1
	peer.queue.Heard(l.found.index)
	l.ringsHad = l.found.ring
	if l.found.ring {
		l.ringTurn = l.found.turn
		peer.takeSlot()
		return peer.written()
	}
	if l.found.bytes != 0 {
		l.at += l.found.bytes
		return true
	}
	return p.Drop()
}

// Skip passes by what was found last and is none (hot.TransportGo): what lies in a ring, or so many bytes of the first
// staged arrival, behind which another message comes. Lease.
func (p *Transport) Skip(bytes int) {
	if p.lease.found.ring {
		peerAt(p.lease.found.peer).takeSlot()
		return
	}
	p.lease.at += bytes
}

// Drop is done with the first staged arrival, whose buffer goes back, and reports whether there is another one. Lease.
func (p *Transport) Drop() (more bool) {
	d := &p.done[p.nexts[0]]
	p.lease.at = 0
	p.nexts[0]++
	if d.ID < uint64(len(p.free)) { // else it is a queue pair's own, which there are none of
		p.free[p.freeCount] = uint32(d.ID)
		p.freeCount++
	}
	more = p.nexts[0] < p.counts[0]
	p.dealtWith(1) // last: now another thread may poll
	return more
}

// count of what C has taken in.
func (p *Transport) countTaken() { order.Store64(&p.Hot.Taken, p.Hot.Taken+1) }

// Delivered is the number of messages that C has delivered.
func (p *Transport) Delivered() uint64 { return atomic.LoadUint64(&p.Hot.Taken) }
