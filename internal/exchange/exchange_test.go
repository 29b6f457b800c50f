package exchange

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// randomConfig is a configuration of any kind.
func randomConfig(r *rand.Rand) Config {
	cfg := DefaultConfig(1)
	cfg.Policy = Policy(r.IntN(int(policies)))
	cfg.Chunk = 1 + r.Int64N(40)
	cfg.Short = r.Int64N(cfg.Chunk + 1)
	cfg.Most = r.IntN(4)
	cfg.Window = r.IntN(3)
	cfg.Factor = float64(r.IntN(3))
	cfg.Threshold = time.Duration(r.Int64N(int64(time.Millisecond)))
	if r.IntN(3) == 0 {
		cfg.Percent = 1 + r.IntN(100)
	}
	return cfg
}

// seeds is how many random operations a test runs.
func seeds(many int) uint64 {
	if testing.Short() {
		return uint64(many / 10)
	}
	return uint64(many)
}

// TestExchange: groups of all sizes up to 17 exchange what they have, whatever the network
// does, with all policies; and a second operation follows the first.
func TestExchange(t *testing.T) {
	for seed := range seeds(1000) {
		r := rand.New(rand.NewPCG(seed, 1))
		size := 2 + int(seed%16)
		n := newNet(t, r, size, 200, randomConfig(r))
		n.run()
		n.load(100)
		n.run()
	}
}

// TestForged: what no member has sent is dropped and counted, and changes nothing.
func TestForged(t *testing.T) {
	for seed := range seeds(1000) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := newNet(t, r, 2+int(seed%16), 200, randomConfig(r))
		n.forge = true
		n.run()
	}
}

// TestDeath: when members die, the others end: with the right bytes, or with an error if they
// needed more of them.
func TestDeath(t *testing.T) {
	failed, whole := 0, 0
	for seed := range seeds(700) {
		r := rand.New(rand.NewPCG(seed, 3))
		size := 2 + int(seed%16)
		n := newNet(t, r, size, 200, randomConfig(r))
		for i := range n.members {
			n.begin(i)
		}
		for range 1 + r.IntN(2) {
			for range r.IntN(40 * size) {
				n.step()
			}
			if victim := r.IntN(size); !n.members[victim].dead {
				n.die(victim)
			}
		}
		for n.step() {
		}
		for i, m := range n.members {
			n.judge(i)
			switch {
			case m.dead:
			case !m.completed:
				t.Fatalf("%s: rank %d never ends", n.what, i)
			case m.e.Failed():
				failed++
			default:
				whole++
			}
		}
	}
	if failed == 0 || whole == 0 {
		t.Errorf("%d members ended with an error and %d without: the test does not see both", failed, whole)
	}
}

// TestLost: a peer that is lost is needed as long as bytes are missing, and once only.
func TestLost(t *testing.T) {
	e, _ := New(DefaultConfig(2))
	e.Start(1, []int64{0, 1 << 20}, []int64{0, 0})
	drain(e, 1)
	e.Arrived(1, 0, &Chunk{}, 0, 0, true)
	if e.Lost(2, 0) || e.Failed() {
		t.Error("a peer that has and wants nothing more was needed")
	}
	if !e.Lost(3, 1) || e.Lost(3, 1) || !e.Failed() || !e.Done() {
		t.Error("a peer with bytes left was not needed")
	}
	e.Start(4, []int64{5, 5}, []int64{5, 5})
	if !e.Done() || !e.Failed() {
		t.Error("an operation with lost peers does not end with an error")
	}
}

func drain(e *Engine, now congestion.Time) (sent []Action) {
	for a, ok := e.Next(now); ok; a, ok = e.Next(now) {
		sent = append(sent, a)
	}
	return sent
}

// answer acknowledges everything on its way to a peer.
func answer(e *Engine, now congestion.Time, peer int, w Word) {
	w.Got = e.at(int32(peer)).sent
	e.OnWord(now, peer, w)
}

// TestOrder: with nothing known the first chunks go in shifted order, one peer at a
// time; then each slice goes whole.
func TestOrder(t *testing.T) {
	e, _ := New(DefaultConfig(4))
	slice := int64(256 << 10)
	e.Start(0, []int64{slice, slice, slice, slice}, []int64{0, 0, 0, 0})
	now := congestion.Time(0)
	var order []int
	for !(e.outOver == 4) {
		for _, a := range drain(e, now) {
			order = append(order, a.Peer)
		}
		now += congestion.Time(time.Millisecond)
		for p := range e.cfg.Peers {
			if e.at(int32(p)).flying > 0 {
				e.OnWord(now, p, Word{Got: e.at(int32(p)).flight[0].end})
				break
			}
		}
	}
	if len(order) != 16 || order[0] != 0 || e.Peer(3).First == 0 {
		t.Errorf("order %v", order)
	}
	first := map[int]int{}
	for at, p := range order {
		if _, ok := first[p]; !ok {
			first[p] = at
		}
	}
	for p := range 3 {
		if first[p] > first[p+1] || first[3] > 5 {
			t.Errorf("order %v: the first chunks are not in shifted order", order)
		}
	}
}

// settle makes an engine of n peers whose link and paths are known: all alike.
func settle(t testing.TB, n int, policy Policy, slice int64) (*Engine, congestion.Time) {
	cfg := DefaultConfig(n)
	cfg.Policy = policy
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	out := make([]int64, n)
	for i := range out {
		out[i] = slice
	}
	e.rate = 125e6
	for i := range e.cfg.Peers {
		e.at(int32(i)).rate, e.at(int32(i)).base = 125e6, time.Millisecond
	}
	now := congestion.Time(time.Second)
	e.Start(now, out, make([]int64, n))
	return e, now
}

// TestSlowTakesNoPlace: a pair whose path is slow goes on while another begins; one whose path is
// known to be slow begins first.
func TestSlowTakesNoPlace(t *testing.T) {
	e, now := settle(t, 7, Adaptive, 1<<20)
	e.at(5).rate = 125e6 / 16
	all := []int64{1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20}
	e.Start(now, all, make([]int64, 7))
	if !e.begun.has(5) || !e.begun.has(0) || e.begun.count != 2 {
		t.Errorf("begun with %d peers, the slow one %v, the first %v", e.begun.count, e.begun.has(5), e.begun.has(0))
	}
}

// TestCredit: a credit begins a pair at once, a second one nothing, and none goes beyond Most.
func TestCredit(t *testing.T) {
	e, now := settle(t, 7, Adaptive, 1<<20)
	if e.begun.count != 1 {
		t.Fatalf("begun with %d peers", e.begun.count)
	}
	e.OnWord(now, 4, Word{Invite: true})
	e.OnWord(now, 4, Word{Invite: true})
	if e.begun.count != 2 || !e.begun.has(4) {
		t.Errorf("%d peers have begun after a credit, the one with the credit %v", e.begun.count, e.begun.has(4))
	}
	e.cfg.Most = 2
	e.OnWord(now, 5, Word{Invite: true})
	if e.begun.count != 2 {
		t.Errorf("%d peers at a time, at most 2", e.begun.count)
	}
	for e.begun.has(0) || e.begun.has(4) {
		drain(e, now)
		now += congestion.Time(time.Millisecond)
		answer(e, now, 0, Word{})
		answer(e, now, 4, Word{})
	}
	if !e.begun.has(5) {
		t.Error("the peer with an unused credit is not next")
	}
}

// TestInvites: a receiver invites one sender when its link idles, and none while it is full
// or queues because of others.
func TestInvites(t *testing.T) {
	for _, c := range []struct {
		name  string
		bytes int64
		delay time.Duration
		want  uint64
		busy  bool
	}{
		{"idle", 10 << 10, 0, 1, false},
		{"full", 125 << 10, 0, 0, false},
		{"strangers", 10 << 10, 10 * time.Millisecond, 0, true},
	} {
		cfg := DefaultConfig(7)
		e, _ := New(cfg)
		in := slices.Repeat([]int64{1 << 20}, 7)
		e.in.rate = 125e6
		now := congestion.Time(time.Second)
		e.Start(now, make([]int64, 7), in)
		for range 2 { // both senders' chunks, within a period
			for _, from := range []int{5, 6} {
				got := e.at(int32(from)).in.got
				head := Chunk{Total: 1 << 20, Offset: got, Length: c.bytes, Delay: c.delay}
				e.Arrived(now, from, &head, got, c.bytes, true)
			}
		}
		now = now.Add(e.in.period())
		e.Tick(now)
		if e.report.Invited != c.want || e.in.busy != c.busy {
			t.Errorf("%s: %d invited, busy %v", c.name, e.report.Invited, e.in.busy)
		}
		invited := 0
		for _, a := range drain(e, now) {
			if a.Kind == SendWord && a.Word.Invite {
				invited++
				if a.Peer != 4 {
					t.Errorf("%s: peer %d is invited before the ones in order", c.name, a.Peer)
				}
			}
			if a.Kind == SendWord && a.Word.Busy != c.busy {
				t.Errorf("%s: word %+v", c.name, a.Word)
			}
		}
		if invited != int(c.want) {
			t.Errorf("%s: %d credits", c.name, invited)
		}
		now = now.Add(e.in.period())
		e.Tick(now) // nothing has come: the link idles
		for _, a := range drain(e, now) {
			if c.name == "idle" && a.Peer != 3 {
				t.Errorf("%s: the second credit is for peer %d", c.name, a.Peer)
			}
		}
	}
}

// TestInvitesWhole: where chunks arrive whole, a period that counts one less than the link carries has no room, because
// that one may be under way; two less are room.
func TestInvitesWhole(t *testing.T) {
	const peers, chunk, rate = 7, 64 << 10, 128 << 20
	for _, c := range []struct {
		chunks  int
		invited uint64
	}{{4, 0}, {3, 0}, {2, 1}} {
		e, err := New(DefaultConfig(peers))
		if err != nil {
			t.Fatal(err)
		}
		now := congestion.Time(time.Second)
		e.in.rate = rate
		e.Start(now, make([]int64, peers), slices.Repeat([]int64{1 << 20}, peers))
		for from := range c.chunks {
			if !e.Arrived(now, from, &Chunk{Total: 1 << 20, Length: chunk}, 0, chunk, true) {
				t.Fatalf("a chunk of peer %d is refused", from)
			}
		}
		e.Tick(now.Add(e.in.period())) // in which the link carries four
		if e.report.Invited != c.invited {
			t.Errorf("%d chunks in a period: %d invited, want %d", c.chunks, e.report.Invited, c.invited)
		}
	}
}

// TestSilence: when a peer does not answer, others are begun with.
func TestSilence(t *testing.T) {
	e, _ := New(DefaultConfig(7))
	out := []int64{1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20, 1 << 20}
	e.Start(0, out, make([]int64, 7))
	for range 100 {
		drain(e, 0)
		at, ok := e.Wake()
		if !ok {
			break
		}
		e.Tick(at)
	}
	if e.begun.count != 7 {
		t.Errorf("%d peers have begun while none answers", e.begun.count)
	}
}

// TestPolicies: which of two peers comes first.
func TestPolicies(t *testing.T) {
	ms := time.Millisecond
	for _, c := range []struct {
		policy Policy
		set    func(e *Engine)
		first  int32
	}{
		{Greedy, func(e *Engine) { e.at(2).queue, e.at(3).queue = 0, 5*ms }, 2},
		{Threshold, func(e *Engine) { e.at(1).queue = 5 * ms }, 2},
		{Threshold, func(e *Engine) { e.at(1).queue, e.at(1).dev = 5*ms, 5*ms }, 1},
		{Threshold, func(e *Engine) { e.at(1).busy = true }, 2},
		{Balanced, func(e *Engine) { e.at(1).queue = ms / 4 }, 1},
		{Balanced, func(e *Engine) { e.at(1).queue = 5 * ms }, 2},
		{Balanced, func(e *Engine) { e.at(1).queue, e.cfg.Window = 5*ms, 1 }, 1},
		{Adaptive, func(e *Engine) { e.at(1).busy = true }, 2},
		{Adaptive, func(e *Engine) { e.at(5).total += 10 << 20 }, 5},
		{Adaptive, func(e *Engine) { e.at(5).invited = true }, 5},
	} {
		e, _ := settle(t, 7, c.policy, 1<<20)
		for i := range e.cfg.Peers {
			if c.policy == Greedy {
				e.at(int32(i)).queue = ms
			}
		}
		c.set(e)
		for i := range int32(7) {
			if e.waiting.has(i) {
				e.waiting.set(i, e.key(i))
			}
		}
		if i, _ := e.waiting.least(); i != c.first {
			t.Errorf("%v: peer %d is next, want %d", c.policy, i, c.first)
		}
		if p, err := ParsePolicy(c.policy.String()); err != nil || p != c.policy {
			t.Errorf("%v is read as %v, %v", c.policy, p, err)
		}
	}
	if _, err := ParsePolicy("random"); err == nil {
		t.Error("a policy that there is not is read")
	}
}

// TestValidate: each value out of range is refused.
func TestValidate(t *testing.T) {
	for i, change := range []func(c *Config){
		func(c *Config) { c.Peers = 0 }, func(c *Config) { c.Policy = policies }, func(c *Config) { c.Chunk = 0 },
		func(c *Config) { c.Short = c.Chunk + 1 }, func(c *Config) { c.Most = -1 }, func(c *Config) { c.Window = -1 },
		func(c *Config) { c.Threshold = -1 }, func(c *Config) { c.Factor = -1 }, func(c *Config) { c.Backoff = 0 },
		func(c *Config) { c.Percent = 0 }, func(c *Config) { c.Percent = 101 },
	} {
		cfg := DefaultConfig(1)
		if change(&cfg); cfg.Validate() == nil {
			t.Errorf("configuration %d is not refused", i)
		}
	}
}

// BenchmarkChoice is what an acknowledgement costs with the choice of the next chunk.
func BenchmarkChoice(b *testing.B) {
	for _, n := range []int{8, 1000} {
		for policy := range policies {
			b.Run(policy.String()+"/"+map[int]string{8: "8", 1000: "1000"}[n], func(b *testing.B) {
				e, now := settle(b, n, policy, 1<<40)
				b.ReportAllocs()
				drain(e, now)
				b.ResetTimer()
				for i := range b.N {
					if e.waiting.len() == 0 { // all slices go whole, and there is nothing to choose
						b.StopTimer()
						e, now = settle(b, n, policy, 1<<40)
						drain(e, now)
						b.StartTimer()
					}
					now += 500000 + congestion.Time(i*7919%100000)
					p := int(e.begun.head())
					e.OnWord(now, p, Word{Got: e.at(int32(p)).flight[0].end})
					for _, ok := e.Next(now); ok; _, ok = e.Next(now) {
					}
				}
			})
		}
	}
}

// TestAllocations: nothing is allocated per chunk.
func TestAllocations(t *testing.T) {
	e, now := settle(t, 100, Greedy, 1<<40)
	drain(e, now)
	if n := testing.AllocsPerRun(1000, func() {
		now += 500000
		p := int(e.begun.head())
		e.OnWord(now, p, Word{Got: e.at(int32(p)).flight[0].end})
		for _, ok := e.Next(now); ok; _, ok = e.Next(now) {
		}
	}); n != 0 {
		t.Errorf("%v allocations for a chunk", n)
	}
}

// TestDeepest: where no other peer waits the rest of a slice goes as soon as the peer has answered; while one waits,
// and before, two chunks of the usual length do.
func TestDeepest(t *testing.T) {
	const total = 100_000
	for _, peers := range []int{1, 2} {
		cfg := DefaultConfig(peers)
		cfg.Chunk, cfg.Policy, cfg.Most = 1000, Balanced, 1
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		lengths := make([]int64, peers)
		for i := range lengths {
			lengths[i] = total
		}
		now := congestion.Time(1)
		e.Start(now, lengths, make([]int64, peers))
		send := func() (count int, sent int64) {
			for _, a := range drain(e, now) {
				count, sent = count+1, a.Head.Offset+a.Head.Length
			}
			return count, sent
		}
		if count, sent := send(); count != Early || sent != Early*cfg.Chunk {
			t.Errorf("%d peers: %d chunks of %d bytes before an answer", peers, count, sent)
		}
		now = now.Add(time.Millisecond)
		e.OnWord(now, 0, Word{Got: cfg.Chunk})
		count, sent := send()
		if alone := count == Deepest-1 && sent == total; alone != (peers == 1) || peers > 1 && count != 1 {
			t.Errorf("%d peers: %d chunks, %d bytes after an answer", peers, count, sent)
		}
	}
}
