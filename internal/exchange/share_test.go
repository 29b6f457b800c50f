package exchange

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// onHosts puts so many members after each other on one host.
func (n *net) onHosts(each int) {
	n.each = each
	for i, m := range n.members {
		for p := range m.e.cfg.Peers {
			if n.rankOf(i, p)/each == i/each {
				m.e.Near(p)
			}
		}
	}
}

// share has a member read what the others of its host do: often, and not always the truth.
func (n *net) share(rank int) {
	if n.each == 0 || n.r.IntN(3) == 0 {
		return
	}
	uses := make([]Use, 0, n.each)
	for i := rank / n.each * n.each; i < min((rank/n.each+1)*n.each, len(n.members)); i++ {
		switch m := n.members[i]; {
		case i == rank:
		case n.forge && n.r.IntN(4) == 0:
			uses = append(uses, Use{
				On: n.r.IntN(2) == 0, Waits: n.r.IntN(2) == 0, Pairs: n.r.Uint32(), Active: n.r.Uint32(),
				Invited: n.r.Uint32(),
				Share:   math.Float64frombits(n.r.Uint64()), Given: n.r.Uint64(),
				Taken: n.r.Uint64(), Got: n.r.Uint64(),
				Left: int64(n.r.Uint64()), InLeft: int64(n.r.Uint64()),
			})
		case m.dead:
			uses = append(uses, Use{})
		default:
			uses = append(uses, m.e.Use())
		}
	}
	n.members[rank].e.Share(n.now, uses)
}

// TestHosts: members that share the links of their hosts exchange what they have, with relays and without, whatever
// they are made to believe of each other; and in a second operation, in which a member may die.
func TestHosts(t *testing.T) {
	for seed := range seeds(300) {
		r := rand.New(rand.NewPCG(seed, 11))
		size := 2 + int(seed%16)
		var n *net
		if seed%3 == 0 && size >= 4 {
			n = relayNet(t, r, size)
		} else {
			n = newNet(t, r, size, 200, randomConfig(r))
		}
		n.onHosts(1 + r.IntN(size))
		n.forge = r.IntN(2) == 0
		n.run()
		n.load(100)
		if r.IntN(3) != 0 {
			n.run()
			continue
		}
		for i := range n.members {
			n.begin(i)
		}
		for range r.IntN(20 * size) {
			n.step()
		}
		n.die(r.IntN(size))
		for n.step() {
		}
		for i, m := range n.members {
			if n.judge(i); !m.dead && !m.completed {
				t.Fatalf("%s: rank %d never ends", n.what, i)
			}
		}
	}
}

// use is what another member of the host says that has given and got so many bytes more.
func (u Use) more(given, taken, got uint64) []Use {
	u.Given, u.Taken, u.Got = u.Given+given, u.Taken+taken, u.Got+got
	return []Use{u}
}

// TestShareOut: what other members of the host deliver counts as what the own pairs do: their rates fill the link, and
// what they have given it leaves before it is empty. Nothing of one counts that has gone.
func TestShareOut(t *testing.T) {
	e, now := settle(t, 7, Adaptive, 1<<20)
	drain(e, now)
	empty, _ := e.Wake()
	other := Use{On: true, Pairs: 3, Active: 3, Share: e.rate, Left: 1 << 20, Given: math.MaxUint64 - 10}
	e.Share(now, other.more(0, 0, 0))
	if at, _ := e.Wake(); at != empty {
		t.Errorf("bytes that were given before are counted: the link is empty at %v and not %v", at, empty)
	}
	const given = 100_000
	e.Share(now, other.more(given, 0, 0))
	later, _ := e.Wake()
	if want := empty.Add(e.airtime(given)); later < want-10 || later > want+10 {
		t.Errorf("the link is empty at %v, want %v: what others have given it comes before", later, want)
	}
	e.shares = 0
	if e.Tick(later - 1); e.begun.count != 1 {
		t.Error("a pair begins while others fill the link")
	}
	carried := e.carried
	if e.Share(now, other.more(given, given, 0)); e.carried != carried+given {
		t.Errorf("%d bytes are counted as delivered, want %d", e.carried-carried, given)
	}
	e.Share(now, []Use{{}})
	if e.others.share != 0 || e.others.pairs != 0 || e.others.left != 0 || e.others.ranks != 0 {
		t.Errorf("one that has gone counts with %+v", e.others)
	}
	if e.fill(later - 1); e.begun.count == 1 {
		t.Error("no pair begins on a link that idles")
	}
}

// TestShareMost: the most peers at a time are those of all members of the host, but one of each.
func TestShareMost(t *testing.T) {
	for others := range uint32(5) {
		e, now := settle(t, 7, Adaptive, 1<<20)
		e.cfg.Most = 4
		e.Share(now, []Use{{On: true, Pairs: others}, {}})
		e.rate, e.shares = 1e9, 0 // there is room for all
		e.fill(now)
		if want := max(1, 4-int(others)); e.begun.count != want {
			t.Errorf("others send to %d peers at a time, this one to %d, want %d", others, e.begun.count, want)
		}
	}
}

// invites returns how many senders a receiver invites in a period in which nothing comes to it.
func invites(e *Engine, now *congestion.Time, uses ...Use) uint64 {
	before := e.report.Invited
	*now = now.Add(e.in.period())
	e.Share(*now, uses)
	e.Tick(*now)
	return e.report.Invited - before
}

// TestShareIn: a receiver invites nobody while others of its host fill the link, nor in a period in which another one
// has, nor when another one that has senders to invite has invited fewer.
func TestShareIn(t *testing.T) {
	const peers, slice = 7, 1 << 20
	e, now := receiving(t, peers, slice)
	drain(e, now)
	u := Use{On: true, Invited: 5}
	for _, c := range []struct {
		what   string
		change func()
		want   uint64
	}{
		{"the other one is new", func() {}, 1},
		{"it does nothing", func() {}, 1},
		{"it fills the link", func() { u.Got += uint64(125e6 * e.in.period().Seconds()) }, 0},
		{"it does nothing again", func() {}, 1},
		{"it has invited a sender", func() { u.Invited++ }, 0},
		{"it has invited more, and has senders to invite", func() { u.Waits = true }, 1},
		{"it has invited fewer, in an operation of its own", func() { u.Invited = 1 }, 0},
		{"and stays so", func() {}, 0},
		{"it has no more senders", func() { u.Waits = false }, 1},
	} {
		c.change()
		if n := invites(e, &now, u); n != c.want {
			t.Errorf("%s: %d senders are invited, want %d", c.what, n, c.want)
		}
	}
	if invites(e, &now, Use{}) != 1 {
		t.Error("one that has gone keeps a sender from being invited")
	}
}

// TestNear: what goes to members of the host goes at once, beside what the link carries, and counts for nothing there.
func TestNear(t *testing.T) {
	const peers, slice = 6, 1 << 20
	cfg := DefaultConfig(peers)
	cfg.Percent = 50
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	e.Near(0)
	e.Near(5)
	all := []int64{slice, slice, slice, slice, slice, 100}
	e.Start(0, all, all)
	for range 2 { // a pause, and an operation later
		e.pace.paused, e.pace.until = true, congestion.Time(time.Hour)
		sent := [peers]int64{}
		for now := congestion.Time(0); ; now++ {
			a, ok := e.Next(now)
			if !ok {
				break
			}
			if a.Kind != SendChunk {
				continue
			}
			if sent[a.Peer] += a.Head.Length; sent[a.Peer] < all[a.Peer] {
				e.OnWord(now, a.Peer, Word{Got: sent[a.Peer]})
			}
			n, off := a.Head.Length, sent[a.Peer]-a.Head.Length
			e.Arrived(now, a.Peer, &Chunk{Total: all[a.Peer], Offset: off, Length: n}, off, n, true)
		}
		if sent != [peers]int64{slice, 0, 0, 0, 0, 100} {
			t.Errorf("%v bytes are sent in a pause", sent)
		}
		counted := e.rate != 0 || e.in.bytes != 0 || e.choices != 0 || e.given != 0
		if counted || e.left != 4*slice || e.in.left != 4*slice {
			t.Errorf("bytes of the host count for its links: %d and %d left", e.left, e.in.left)
		}
		e.Start(0, all, all)
	}
}

// TestUseAdd: counters of a member with several engines grow by what each grows, and the rest adds up.
func TestUseAdd(t *testing.T) {
	total := Use{Given: 100, Taken: 50, Got: 7}
	was := Use{Given: math.MaxUint64, Taken: 10, Got: 1}
	of := Use{On: true, Waits: true, Pairs: 1, Active: 2, Invited: 3, Share: 4, Given: 4, Taken: 12, Got: 1, Left: 5,
		InLeft: 6}
	total.Add(&of, &was)
	total.Add(&of, &of)
	want := Use{On: true, Waits: true, Pairs: 2, Active: 4, Invited: 6, Share: 8, Given: 105, Taken: 52, Got: 7,
		Left: 10, InLeft: 12}
	if total != want {
		t.Errorf("%+v, want %+v", total, want)
	}
}
