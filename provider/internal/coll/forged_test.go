package coll

import (
	"bytes"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/internal/wire"
)

// forgedSlice is the length of a forgery's slices, in bytes.
const forgedSlice = 100000

// forgery is an all-to-all of two members of different hosts that has begun at one of them, which takes in what the
// other has not sent.
type forgery struct {
	m    *mesh
	g    *Group
	coll *Protocol
	src  hw.Source
	op   *collOp
	own  wire.CollStep // that the other member may send
	head [64]byte
}

// forge begins the operation, in which chunks go as the variable says.
func forge(t *testing.T, chunks string) *forgery {
	m := newMesh(t, onHosts(2), func(c *config.Config) { c.AllToAll = chunks })
	g := m.join()[0]
	m.postAllToAll(0, g, make([]byte, 2*forgedSlice), make([]byte, 2*forgedSlice), forgedSlice)
	y := &forgery{m: m, g: g, coll: m.nodes[0].protocol, src: g.members[1].src, op: g.runs.under[0]}
	y.own = wire.CollStep{Seq: 0, Kind: collective.AllToAll, Rank: 1}
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
	if got := y.m.nodes[0].malformed; got != malformed {
		t.Errorf("%d of %d messages are counted", got, malformed)
	}
	if y.g.runs.under[0] != y.op || y.op.status != fi.Success || y.op.exchange.engine.Report().Received != 0 {
		t.Error("a forged message ended the operation, or its bytes count")
	}
	if err := y.g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := y.m.outcome(0); err != fi.ECANCELED {
		t.Errorf("ends with %v", err)
	}
}

// target is an offer with a key of so many bytes.
func target(step wire.CollStep, length uint64, key int) wire.CollTarget {
	h := wire.CollTarget{CollStep: step, Length: length}
	h.SetKey(bytes.Repeat([]byte{9}, key))
	return h
}

// TestPutForged: targets and words of puts that no member has sent are dropped and counted.
func TestPutForged(t *testing.T) {
	y := forge(t, "put")
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
	const short = meshKey - 1
	targets := []wire.CollTarget{
		target(self, forgedSlice, meshKey), target(none, forgedSlice, meshKey), target(ahead, forgedSlice, meshKey),
		target(own, 0, meshKey), target(own, forgedSlice, 0), target(own, forgedSlice, short),
		target(own, forgedSlice, wire.CollKey),
		target(own, forgedSlice, meshKey), target(own, forgedSlice, meshKey), // the last again
	}
	for i := range targets {
		y.cts(&targets[i])
	}
	y.early(func(later wire.CollStep) interface{ Put(b []byte) []byte } {
		h := target(later, forgedSlice, meshKey)
		return &h
	})
	y.end(t, len(puts)+len(targets)) // the first offer holds, and one before its operation is too many
}

// TestGetForged: offers, grants and refusals that no member has sent are dropped and counted.
func TestGetForged(t *testing.T) {
	y := forge(t, "get")
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
	q.target = putTarget{transport: &Transport{}} // an offer over a transport that is not the path's: nothing is got
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

// TestExchangeForged: chunks and words that no member has sent are dropped and counted.
func TestExchangeForged(t *testing.T) {
	c := newMesh(t, onHost(2), func(c *config.Config) { c.Sched = config.Yes })
	groups := c.join()
	g := groups[0]
	const slice = 20000
	buf, memory := make([]byte, 2*slice), make([]byte, 4*slice)
	out := memory[slice : 3*slice]
	c.postAllToAll(0, g, buf, out, slice)
	coll, src := c.nodes[0].protocol, g.members[1].src
	o := g.runs.under[0]
	own := wire.CollStep{Seq: 0, Kind: collective.AllToAll, Rank: 1}
	self, none, ahead := own, own, own
	self.Rank, none.Rank, ahead.Seq = 0, 1<<20, 1<<30
	first := exchange.Chunk{Total: slice, Length: 64}
	head, payload := make([]byte, 64), bytes.Repeat([]byte{1}, 64)
	for _, h := range []wire.CollChunk{
		{CollStep: own, Part: exchange.Chunk{Total: slice, Offset: 100, Length: 64}},        // not the next
		{CollStep: own, Part: exchange.Chunk{Total: slice, Offset: slice - 10, Length: 64}}, // beyond the end
		// with more bytes than it says
		{CollStep: own, Part: exchange.Chunk{Total: slice, Length: 10}},
		{CollStep: self, Part: first}, {CollStep: ahead, Part: first}, {CollStep: none, Part: first},
	} {
		coll.onStep(src, g.id, h.Put(head), payload)
	}
	coll.onStep(src, g.id+1<<32, (&wire.CollChunk{CollStep: own, Part: first}).Put(head), payload) // of another group
	beyond := wire.CollWord{CollStep: own, Word: exchange.Word{Got: slice + 1, Invite: true}}
	coll.onNote(src, g.id, beyond.Put(head), nil)
	later := own
	later.Seq = 7
	for _, word := range []exchange.Word{{Got: 1}, {Low: 1}, {Have: 1}} { // before it begins
		coll.onNote(src, g.id, (&wire.CollWord{CollStep: later, Word: word}).Put(head), nil)
	}
	if m := &g.members[1]; m.ahead != nil || m.early != 0 {
		t.Error("a word about bytes is kept")
	}
	if g.runs.under[0] != o || o.status != fi.Success || o.exchange.engine.Report().Received != 0 {
		t.Error("a forged message ended the operation, or its bytes were taken")
	}
	for i, b := range memory {
		if b != 0 {
			t.Fatalf("byte %d was written", i)
		}
	}
	c.postAllToAll(1, groups[1], buf, make([]byte, 2*slice), slice)
	for i := range 2 {
		if err := c.outcome(i); err != fi.Success {
			t.Errorf("rank %d ends with %v", i, err)
		}
	}
}

// TestRelayForged: notes and pieces that no member has sent are dropped and counted: of strangers, for
// other operations, that were not granted, and requests without end.
func TestRelayForged(t *testing.T) {
	c := newMesh(t, onHosts(4), nil)
	for _, n := range c.nodes {
		n.groups.UseRelays()
	}
	groups := c.join()
	g := groups[0]
	const slice = 100000
	bufs := [][]byte{make([]byte, 4*slice), make([]byte, 4*slice)}
	c.postAllToAll(0, g, bufs[0], bufs[1], slice)
	coll, src := c.nodes[0].protocol, g.members[1].src
	o, places := g.runs.under[0], coll.cfg.RelaySize/relayPiece
	own := wire.CollStep{Seq: 0, Kind: collective.AllToAll, Rank: 1}
	other, ahead, kind := own, own, own
	other.Rank, ahead.Seq, kind.Kind = 2, 9, collective.AllGather
	head, payload := make([]byte, 64), bytes.Repeat([]byte{1}, relayPiece)
	ask := exchange.Note{Kind: exchange.NoteAsk, Serial: 1, Third: 1}
	for _, h := range []wire.CollRelay{
		{CollStep: other, Note: ask}, {CollStep: ahead, Note: ask}, {CollStep: kind, Note: ask},
		{CollStep: own, Note: exchange.Note{Kind: exchange.NoteAsk, Third: 0}},    // from rank 1 to rank 1
		{CollStep: own, Note: exchange.Note{Kind: exchange.NoteAsk, Third: 1000}}, // to no member
		{CollStep: own, Note: exchange.Note{Kind: exchange.NoteGrant, Serial: 1 << 30, Count: 1}},
		{CollStep: own, Note: exchange.Note{Kind: exchange.NoteEnd, Serial: 7}},
	} {
		coll.onNote(src, g.id, h.Put(head), nil)
	}
	for i := range uint32(1000) {
		more := wire.CollRelay{CollStep: own, Note: exchange.Note{Kind: exchange.NoteAsk,
			Serial: i + 2, Third: 1}}
		coll.onNote(src, g.id, more.Put(head), nil)
	}
	for _, h := range []wire.CollPiece{
		{CollStep: own, Part: exchange.Piece{Total: slice, Third: exchange.Own, Number: 100}}, // before the slice
		{CollStep: own, Part: exchange.Piece{Total: slice + 1, Third: exchange.Own}},
		{CollStep: own, Part: exchange.Piece{Total: slice, Third: 0}}, // its own, and said otherwise
		{CollStep: own, Part: exchange.Piece{Total: slice, Third: 3}}, // this member's
		{CollStep: own, Part: exchange.Piece{Total: slice, Third: exchange.Own, Offset: 10}},
		{CollStep: own, Part: exchange.Piece{Total: slice, Third: exchange.Own, Offset: relayPiece}},
		{CollStep: own, Part: exchange.Piece{Total: slice, Third: 1, Hop: true, Serial: 1 << 20}}, // not asked
		{CollStep: own, Part: exchange.Piece{Total: slice, Third: 2, Hop: true, Serial: 2}},       // for another target
		{CollStep: ahead, Part: exchange.Piece{Total: slice, Third: exchange.Own}},
	} {
		coll.onStep(src, g.id, h.Put(head), payload)
	}
	rep := o.exchange.engine.Report()
	if g.runs.under[0] != o || o.status != fi.Success || rep.Received != 0 || rep.Forged < 9 || rep.Late != 1 {
		t.Errorf("after forged messages: %v, %+v", o.status, rep)
	}
	if granted := places - coll.store.Free(); granted == 0 || granted > 16 {
		t.Errorf("%d places for the requests of one member", granted)
	}
	for _, b := range bufs[1] {
		if b != 0 {
			t.Fatal("forged bytes were written")
		}
	}
	c.postAllToAll(1, groups[1], bufs[0], make([]byte, 4*slice), slice)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if coll.store.Free() != places {
		t.Error("memory stays in use when the group is left")
	}
	c.outcome(0)
	c.outcome(1)
}
