package provider

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/weft-fabric/weft/fi"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/exchange"
	"github.com/weft-fabric/weft/provider/collective"
	"github.com/weft-fabric/weft/provider/wire"
)

// relayCircle is sides of which every one sends through the others, and their group.
func relayCircle(t *testing.T, n int, change func(*config.Config)) (*circle, []*Group) {
	t.Helper()
	c := apartCircle(t, n, change)
	for _, s := range c.sides {
		s.ep.coll.always = true
	}
	return c, c.joinAll(everyRank(n))
}

// kept checks that no side keeps anything for others.
func (c *circle) kept() {
	c.t.Helper()
	for i, s := range c.sides {
		if store := s.ep.coll.store; !s.gone && store.Free() != s.bench.domain.cfg.RelaySize/relayPiece {
			c.t.Errorf("side %d: %d places are free of %d", i, store.Free(), s.bench.domain.cfg.RelaySize/relayPiece)
		}
	}
}

// TestRelayOverUDP: slices arrive whole of which the ends go through other members, with bounded
// memory; groups of three hosts, and with FI_WEFT_ALLTOALL_RELAY=no, have no relays.
func TestRelayOverUDP(t *testing.T) {
	c, groups := relayCircle(t, 5, func(c *config.Config) { c.RelaySize = 64 << 10 })
	r := rand.New(rand.NewPCG(1, 8))
	relayed, carried := uint64(0), uint64(0)
	for range 3 {
		c.allToAll(r, groups, 300<<10+1)
		for _, g := range groups {
			relayed, carried = relayed+g.Report().Relayed, carried+g.Report().Carried
		}
		c.kept()
	}
	if relayed == 0 || carried == 0 {
		t.Errorf("%d bytes went through relays, %d were passed on", relayed, carried)
	}
	if stats := leasedOf(c.sides[0].ep).coll.store; stats.Free() != 8 {
		t.Errorf("%d places in 64 KiB", stats.Free())
	}
	for _, other := range []struct {
		n     int
		relay string
	}{{3, "auto"}, {4, "no"}} {
		c, groups := relayCircle(t, other.n, func(c *config.Config) { c.Relay = other.relay })
		c.allToAll(r, groups, 300<<10)
		if groups[0].relays || groups[0].Report().Relayed != 0 {
			t.Errorf("%d hosts, %q: members relay", other.n, other.relay)
		}
	}
}

// TestRelayMemberGone: a member that leaves while it relays fails what needs it, and nothing else: an
// operation that completes has the right data, and no memory stays in use.
func TestRelayMemberGone(t *testing.T) {
	const slice = 200 << 10
	r := rand.New(rand.NewPCG(1, 9))
	whole := 0
	for round := range 6 {
		c, groups := relayCircle(t, 5, nil)
		in, out := make([][]byte, 5), make([][]byte, 5)
		for i := range 5 {
			in[i], out[i] = randomBytes(r, 5*slice), make([]byte, 5*slice)
			c.postAllToAll(i, groups[i], in[i], out[i], slice)
		}
		for range r.IntN(20 * (round + 1)) {
			c.progress()
		}
		if err := groups[4].Close(); err != nil {
			t.Fatal(err)
		}
		for i := range 4 {
			switch err := c.outcome(i); err {
			case fi.Success:
				whole++
				for j := range 5 {
					if !bytes.Equal(out[i][j*slice:(j+1)*slice], in[j][i*slice:(i+1)*slice]) {
						t.Fatalf("rank %d has the wrong data of rank %d", i, j)
					}
				}
			case fi.ECONNRESET, fi.ECANCELED:
			default:
				t.Errorf("rank %d ends with %v", i, err)
			}
		}
		c.kept()
	}
	t.Logf("%d operations were whole", whole)
}

// TestRelayForged: notes and pieces that no member has sent are dropped and counted: of strangers, for
// other operations, that were not granted, and requests without end.
func TestRelayForged(t *testing.T) {
	c, groups := relayCircle(t, 4, nil)
	s, g := c.sides[0], groups[0]
	const slice = 100000
	bufs := [][]byte{make([]byte, 4*slice), make([]byte, 4*slice)}
	c.postAllToAll(0, g, bufs[0], bufs[1], slice)
	s.ep.Progress()
	coll, src := leasedOf(s.ep).collective, g.members[1].src
	o := g.ops[0]
	r := leasedOf(s.ep).rx
	r.acquire()
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
	if g.ops[0] != o || o.status != fi.Success || rep.Received != 0 || rep.Forged < 9 || rep.Late != 1 {
		t.Errorf("after forged messages: %v, %+v", o.status, rep)
	}
	if granted := s.bench.domain.cfg.RelaySize/relayPiece - coll.store.Free(); granted == 0 || granted > 16 {
		t.Errorf("%d places for the requests of one member", granted)
	}
	for _, b := range bufs[1] {
		if b != 0 {
			t.Fatal("forged bytes were written")
		}
	}
	r.give()
	c.postAllToAll(1, groups[1], bufs[0], make([]byte, 4*slice), slice)
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if coll.store.Free() != s.bench.domain.cfg.RelaySize/relayPiece {
		t.Error("memory stays in use when the group is left")
	}
	c.outcome(0)
	c.outcome(1)
}
