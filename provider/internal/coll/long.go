package coll

import (
	"errors"
	"slices"
	"time"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/provider/internal/outcome"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// longSteps are the steps whose payload stays with its sender until it is fetched: the receiver gets an RTS and reads
// the sender's memory, or, where that cannot be read, asks for fragments. The sender's step ends with the receiver's
// Done message, or when the last fragment is sent. A step is in one of the tables from its RTS on until it ends. All
// belongs to the holder of the progress lease.
//
// Memory that a member may read is its operation's until the member has said that it reads no more: by Done, by a note
// that the operation has failed at it, or by its end. An operation that fails ends no sooner, so no member
// reads what its owner has freed or filled anew.
type longSteps struct {
	c *Protocol // immutable

	sends   map[uint64]*collStep // by request
	pulls   map[uint64]*collStep // receives that wait for fragments, by their number
	streams []*collStep          // of sends: those that go in fragments
	reads   []*collStep          // receives that are read in pieces
	request uint64               // of the last RTS, or receive in fragments
}

// busy reports whether there is work that no ring shows.
func (l *longSteps) busy() bool { return len(l.streams)+len(l.reads) != 0 }

// number returns the number of a new request.
func (l *longSteps) number() uint64 {
	l.request++
	return l.request
}

// onRTS handles the RTS of a step.
func (l *longSteps) onRTS(src hw.Source, id uint64, head, payload []byte) {
	var h wire.CollLong
	if !h.Parse(head) {
		l.c.malformed(src, "RTS of %d bytes does not parse", len(head))
		return
	}
	g, m := l.c.member(src, id, h.Rank, "RTS")
	if g == nil {
		l.c.ep.Answer(src, wire.AMCollDone, h.Request, wire.PutAck(l.c.head[:], fi.ECANCELED))
		return
	}
	if m == nil {
		return
	}
	o := g.runs.under[h.Seq]
	if o == nil {
		if g.runs.over(h.Seq) {
			l.refuse(m, h.Request, fi.ECANCELED)
		} else if why, ok := g.runs.doomed[h.Seq]; ok {
			l.refuse(m, h.Request, why)
		} else {
			l.c.holdStep(g, m, &earlyStep{kind: earlyRTS, head: h}, nil)
		}
		return
	}
	s := o.waiting(int(h.Rank))
	switch {
	case o.exchange != nil:
		l.refuse(m, h.Request, fi.EINVAL)
		l.c.unlike(o, &h.CollStep)
	case s == nil:
		l.c.holdStep(g, m, &earlyStep{kind: earlyRTS, head: h}, nil)
	case !o.agrees(&h.CollStep, h.Length, s):
		l.refuse(m, h.Request, o.status)
		l.c.freeStep(s)
	case l.fetch(m, s, &h) == fetchDone:
		l.c.transferred(o)
	}
}

// fetchResult says what has become of a payload that is fetched.
type fetchResult int

const (
	fetchPending fetchResult = iota
	fetchDone                // it is here, and the step is gone
	fetchFailed              // so has the operation, and the step is gone
)

// refuse answers an RTS whose payload is not fetched, and says why.
func (l *longSteps) refuse(m *collMember, request uint64, why fi.Errno) {
	l.c.control(m, wire.AMCollDone, request, wire.PutAck(l.c.head[:], why))
}

// fetch begins to fetch the payload of an RTS.
func (l *longSteps) fetch(m *collMember, s *collStep, h *wire.CollLong) fetchResult {
	s.request, s.addr = h.Request, h.Addr
	if len(s.data) == 0 {
		return l.fetched(m, s)
	}
	if l.c.ep.TransportOf(m.src).Caps&hw.CapPeerMemory == 0 {
		l.pull(m, s)
		return fetchPending
	}
	return l.read(m, s)
}

// fetched sends Done, after which the sender may use its memory again, and frees the step.
func (l *longSteps) fetched(m *collMember, s *collStep) fetchResult {
	l.c.control(m, wire.AMCollDone, s.request, wire.PutAck(l.c.head[:], fi.Success))
	l.c.received(s)
	return fetchDone
}

// faultPatience is how long a read of memory that is there no more waits for its owner's word. A member that leaves,
// or whose process ends, takes its memory back before that is known here.
const faultPatience = congestion.Time(time.Second)

// readMost is the most that one step of a read takes, in bytes: progress comes back to the caller in between.
const readMost = 4 << 20

// read reads the next piece, and puts the step back into l.reads if there is
// more. Where the kernel refuses, it asks for fragments.
func (l *longSteps) read(m *collMember, s *collStep) fetchResult {
	if s.faulted != 0 && l.c.ep.Now() < s.faulted+faultPatience {
		l.reads = append(l.reads, s)
		return fetchPending
	}
	p, err := m.peer.Connect()
	if errors.Is(err, fi.EAGAIN) {
		l.reads = append(l.reads, s)
		return fetchPending
	}
	n := 0
	if err == nil {
		want := min(uint64(len(s.data))-s.done, readMost)
		c := l.c
		c.local[0] = segmentOf(s.data[s.done:][:want])
		c.remote[0] = hw.RemoteSegment{Addr: s.addr + s.done, Len: want}
		n, err = p.Transport().(hw.PeerMemory).ReadPeer(c.local[:], c.remote[:])
		c.local[0] = hw.Segment{}
	}
	s.done += uint64(n)
	switch {
	case err == nil && s.done == uint64(len(s.data)):
		return l.fetched(m, s)
	case err == nil:
		l.reads = append(l.reads, s)
		return fetchPending
	case errors.Is(err, hw.ErrPermission) && s.done == 0:
		l.pull(m, s)
		return fetchPending
	case errors.Is(err, hw.ErrInvalid) && s.faulted == 0:
		s.faulted = l.c.ep.Now()
		l.reads = append(l.reads, s)
		return fetchPending
	}
	o, why := s.op, outcome.OfRead(err)
	o.group.warn("read %d bytes of rank %d: %v", uint64(len(s.data))-s.done, s.peer, err)
	l.refuse(m, s.request, why)
	l.c.freeStep(s)
	l.c.fail(o, why)
	return fetchFailed
}

// pull asks for the payload in fragments.
func (l *longSteps) pull(m *collMember, s *collStep) {
	s.id = l.number()
	l.pulls[s.id] = s
	h := wire.CTS{Operation: s.id, Length: uint64(len(s.data))}
	l.c.control(m, wire.AMCollCTS, s.request, h.Put(l.c.head[:]))
}

// pumpReads reads about one piece for each step that has more to read.
func (l *longSteps) pumpReads() {
	for n := len(l.reads); n > 0 && len(l.reads) != 0; n-- {
		s := l.reads[0]
		l.reads = slices.Delete(l.reads, 0, 1)
		if o := s.op; l.read(&o.group.members[s.peer], s) == fetchDone {
			l.c.transferred(o)
		}
	}
}

// sendOf returns the send of a request that a message of the peer names. It is nil for late messages, about
// operations that have failed, which are no fault.
func (l *longSteps) sendOf(src hw.Source, request uint64) *collStep {
	s := l.sends[request]
	if s == nil {
		return nil
	}
	if m := &s.op.group.members[s.peer]; m.gone || m.src != src {
		l.c.malformed(src, "request %#x is not its own", request)
		return nil
	}
	return s
}

// onDone ends a send.
func (l *longSteps) onDone(src hw.Source, request uint64, head, payload []byte) {
	status, ok := wire.ParseAck(head)
	if !ok {
		l.c.malformed(src, "outcome of %d bytes does not parse", len(head))
		return
	}
	s := l.sendOf(src, request)
	if s == nil {
		return
	}
	switch o := s.op; {
	case o.status != fi.Success:
		l.takeBack(s)
	case status != fi.Success:
		s.exposed = false
		l.c.fail(o, status)
	default:
		l.forgetSend(s)
		l.c.ended(s)
	}
}

// forgetSend takes a send out of the tables.
func (l *longSteps) forgetSend(s *collStep) {
	delete(l.sends, s.id)
	if s.peerOp != 0 {
		l.streams = slices.DeleteFunc(l.streams, func(o *collStep) bool { return o == s })
	}
}

// onCTS begins to send fragments.
func (l *longSteps) onCTS(src hw.Source, request uint64, head, payload []byte) {
	if len(head) == wire.CollTargetBytes {
		l.c.ordered.onTarget(src, request, head)
		return
	}
	if len(head) == wire.CollGrantBytes {
		l.c.ordered.onGrant(src, request, head)
		return
	}
	var h wire.CTS
	if !h.Parse(head) || h.Operation == 0 {
		l.c.malformed(src, "request for fragments of %d bytes does not parse", len(head))
		return
	}
	s := l.sendOf(src, request)
	if s == nil {
		return
	}
	if h.Length != uint64(len(s.data)) || s.peerOp != 0 {
		l.c.malformed(src, "request for %d bytes in fragments of %d", h.Length, len(s.data))
		return
	}
	s.peerOp = h.Operation
	l.streams = append(l.streams, s)
}

// pumpStreams sends fragments as far as there is room.
func (l *longSteps) pumpStreams() {
	for i := 0; i < len(l.streams); {
		s := l.streams[i]
		err := l.stream(s)
		switch {
		case errors.Is(err, fi.EAGAIN):
			i++
		case err != nil:
			l.c.fail(s.op, fi.ErrnoOf(err)) // which takes it out of the list
			i = 0
		default:
			l.forgetSend(s)
			l.c.ended(s)
			i = 0
		}
	}
}

// stream sends the rest of a step's fragments.
func (l *longSteps) stream(s *collStep) error {
	m := &s.op.group.members[s.peer]
	for s.done < uint64(len(s.data)) {
		p, ok := m.peer.Ready()
		if m.dead || !ok {
			return fi.ECONNRESET
		}
		n := min(uint64(len(s.data))-s.done, uint64(p.Over().MaxAMBcopy))
		if err := l.c.ep.Post(p, wire.AMCollFrag, s.peerOp, wire.PutWord(l.c.head[:], s.done),
			s.data[s.done:][:n]); err != nil {
			return err
		}
		s.done += n
	}
	return nil
}

// onFrag takes in a fragment. Those of one payload arrive in order.
func (l *longSteps) onFrag(src hw.Source, id uint64, head, payload []byte) {
	offset, ok := wire.ParseWord(head)
	if !ok {
		l.c.malformed(src, "fragment does not parse")
		return
	}
	s := l.pulls[id]
	if s == nil {
		return // of an operation that has failed here
	}
	m := &s.op.group.members[s.peer]
	if m.gone || m.src != src || offset != s.done || uint64(len(payload)) > uint64(len(s.data))-s.done {
		l.c.malformed(src, "fragment of %d bytes at %d, expected at %d of %d",
			len(payload), offset, s.done, len(s.data))
		return
	}
	s.done += uint64(copy(s.data[s.done:], payload))
	if s.done == uint64(len(s.data)) {
		delete(l.pulls, id)
		o := s.op
		l.c.received(s)
		l.c.transferred(o)
	}
}

// dropOf drops the transfers of an operation that has failed, but for sends whose memory may be read.
func (l *longSteps) dropOf(o *collOp) {
	for _, s := range l.sends {
		if s.op != o {
			continue // of a group that may be larger
		}
		if m := &o.group.members[s.peer]; !s.exposed || s.peerOp != 0 || m.left || m.gone || m.dead {
			l.forgetSend(s)
			l.c.freeStep(s)
		}
	}
	for id, s := range l.pulls {
		if s.op == o {
			delete(l.pulls, id)
			l.dropReceive(s)
		}
	}
	l.reads = slices.DeleteFunc(l.reads, func(s *collStep) bool {
		if s.op == o {
			l.dropReceive(s)
			return true
		}
		return false
	})
}

// exposes reports whether members may read memory of an operation that has failed.
func (l *longSteps) exposes(o *collOp) bool {
	for _, s := range l.sends {
		if s.op == o {
			return true
		}
	}
	return false
}

// takeBack takes in that the receiver reads no more of a send of an operation that has failed, which ends
// when that was the last one.
func (l *longSteps) takeBack(s *collStep) {
	o := s.op
	l.forgetSend(s)
	l.c.freeStep(s)
	if !l.exposes(o) {
		l.c.settle(o)
	}
}

// takeBackWhere is takeBack for the sends of a group's failed operations for which hit is true.
func (l *longSteps) takeBackWhere(g *Group, hit func(s *collStep) bool) {
	for _, s := range l.sends {
		if o := s.op; o.group == g && o.status != fi.Success && !o.advancing && hit(s) {
			l.takeBack(s)
		}
	}
}

// dropReceive refuses what a receive has not fetched, and frees its step.
func (l *longSteps) dropReceive(s *collStep) {
	l.refuse(&s.op.group.members[s.peer], s.request, s.op.status)
	l.c.freeStep(s)
}

// receivesFrom reports whether an operation is fetching from a rank.
func (l *longSteps) receivesFrom(o *collOp, rank int) bool {
	for _, s := range l.pulls {
		if s.op == o && s.peer == rank {
			return true
		}
	}
	return slices.ContainsFunc(l.reads, func(s *collStep) bool { return s.op == o && s.peer == rank })
}

// sendsTo reports whether an operation has a send to a rank that is not fetched yet.
func (l *longSteps) sendsTo(o *collOp, rank int) bool {
	for _, s := range l.sends {
		if s.op == o && s.peer == rank {
			return true
		}
	}
	return false
}
