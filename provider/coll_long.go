package provider

import (
	"errors"
	"slices"
	"unsafe"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/wire"
)

// A payload that stays with its sender until it is fetched: announced, then read
// from the sender's memory, or asked for and sent in fragments where that
// memory cannot be read. The sender's step ends when the receiver says so, or
// when the last fragment is sent.

// onRTS is an announcement.
func (c *collectives) onRTS(src hw.Source, id uint64, head, payload []byte) {
	var h wire.CollLong
	if !h.Parse(head) {
		c.malformed(src, "announcement of %d bytes does not parse", len(head))
		return
	}
	g, m, known := c.member(src, id, h.Rank)
	if known && m == nil {
		c.malformed(src, "announcement to a group whose rank %d it is not", h.Rank)
		return
	}
	if !known {
		e := c.ep
		refusal := wire.PutAck(e.rx.head[:], fi.ECANCELED)
		e.rx.answer(e, src, e.senderOf(src), wire.AMCollDone, h.Request, refusal)
		return
	}
	o := g.ops[h.Seq]
	if o == nil {
		if g.over(h.Seq) {
			c.refuse(m, h.Request)
		} else {
			c.holdStep(g, m, &h, nil, true)
		}
		return
	}
	s := o.waiting(int(h.Rank))
	switch {
	case o.exchange != nil:
		c.refuse(m, h.Request)
		c.unlike(o, &h.CollStep)
	case s == nil:
		c.holdStep(g, m, &h, nil, true)
	case !o.agrees(&h.CollStep, h.Length, s):
		c.refuse(m, h.Request)
		c.freeStep(s)
	case c.fetch(m, s, &h) == fetchDone:
		c.transferred(o)
	}
}

// fetchResult says what has become of a payload that is fetched.
type fetchResult int

const (
	fetchPending fetchResult = iota
	fetchDone                // it is here, and the step is gone
	fetchFailed              // so has the operation, and the step is gone
)

// refuse tells the sender of an announcement that nobody will fetch it.
func (c *collectives) refuse(m *collMember, request uint64) {
	c.tell(m, wire.AMCollDone, request, wire.PutAck(c.ep.rx.head[:], fi.ECANCELED))
}

// fetch begins to fetch an announced payload.
func (c *collectives) fetch(m *collMember, s *collStep, h *wire.CollLong) fetchResult {
	s.request, s.addr = h.Request, h.Addr
	if len(s.data) == 0 {
		return c.fetched(m, s)
	}
	if !c.ep.reads(m.src) {
		c.pull(m, s)
		return fetchPending
	}
	return c.read(m, s)
}

// fetched tells the sender that its memory is free again, and frees the step.
func (c *collectives) fetched(m *collMember, s *collStep) fetchResult {
	c.tell(m, wire.AMCollDone, s.request, wire.PutAck(c.ep.rx.head[:], fi.Success))
	c.freeStep(s)
	return fetchDone
}

// read reads the next piece, and puts the step back into c.reads if there is
// more. Where the kernel refuses, it asks for fragments.
func (c *collectives) read(m *collMember, s *collStep) fetchResult {
	p, err := c.ep.connect(m.link)
	if err == fi.EAGAIN {
		c.reads = append(c.reads, s)
		return fetchPending
	}
	n := 0
	if err == nil {
		want := min(uint64(len(s.data))-s.done, getChunk)
		r := c.ep.rx
		local := append(r.local[:0], hw.Segment{Addr: unsafe.Pointer(&s.data[s.done]), Len: int(want)})
		remote := append(r.remote[:0], hw.RemoteSegment{Addr: s.addr + s.done, Len: want})
		n, err = p.Endpoint.(hw.PeerMemory).ReadPeer(local, remote)
		r.local[0] = hw.Segment{}
	}
	s.done += uint64(n)
	switch {
	case err == nil && s.done == uint64(len(s.data)):
		return c.fetched(m, s)
	case err == nil:
		c.reads = append(c.reads, s)
		return fetchPending
	case errors.Is(err, hw.ErrPermission) && s.done == 0:
		c.pull(m, s)
		return fetchPending
	}
	o := s.op
	o.group.warn("read %d bytes of rank %d: %v", uint64(len(s.data))-s.done, s.peer, err)
	c.refuse(m, s.request)
	c.freeStep(s)
	c.fail(o, readError(err))
	return fetchFailed
}

// pull asks for the payload in fragments.
func (c *collectives) pull(m *collMember, s *collStep) {
	c.request++
	s.id = c.request
	c.pulls[s.id] = s
	h := wire.CTS{Operation: s.id, Length: uint64(len(s.data))}
	c.tell(m, wire.AMCollCTS, s.request, h.Put(c.ep.rx.head[:]))
}

// pumpReads reads about one piece for each step that has more to read.
func (c *collectives) pumpReads() {
	for n := len(c.reads); n > 0 && len(c.reads) != 0; n-- {
		s := c.reads[0]
		c.reads = slices.Delete(c.reads, 0, 1)
		if o := s.op; c.read(&o.group.members[s.peer], s) == fetchDone {
			c.transferred(o)
		}
	}
}

// announced returns a send that the peer speaks about. Late words, about
// operations that have failed, are no fault.
func (c *collectives) announced(src hw.Source, request uint64) *collStep {
	s := c.sends[request]
	if s == nil {
		return nil
	}
	if m := &s.op.group.members[s.peer]; m.gone || m.src != src {
		c.malformed(src, "request %#x is not its own", request)
		return nil
	}
	return s
}

// onDone ends an announced send.
func (c *collectives) onDone(src hw.Source, request uint64, head, payload []byte) {
	status, ok := wire.ParseAck(head)
	if !ok {
		c.malformed(src, "outcome of %d bytes does not parse", len(head))
		return
	}
	s := c.announced(src, request)
	if s == nil {
		return
	}
	if status != fi.Success {
		c.fail(s.op, status)
		return
	}
	c.forgetSend(s)
	c.ended(s)
}

// forgetSend takes an announced send out of the tables.
func (c *collectives) forgetSend(s *collStep) {
	delete(c.sends, s.id)
	if s.peerOp != 0 {
		c.streams = slices.DeleteFunc(c.streams, func(o *collStep) bool { return o == s })
	}
}

// onCTS begins to send fragments.
func (c *collectives) onCTS(src hw.Source, request uint64, head, payload []byte) {
	var h wire.CTS
	if !h.Parse(head) || h.Operation == 0 {
		c.malformed(src, "request for fragments of %d bytes does not parse", len(head))
		return
	}
	s := c.announced(src, request)
	if s == nil {
		return
	}
	if h.Length != uint64(len(s.data)) || s.peerOp != 0 {
		c.malformed(src, "request for %d bytes in fragments of %d", h.Length, len(s.data))
		return
	}
	s.peerOp = h.Operation
	c.streams = append(c.streams, s)
}

// pumpStreams sends fragments as far as there is room.
func (c *collectives) pumpStreams() {
	for i := 0; i < len(c.streams); {
		s := c.streams[i]
		err := c.stream(s)
		switch {
		case err == fi.EAGAIN:
			i++
		case err != nil:
			c.fail(s.op, fi.ErrnoOf(err)) // which takes it out of the list
			i = 0
		default:
			c.forgetSend(s)
			c.ended(s)
			i = 0
		}
	}
}

// stream sends the rest of a step's fragments.
func (c *collectives) stream(s *collStep) error {
	m := &s.op.group.members[s.peer]
	e := c.ep
	lease := e.progressStripe
	sc := &e.scratch[lease]
	for s.done < uint64(len(s.data)) {
		p, ok := m.link.ready()
		if m.dead || !ok {
			return fi.ECONNRESET
		}
		n := min(uint64(len(s.data))-s.done, uint64(p.port.attr.MaxAMBcopy))
		iov := append(sc.frag[:0], fi.IOVec{Base: uintptr(unsafe.Pointer(&s.data[s.done])), Len: n})
		if err := e.sendPayload(p, wire.AMCollFrag, s.peerOp, wire.PutWord(sc.head[:], s.done), iov,
			int(n), lease); err != nil {
			return err
		}
		s.done += n
	}
	return nil
}

// onFrag takes in a fragment. Those of one payload arrive in order.
func (c *collectives) onFrag(src hw.Source, id uint64, head, payload []byte) {
	offset, ok := wire.ParseWord(head)
	if !ok {
		c.malformed(src, "fragment does not parse")
		return
	}
	s := c.pulls[id]
	if s == nil {
		return // of an operation that has failed here
	}
	m := &s.op.group.members[s.peer]
	if m.gone || m.src != src || offset != s.done || uint64(len(payload)) > uint64(len(s.data))-s.done {
		c.malformed(src, "fragment of %d bytes at %d, expected at %d of %d", len(payload), offset, s.done, len(s.data))
		return
	}
	s.done += uint64(copy(s.data[s.done:], payload))
	if s.done == uint64(len(s.data)) {
		delete(c.pulls, id)
		c.ended(s)
	}
}
