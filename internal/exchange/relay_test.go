package exchange

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// slowDown has a member believe that some of its paths are slow and that links have room, so that relays
// are of use at any time.
func (n *net) slowDown(m *member) {
	if n.slow == 0 {
		return
	}
	m.e.rate = 1e9
	for p := range m.e.cfg.Peers {
		q := m.e.at(int32(p))
		q.rate, q.rest, q.rested = 1e9, 0, q.heard
		if m.slow[p] {
			q.rate = 1
		}
	}
	m.e.in.idles = m.e.in.idles || n.r.IntN(4) == 0
	if n.r.IntN(8) == 0 {
		m.e.shares = 0
	}
}

// pieceData takes the bytes of a piece, which a transport copies.
func (n *net) pieceData(m *member, rank int, a *Action) []byte {
	size := m.e.cfg.Piece
	if a.Place >= 0 {
		data := bytes.Clone(m.e.cfg.Store.Data(a.Place))
		for i := range m.e.cfg.Store.Data(a.Place) {
			m.e.cfg.Store.Data(a.Place)[i] = 0xDD
		}
		if !n.leak {
			m.e.Passed(a)
		}
		return data
	}
	slice := m.in[n.rankOf(rank, a.Slice)]
	return bytes.Clone(slice[int64(len(slice))-(int64(a.Piece.Number)+1)*size:][:size])
}

// partOfPiece delivers a part of a piece, and returns whether it was the last one.
func (n *net) partOfPiece(m *member, from int, msg *message) bool {
	length := int64(len(msg.data)) - msg.at
	if length > 1 {
		length = 1 + n.r.Int64N(length)
	}
	c := msg.piece
	c.Offset = msg.at
	data := msg.data[msg.at:][:length]
	msg.at += length
	if c.Hop {
		place, ok := m.e.OnRelayed(n.now, from, &c, length)
		n.takes(ok, msg)
		if place >= 0 {
			copy(m.e.cfg.Store.Data(place)[c.Offset:], data)
		}
	} else {
		origin, off, keep, ok := m.e.OnPiece(n.now, from, &c, length)
		n.takes(ok, msg)
		if keep {
			copy(m.out[n.rankOf(msg.to, origin)][off:], data)
		}
	}
	return msg.at == int64(len(msg.data))
}

// late answers what comes for an operation that is over.
func (n *net) late(msg *message) {
	if msg.kind == SendNote && msg.note.Kind == NoteAsk {
		n.post(message{
			from: msg.to, to: msg.from, kind: SendNote, note: Note{Kind: NoteRefuse, Serial: msg.note.Serial},
		})
	}
}

// lieAboutRelays brings pieces and notes that no member has sent, and chunks over what pieces have brought.
func (n *net) lieAboutRelays(m *member, from int) {
	if !m.e.relays.relaying() {
		return
	}
	in, size, forged := &m.e.at(int32(from)).in, m.e.cfg.Piece, m.e.report.Forged
	c := Piece{Total: in.want, Third: Own, Number: uint32(n.r.IntN(100))}
	off := in.want - (int64(c.Number)+1)*size
	switch lie := n.r.IntN(7); {
	case lie == 0 && off < in.got && !in.over && !in.tail.has(c.Number):
		m.e.OnPiece(n.now, from, &c, size) // over what has come
	case lie == 1 && in.tail.top() > 0 && !in.over:
		head := Chunk{Total: in.want, Offset: in.got, Length: in.want - in.got}
		m.e.Arrived(n.now, from, &head, in.got, in.want-in.got, true)
	case lie == 2:
		m.e.OnPiece(n.now, from, &Piece{Total: in.want, Third: int32(m.e.cfg.Peers)}, size)
	case lie == 3:
		m.e.OnNote(n.now, from, Note{Kind: NoteAsk, Serial: 1 << 30, Third: int32(from)})
	case lie == 5:
		p := m.e.at(int32(from))
		m.e.OnWord(n.now, from, Word{Got: p.acked, Low: uint32(p.tail/size) + 1})
	case lie == 4:
		m.e.OnNote(n.now, from, Note{Kind: NoteGrant, Serial: 1 << 30, Count: 1})
	default:
		for k := range m.e.relays.asks { // beyond what was granted
			if a := &m.e.relays.asks[k]; a.open && a.from == int32(from) && a.received == a.granted {
				m.e.OnRelayed(n.now, from, &Piece{Total: 1 << 20, Hop: true, Serial: a.serial, Third: a.target}, size)
				forged++
			}
		}
		forged--
	}
	if m.e.report.Forged != forged+1 {
		n.t.Fatalf("%s: a lie about relays was taken", n.what)
	}
}

// relayNet is a group with members that relay.
func relayNet(t interface {
	Fatalf(format string, args ...any)
}, r *rand.Rand, size int) *net {
	cfg := randomConfig(r)
	cfg.Piece = cfg.Short + 1 + r.Int64N(10)
	n := newNet(t, r, size, 600, cfg)
	n.slow = 1 + r.IntN(4)
	for _, m := range n.members {
		m.e.cfg.Store = NewStore(cfg.Piece*(1+r.Int64N(12)), cfg.Piece)
		for range m.e.cfg.Peers {
			m.slow = append(m.slow, r.IntN(n.slow) == 0)
		}
	}
	return n
}

// empty checks that all memory for others is free again.
func (n *net) empty() {
	for i, m := range n.members {
		if s := m.e.cfg.Store; !m.dead && s.Free() != len(s.data) {
			n.t.Fatalf("%s: rank %d keeps %d of %d places", n.what, i, len(s.data)-s.Free(), len(s.data))
		}
	}
}

// add sums what engines say.
func (r *Report) add(o Report) {
	r.Relayed, r.Carried, r.Asked = r.Relayed+o.Relayed, r.Carried+o.Carried, r.Asked+o.Asked
	r.Refused, r.Again, r.Twice = r.Refused+o.Refused, r.Again+o.Again, r.Twice+o.Twice
	r.Late += o.Late
}

// TestRelays: pieces that go through relays arrive once, whatever the network does; two operations.
func TestRelays(t *testing.T) {
	var all Report
	for seed := range seeds(150) {
		r := rand.New(rand.NewPCG(seed, 4))
		n := relayNet(t, r, 4+int(seed%14))
		n.forge = seed%4 == 0
		for range 2 {
			n.run()
			n.passedOn()
			n.empty()
			for _, m := range n.members {
				all.add(m.e.Report())
			}
			n.load(600)
		}
	}
	if all.Relayed == 0 || all.Carried != all.Relayed || all.Late != 0 {
		t.Errorf("not all is passed on: %+v", all)
	}
	t.Logf("%+v", all)
}

// TestRelayDeath: members die while they relay: the others end, with the right bytes if they do not need
// more of them.
func TestRelayDeath(t *testing.T) {
	var all Report
	whole := 0
	for seed := range seeds(300) {
		r := rand.New(rand.NewPCG(seed, 6))
		size := 4 + int(seed%14)
		n := relayNet(t, r, size)
		n.dies(seed%2 == 0)
		for i, m := range n.members {
			n.judge(i)
			if !m.dead && !m.completed {
				t.Fatalf("seed %d, %s: rank %d never ends: %+v", seed, n.what, i, m.e.Report())
			}
			if !m.dead && !m.e.Failed() {
				whole++
				all.add(m.e.Report())
			}
		}
		n.empty()
	}
	if whole == 0 || (all.Again == 0 || all.Twice == 0) && !testing.Short() {
		t.Errorf("%d members without an error: %+v", whole, all)
	}
	t.Logf("%d members without an error: %+v", whole, all)
}

// dies runs an operation in which one or two members die, at any time or when they have sent and
// received what is theirs.
func (n *net) dies(unneeded bool) {
	size := len(n.members)
	victim := n.r.IntN(size)
	if unneeded { // it has almost nothing to send or receive
		for i, m := range n.members {
			if i != victim {
				v := n.members[victim]
				m.in[victim], v.out[i], v.want[i] = []byte{1}, []byte{0xEE}, []byte{1}
				v.in[i], m.out[victim], m.want[victim] = []byte{2}, []byte{0xEE}, []byte{2}
			}
		}
	}
	for i := range n.members {
		n.begin(i)
	}
	for range n.r.IntN(80 * size) {
		n.step()
	}
	n.die(victim)
	for n.step() {
	}
}

// TestRelayTimeout: a piece that does not arrive is sent again directly, and the relay's copy is
// dropped.
func TestRelayTimeout(t *testing.T) {
	e, now := relayEngine(t)
	pieces := 0
	for a, ok := e.Next(now); ok; a, ok = e.Next(now) {
		if a.Kind == SendPiece {
			pieces++
		}
	}
	if pieces != 2 {
		t.Fatalf("%d pieces go through a relay that has granted two", pieces)
	}
	e.OnWord(now, 2, Word{Got: e.at(2).acked, Have: 2, Rested: true, Idle: true})
	at, ok := e.Wake()
	if !ok || at < now.Add(relayPatience) {
		t.Fatalf("it looks for late pieces at %v, %v", at.Sub(now), ok)
	}
	e.Tick(at)
	again := 0
	for _, a := range drain(e, at) {
		if a.Kind == SendPiece && a.Piece.Number == 0 && !a.Piece.Hop && a.Peer == 2 {
			again++
		}
	}
	if again != 1 || e.report.Again != 1 {
		t.Errorf("after %v piece 0 is sent %d times: %+v", relayPatience, again, e.report)
	}
}

// TestRelayGone: pieces that went through a relay are sent again as soon as it is gone.
func TestRelayGone(t *testing.T) {
	e, now := relayEngine(t)
	drain(e, now)
	e.Gone(now, 0)
	again := 0
	for _, a := range drain(e, now) {
		if a.Kind == SendPiece && !a.Piece.Hop && a.Peer == 2 {
			again++
		}
		if a.Peer == 0 {
			t.Errorf("something for a peer that is gone: %+v", a)
		}
	}
	if again != 2 {
		t.Errorf("%d pieces are sent again", again)
	}
}

// TestRelayRules: a relay takes what it has granted, in order and to the target that was asked for, and
// no more than it has room for; a target that is gone takes the request back.
func TestRelayRules(t *testing.T) {
	cfg := DefaultConfig(3)
	cfg.Piece = 8 << 10
	cfg.Store = NewStore(3*cfg.Piece, cfg.Piece)
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.Start(1, []int64{0, 1 << 20, 0}, make([]int64, 3))
	drain(e, 1)
	e.OnNote(1, 0, Note{Kind: NoteAsk, Serial: 5, Third: 2, Rate: 1})
	if granted := drain(e, 1); len(granted) != 0 {
		t.Fatalf("it relays before its own traffic: %+v", granted)
	}
	for p := range e.cfg.Peers {
		answer(e, 2, p, Word{})
	}
	for e.left != 0 {
		drain(e, 3)
		answer(e, 3, 1, Word{})
	}
	e.relays.grant()
	grants := drain(e, 3)
	for len(grants) != 0 && grants[0].Kind != SendNote {
		grants = grants[1:]
	}
	if len(grants) != 3 || grants[2].Note.Count != 3 || cfg.Store.Free() != 0 {
		t.Fatalf("three places are granted so: %+v", grants)
	}
	good := Piece{Total: 1 << 20, Number: 1, Hop: true, Third: 2, Serial: 5}
	for i, change := range []func(c *Piece){
		func(c *Piece) { c.Third = 1 }, func(c *Piece) { c.Offset = 1 }, func(c *Piece) { c.Number = 200 },
		func(c *Piece) { c.Total = 100 },
	} {
		bad := good
		if change(&bad); true {
			if _, ok := e.OnRelayed(4, 0, &bad, cfg.Piece); ok {
				t.Errorf("bad piece %d is taken", i)
			}
		}
	}
	if place, ok := e.OnRelayed(4, 1, &good, cfg.Piece); !ok || place >= 0 || e.report.Late != 1 {
		t.Errorf("a piece of another member's request is kept: %d, %v", place, ok)
	}
	if place, ok := e.OnRelayed(4, 0, &good, cfg.Piece); !ok || place < 0 {
		t.Fatalf("a piece is not taken: %d, %v", place, ok)
	}
	onward := drain(e, 4)
	if len(onward) != 1 || onward[0].Peer != 2 || onward[0].Piece.Third != 1 || onward[0].Piece.Hop || e.Done() {
		t.Fatalf("passed on: %+v", onward)
	}
	e.Passed(&onward[0])
	if more := drain(e, 4); len(more) != 1 || more[0].Note.Count != 4 {
		t.Errorf("after that it grants %+v", more)
	}
	e.Gone(5, 2)
	if said := drain(e, 5); len(said) != 1 || said[0].Note.Kind != NoteRefuse || cfg.Store.Free() != 3 {
		t.Errorf("without its target it says %+v and keeps %d places", said, 3-cfg.Store.Free())
	}
}

// TestRelaySoon: a relay grants as many pieces as its path to the target takes in relaySoon, one at least.
func TestRelaySoon(t *testing.T) {
	cfg := DefaultConfig(3)
	cfg.Piece = 8 << 10
	piece := float64(cfg.Piece) / relaySoon.Seconds() // bytes per second for one
	for _, c := range []struct {
		rate    float64
		granted uint32
	}{
		{0, relayGrants}, {piece / 9, 1}, {piece * 1.9, 1}, {piece * 2.1, 2}, {piece * 3.5, 3},
		{piece * 1e9, relayGrants},
	} {
		cfg.Store = NewStore(1<<20, cfg.Piece)
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		e.Start(1, make([]int64, 3), make([]int64, 3))
		e.at(2).rate = c.rate
		e.OnNote(1, 0, Note{Kind: NoteAsk, Serial: 5, Third: 2, Rate: 1})
		last := Note{}
		for _, a := range drain(e, 1) {
			last = a.Note
		}
		if last.Kind != NoteGrant || last.Count != c.granted {
			t.Errorf("%.0f bytes per second: it says %+v, expected %d pieces", c.rate, last, c.granted)
		}
	}
}

// TestRelayIdle: as long as the link of a slow path's target is busy, that may be what holds the path back, and relays
// are asked only if the path needs eight times as long as both hosts; else four times. All of the slice is not given to
// the transport either.
func TestRelayIdle(t *testing.T) {
	for _, c := range []struct {
		rest time.Duration
		idle bool
		asks bool
	}{
		{0, false, true}, {500 * time.Millisecond, false, false}, {500 * time.Millisecond, true, true},
		{time.Second, true, false},
	} {
		e, now := slowPath(t, Word{Rested: true, Rest: c.rest, Idle: c.idle})
		drain(e, now)
		p := e.at(2)
		if asks := e.report.Asked != 0; asks != c.asks || p.left() == 0 {
			t.Errorf("%+v: %d relays are asked, %d bytes left, needs %v, hosts %v",
				c, e.report.Asked, p.left(), p.needs(), e.hosts(p))
		}
	}
}

// relayEngine is slowPath where the targets' links idle, and peer 0 has granted two pieces.
func relayEngine(t *testing.T) (*Engine, congestion.Time) {
	t.Helper()
	e, now := slowPath(t, Word{Rested: true, Idle: true})
	asks := 0
	for _, a := range drain(e, now) {
		if a.Kind == SendNote && a.Note.Kind == NoteAsk {
			asks++
		}
	}
	if e.report.Asked == 0 {
		t.Fatalf("no relay was asked: %+v, %d", e.at(2), asks)
	}
	serial := uint32(0)
	for _, h := range e.relays.pairs[0].helpers {
		if h.open && h.peer == 0 {
			serial = h.serial
		}
	}
	if !e.OnNote(now, 0, Note{Kind: NoteGrant, Serial: serial, Count: 2}) {
		t.Fatal("a grant is refused")
	}
	return e, now
}

// withRelays is one of five members, which may send through relays and knows all paths to be as fast as its own link,
// with what set changes, and a time.
func withRelays(t *testing.T, set func(*Config)) (*Engine, congestion.Time) {
	t.Helper()
	cfg := DefaultConfig(4)
	cfg.Piece = 16 << 10
	cfg.Store = NewStore(1<<20, cfg.Piece)
	set(&cfg)
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.rate = 12.5e6
	for i := range e.cfg.Peers {
		e.at(int32(i)).rate = 12.5e6
	}
	return e, congestion.Time(time.Second)
}

// slowPath is one of five members with a slow path to peer 2, and when its peers have said three times what a word
// says, each time when that path has delivered what was on its way.
func slowPath(t *testing.T, w Word) (*Engine, congestion.Time) {
	t.Helper()
	const slow = 0.3e6
	e, now := withRelays(t, func(*Config) {})
	e.at(2).rate = slow
	e.Start(now, []int64{10 << 10, 10 << 10, 1 << 20, 10 << 10}, make([]int64, 4))
	for _, from := range []int{0, 1, 2, 3} {
		e.Arrived(now, from, &Chunk{}, 0, 0, true)
	}
	for range 3 {
		drain(e, now)
		on := e.at(2).sent - e.at(2).acked
		now = now.Add(time.Duration(float64(on) / slow * second))
		for p := range e.cfg.Peers {
			answer(e, now, p, w)
		}
	}
	return e, now
}
