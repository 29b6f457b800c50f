package provider

import (
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/wire"
)

// forgedSlice is the length of a forgery's slices, in bytes.
const forgedSlice = 100000

// forgery is an all-to-all of two members over UDP that has begun at one of them, which takes in what the other has not
// sent.
type forgery struct {
	c    *circle
	g    *Group
	coll *collectives
	ep   *leasedEP
	src  hw.Source
	op   *collOp
	own  wire.CollStep // that the other member may send
	head [64]byte
}

// forge begins the operation, and holds the member's progress until end.
func (f copyForm) forge(t *testing.T) *forgery {
	c := f.circles()["UDP"](t, 2, nil)
	g, s := c.joinAll([]int{0, 1})[0], c.sides[0]
	in, out := make([]byte, 2*forgedSlice), make([]byte, 2*forgedSlice)
	c.postAllToAll(0, g, in, out, forgedSlice)
	s.ep.Progress()
	y := &forgery{c: c, g: g, coll: leasedOf(s.ep).collective, ep: leasedOf(s.ep), src: g.members[1].src, op: g.ops[0]}
	y.own = wire.CollStep{Seq: 0, Kind: collective.AllToAll, Rank: 1}
	y.ep.rx.acquire()
	return y
}

// cts and step take in a message of the other member.
func (y *forgery) cts(h interface{ Put(b []byte) []byte }) {
	y.coll.long.onCTS(y.src, y.g.id, h.Put(y.head[:]), nil)
}

func (y *forgery) step(h interface{ Put(b []byte) []byte }, payload string) {
	y.coll.onStep(y.src, y.g.id, h.Put(y.head[:]), []byte(payload))
}

// early takes in offers of operations that have not begun: as many as are kept, and one too many.
func (y *forgery) early(offer func(wire.CollStep) interface{ Put(b []byte) []byte }) {
	later := y.own
	for later.Seq = 1; later.Seq < 1<<20 && y.g.members[1].early+earlyOffer <= maxEarlyChunks; later.Seq++ {
		y.cts(offer(later))
	}
	y.cts(offer(later))
}

// end checks how many messages were counted as malformed, and that none had an effect.
func (y *forgery) end(t *testing.T, malformed int) {
	if got := y.ep.malformedHere; got != uint64(malformed) {
		t.Errorf("%d of %d messages are counted", got, malformed)
	}
	if y.g.ops[0] != y.op || y.op.status != fi.Success || y.op.exchange.engine.Report().Received != 0 {
		t.Error("a forged message ended the operation, or its bytes count")
	}
	y.ep.rx.give()
	if err := y.g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := y.c.outcome(0); err != fi.ECANCELED {
		t.Errorf("ends with %v", err)
	}
}

// TestPutForged: targets and words of puts that no member has sent are dropped and counted.
func TestPutForged(t *testing.T) {
	y := byPuts.forge(t)
	own := y.own
	self, none, ahead := own, own, own
	self.Rank, none.Rank, ahead.Seq = 0, 1<<20, 1<<30
	first := exchange.Chunk{Total: forgedSlice, Length: 64}
	put := func(step wire.CollStep, part exchange.Chunk, bytes uint64) wire.CollPut {
		return wire.CollPut{CollChunk: wire.CollChunk{CollStep: step, Part: part}, Bytes: bytes}
	}
	puts := []wire.CollPut{
		put(own, exchange.Chunk{Total: forgedSlice, Offset: 100, Length: 64}, 64), // not the next
		put(own, exchange.Chunk{Total: forgedSlice + 1, Length: 64}, 64),
		put(own, first, 65), put(self, first, 64), put(none, first, 64), put(ahead, first, 64),
	}
	for i := range puts {
		y.step(&puts[i], "")
	}
	targets := []wire.CollTarget{
		{CollStep: self, Length: forgedSlice}, {CollStep: none, Length: forgedSlice},
		{CollStep: ahead, Length: forgedSlice}, {CollStep: own},
		{CollStep: own, Length: forgedSlice}, {CollStep: own, Length: forgedSlice}, // the last again
	}
	for i := range targets {
		y.cts(&targets[i])
	}
	y.early(func(later wire.CollStep) interface{ Put(b []byte) []byte } {
		return &wire.CollTarget{CollStep: later, Length: forgedSlice}
	})
	y.end(t, len(puts)+len(targets)) // the first offer holds, and one before its operation is too many
}

// TestGetForged: offers, grants and refusals that no member has sent are dropped and counted.
func TestGetForged(t *testing.T) {
	y := byGets.forge(t)
	own := y.own
	self, none, ahead, kind := own, own, own, own
	self.Rank, none.Rank, ahead.Seq, kind.Kind = 0, 1<<20, 1<<30, collective.AllToAllV
	first := exchange.Chunk{Total: forgedSlice, Length: 64}
	grants := []wire.CollGrant{
		{CollStep: own, Part: first}, // nothing is offered
		{CollStep: self, Part: first}, {CollStep: none, Part: first}, {CollStep: ahead, Part: first},
		{CollStep: own, Part: exchange.Chunk{Total: forgedSlice}},
	}
	for i := range grants {
		y.cts(&grants[i])
	}
	refusals := []wire.CollRefusal{
		{CollStep: self}, {CollStep: none}, {CollStep: ahead}, {CollStep: kind},
		{CollStep: own, From: forgedSlice},
		{CollStep: own, From: wire.MaxMessage},
	}
	for i := range refusals {
		y.step(&refusals[i], "")
	}
	y.step(&wire.CollRefusal{CollStep: own}, "x")
	y.step(&wire.CollPut{CollChunk: wire.CollChunk{CollStep: own, Part: first}, Bytes: 64}, "") // where none is taken
	q := y.op.exchange.peers.at(0)
	q.target = putTarget{port: &collPort{}} // an offer over a transport that is not the path's: nothing is got
	bad := []exchange.Chunk{
		{Total: forgedSlice, Offset: 100, Length: 64},
		{Total: forgedSlice, Offset: forgedSlice - 64, Length: 64},
	}
	for _, part := range bad {
		y.cts(&wire.CollGrant{CollStep: own, Part: part})
	}
	y.early(func(later wire.CollStep) interface{ Put(b []byte) []byte } {
		return &wire.CollGrant{CollStep: later, Part: first}
	})
	y.end(t, len(grants)+len(refusals)+len(bad)+3)
}
