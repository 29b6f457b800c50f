package rendezvous

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/provider/internal/claim"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// junkTags is the first tag of messages that no well-meaning node sends.
const junkTags = 1 << 20

// words are numbers that a hostile node puts into messages to another: ids of that node's requests and operations,
// of others' too, as they are and altered, addresses, lengths, and ends of the ranges of numbers.
func (n *node) words(to *node) (list []uint64) {
	list = []uint64{
		0, 1, 7, 8 << 10, 32 << 10, 64 << 10, 1 << 20, wire.MaxMessage, 1 << 63, 1<<63 - 1, ^uint64(0), ^uint64(0) - 7,
	}
	for id, m := range to.sent {
		list = append(list, id, id+1<<32, id+1, uint64(len(m.data)), uint64(len(m.data))/2)
	}
	for op := range to.rx.under() {
		list = append(list, op.id(), op.id()+1<<32, op.id()+1, op.want, op.done, op.want-op.done, op.Target.Buf)
	}
	return list
}

// head makes one of a number of words.
func (n *node) head(words []uint64) (b []byte) {
	for range n.r.IntN(5) {
		b = binary.LittleEndian.AppendUint64(b, words[n.r.IntN(len(words))])
	}
	if n.r.IntN(8) == 0 {
		b = append(b, 0)
	}
	return b
}

// junk has a hostile node send a message of chance.
func (n *node) junk(to *node) {
	words := n.words(to)
	word := func() uint64 { return words[n.r.IntN(len(words))] }
	all := []hw.AMID{
		wire.AMRTS, wire.AMFrag, wire.AMHelped, wire.AMCTS, wire.AMAssist, wire.AMLanding, wire.AMPut, wire.AMAck,
	}
	id := all[n.r.IntN(len(all))]
	payload := make([]byte, []int{0, 1, 16, 4096, 8 << 10}[n.r.IntN(5)])
	if id != wire.AMRTS {
		header, head := word(), n.head(words)
		for op := range to.rx.under() { // nearly right
			if n.r.IntN(2) == 0 && (id == wire.AMFrag || id == wire.AMHelped) {
				header, head = op.id(), wire.PutWord(make([]byte, 8), op.done*uint64(n.r.IntN(2)))
			}
		}
		for request := range to.sent {
			if n.r.IntN(2) == 0 && id != wire.AMFrag && id != wire.AMHelped {
				header = request
			}
		}
		n.post(to.number, id, header, head, payload)
		return
	}
	m := wire.RTS{
		Request: word(), Length: word(), Flags: uint32(n.r.IntN(1 << 8)), Count: uint32(n.r.IntN(wire.IOVLimit + 1)),
	}
	sum := uint64(0)
	for i := range m.IOV[:m.Count] {
		m.IOV[i] = hw.RemoteSegment{Addr: word(), Len: word()}
		sum += m.IOV[i].Len
	}
	if n.r.IntN(2) == 0 {
		m.Length = sum
	}
	m.Token, m.PID = word(), uint32(n.r.IntN(4))
	n.post(to.number, id, junkTags+uint64(n.r.IntN(20)), m.Put(make([]byte, wire.RTSBytes)), payload)
}

// TestHostile has a node send, among messages, what no well-meaning one sends. Messages of others arrive, and nothing
// outside the targets of its own messages changes; when it is gone nothing of them is left.
func TestHostile(t *testing.T) {
	eachNetwork(t, 25, func(t *testing.T, net *network, _ uint64) {
		bad := net.nodes[2]
		bad.hostile = true
		var junk []*receive
		for _, n := range net.nodes[:2] {
			for i := range uint64(10) {
				junk = append(junk, n.receive(junkTags+i, net.cut(net.r.IntN(40_000))...))
			}
		}
		all := net.begin(12, 0)
		var others []*exchange
		for _, x := range all {
			if x.from != 2 && x.to != 2 {
				others = append(others, x)
			}
		}
		for range 60 {
			bad.junk(net.nodes[net.r.IntN(2)])
			if net.r.IntN(3) == 0 {
				net.progress()
			}
		}
		net.complete(others)
		bad.die()
		net.settle(all)
		for _, x := range all {
			if x.to != 2 {
				x.rv.beside(t)
			}
		}
		for _, rv := range junk {
			rv.beside(t)
		}
	}, nil)
}

// beside fails the test if bytes beside the target of a receive have changed, or any after its end.
func (rv *receive) beside(t *testing.T) {
	t.Helper()
	if !bytes.Equal(rv.filled(rv.bytes()), rv.memory) {
		t.Fatal("bytes beside the target have changed")
	}
	if rv.ended && !bytes.Equal(rv.after, rv.memory) {
		t.Fatal("memory changes after the end")
	}
}

// TestForged: a sender whose memory is read in segments sends fragments that it was not asked for. They are refused,
// and the message ends when the last segment has, not before.
func TestForged(t *testing.T) {
	for name, offset := range map[string]uint64{"data": 0, "broken": fragBroken} {
		t.Run(name, func(t *testing.T) {
			net := newNetwork(t, 1, way{host: []int{0, 0}, segments: true})
			from, to := net.nodes[0], net.nodes[1]
			x := &exchange{to: 1, rv: to.receive(1, 3*Burst), m: from.send(1, 1, 3*Burst)}
			for !to.rx.Waiting() {
				to.step()
			}
			forged := to.rx.Operations()[0].ID
			to.handlers[wire.AMFrag](0, forged, wire.PutWord(make([]byte, wire.WordBytes), offset), make([]byte, 8<<10))
			if to.bad != 1 || x.rv.ended {
				t.Errorf("%d messages are refused; the message has ended: %v", to.bad, x.rv.ended)
			}
			net.settle([]*exchange{x})
			net.check(x)
			to.idle()
		})
	}
}

// TestNothingAsked: a receiver that asks for no bytes in fragments, again and again, is refused, and the sender keeps
// nothing of it.
func TestNothingAsked(t *testing.T) {
	net := newNetwork(t, 1, way{host: []int{0, 0}})
	from := net.nodes[0]
	m := from.send(1, 1, 100)
	for range 5 {
		c := wire.CTS{Operation: 1}
		from.handlers[wire.AMCTS](1, m.request, c.Put(make([]byte, wire.CTSBytes)), nil)
	}
	if left := from.protocol.Left(); from.bad != 5 || left.Streams != 0 {
		t.Errorf("%d messages are refused, %d streams are left", from.bad, left.Streams)
	}
	c := wire.CTS{Operation: 1, Length: 100}
	head := c.Put(make([]byte, wire.CTSBytes))
	if from.handlers[wire.AMCTS](1, m.request, head, nil); from.protocol.Left().Streams != 1 {
		t.Error("what asks for all of it is refused")
	}
	from.refuses("a second CTS", wire.AMCTS, 1, m.request, head, 0)
}

// TestSecondOffer: an offer for a request with which this side helps already is refused, and one without a round in the
// shared words is done with at once.
func TestSecondOffer(t *testing.T) {
	net := newNetwork(t, 1, way{host: []int{0, 0}, words: true})
	from, to := net.nodes[0], net.nodes[1]
	const n = 3 * Burst
	m := from.send(1, 1, n)
	rv := to.receive(1, n)
	offer := wire.Offer{Addr: rv.target.Buf, Want: n, Chunk: wire.MaxChunk, Round: 9}
	ask := func() { from.handlers[wire.AMAssist](1, m.request, offer.Put(make([]byte, wire.OfferBytes)), nil) }
	if ask(); from.bad != 0 || from.protocol.Left().Assists != 0 {
		t.Errorf("without a round: %d refused, left %+v", from.bad, from.protocol.Left())
	}
	var rounds claim.Rounds
	round, ok := rounds.Begin(claim.MessageWords(&to.shared[0]), claim.Chunks(n, wire.MaxChunk))
	if offer.Round = round; !ok {
		t.Fatal("no round begins")
	}
	if ask(); from.bad != 0 || from.protocol.Left().Assists != 1 {
		t.Errorf("with a round: %d refused, left %+v", from.bad, from.protocol.Left())
	}
	if ask(); from.bad != 1 || from.protocol.Left().Assists != 1 {
		t.Errorf("again: %d refused, left %+v", from.bad, from.protocol.Left())
	}
}

// refuses fails the test unless a node refuses what a call gives it, as one malformed message.
func (n *node) refuses(what string, id hw.AMID, src hw.Source, header uint64, head []byte, bytes int) {
	n.t.Helper()
	before := n.bad
	if n.handlers[id](src, header, head, make([]byte, bytes)); n.bad != before+1 {
		n.t.Errorf("%s: %d messages are refused", what, n.bad-before)
	}
}

// TestRefusedFragments: fragments that are not the next of an operation, or of its sender.
func TestRefusedFragments(t *testing.T) {
	net := newNetwork(t, 1, way{host: []int{0, 1, 2}, nogets: true})
	from, to := net.nodes[0], net.nodes[1]
	x := &exchange{to: 1, rv: to.receive(1, 100), m: from.send(1, 1, 100)}
	for !to.rx.Waiting() {
		to.step()
	}
	op := to.rx.Operations()[0].ID
	at := func(v uint64) []byte { return wire.PutWord(make([]byte, wire.WordBytes), v) }
	to.refuses("another sender", wire.AMFrag, 2|otherHosts, op, at(0), 8)
	to.refuses("another generation", wire.AMFrag, otherHosts, op+1<<32, at(0), 8)
	to.refuses("a later offset", wire.AMFrag, otherHosts, op, at(8), 8)
	to.refuses("an offset that wraps", wire.AMFrag, otherHosts, op, at(^uint64(0)-3), 8)
	to.refuses("too many bytes", wire.AMFrag, otherHosts, op, at(0), 101)
	to.refuses("no offset", wire.AMFrag, otherHosts, op, nil, 8)
	to.refuses("the end, of another sender", wire.AMFrag, 2|otherHosts, op, at(fragBroken), 0)
	to.refuses("no word on help", wire.AMHelped, otherHosts, op, nil, 0)
	to.refuses("help that was not asked for", wire.AMHelped, otherHosts, op, at(0), 0)
	net.settle([]*exchange{x})
	net.check(x)
}

// TestRefusedAnswers: answers to a request that are not of its receiver, or not of its bytes.
func TestRefusedAnswers(t *testing.T) {
	net := newNetwork(t, 1, way{host: []int{0, 1, 2}, software: true})
	from, to := net.nodes[0], net.nodes[1]
	const n = 1 << 20
	x := &exchange{to: 1, rv: to.receive(1, n), m: from.send(1, 1, n)}
	id := x.m.request
	b := func() []byte { return make([]byte, wire.OfferBytes) }
	cts, long := wire.CTS{Operation: 1, Length: n}, wire.CTS{Operation: 1, Length: n + 1}
	offer := wire.Offer{Round: 1, Addr: 1 << 20, Want: n + 1, Chunk: wire.MaxChunk}
	land := wire.Landing{Operation: 1, Addr: 1 << 20, Want: n + 1}
	const own, other = hw.Source(1 | otherHosts), hw.Source(2 | otherHosts)
	from.refuses("CTS of another", wire.AMCTS, other, id, cts.Put(b()), 0)
	from.refuses("CTS for another generation", wire.AMCTS, own, id+1<<32, cts.Put(b()), 0)
	from.refuses("CTS beyond the message", wire.AMCTS, own, id, long.Put(b()), 0)
	from.refuses("offer beyond the message", wire.AMAssist, own, id, offer.Put(b()), 0)
	from.refuses("landing beyond the message", wire.AMLanding, own, id, land.Put(b()), 16)
	from.refuses("put without a landing", wire.AMPut, own, id, wire.PutSpan(b(), 0, 8), 0)
	for !to.rx.Waiting() {
		to.step()
	}
	for from.protocol.Left().Putters == 0 {
		from.step()
	}
	land.Want = n
	from.refuses("a second landing", wire.AMLanding, own, id, land.Put(b()), 16)
	from.refuses("put of another", wire.AMPut, other, id, wire.PutSpan(b(), 0, 8), 0)
	from.refuses("put beyond the landing", wire.AMPut, own, id, wire.PutSpan(b(), n-4, 8), 0)
	from.refuses("put that wraps", wire.AMPut, own, id, wire.PutSpan(b(), ^uint64(0)-3, 8), 0)
	op := to.rx.Operations()[0].ID
	to.refuses("help of another", wire.AMHelped, other, op, wire.PutAck(b(), 0), 0)
	for len(from.flying) == 0 { // a put that the receiver has left to this side
		from.step()
		to.step()
		if x.rv.ended {
			t.Fatal("the sender has put nothing")
		}
	}
	from.refuses("put while the device is at one", wire.AMPut, own, id, wire.PutSpan(b(), 0, 8), 0)
	net.settle([]*exchange{x})
	net.check(x)
	from.idle()
	to.idle()
}
