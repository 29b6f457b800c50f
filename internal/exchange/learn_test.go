package exchange

import (
	"testing"
	"time"
)

// TestLearn: a path that was slow while its target's link idled is slow for the next operation, although no relay was
// asked in this one; not if the target's link was busy, nor if it was fast, nor if it had its part of a link that other
// members of the host send over as well, nor a minute later.
func TestLearn(t *testing.T) {
	for name, c := range map[string]struct {
		idle bool
		took time.Duration // of a chunk
		then time.Duration // until the next operation
		by   uint32        // pairs of other members
		slow bool
	}{
		"slow":           {true, 100 * time.Millisecond, time.Second, 0, true},
		"a busy target":  {false, 100 * time.Millisecond, time.Second, 0, false},
		"fast":           {true, 5 * time.Millisecond, time.Second, 0, false},
		"long ago":       {true, 100 * time.Millisecond, 2 * remembers, 0, false},
		"a little later": {true, 100 * time.Millisecond, remembers / 2, 0, true},
		"shared":         {true, 100 * time.Millisecond, time.Second, 36, false},
	} {
		e, now := withRelays(t, func(*Config) {})
		out := []int64{10 << 10, 10 << 10, 1 << 20, 10 << 10}
		e.Share(now, []Use{{On: true, Pairs: c.by, Active: c.by}})
		e.Start(now, out, make([]int64, 4))
		for from := range e.cfg.Peers {
			e.Arrived(now, from, &Chunk{}, 0, 0, true)
		}
		for n := 0; e.at(2).left() != 0 || e.at(2).flying != 0; n++ {
			drain(e, now)
			now = now.Add(c.took)
			for p := range e.cfg.Peers {
				if to := e.at(int32(p)); to.flying != 0 { // its rest is unknown, so no relay is asked
					e.OnWord(now, p, Word{Got: to.flight[0].end, Idle: c.idle})
				}
			}
			if n == 100 {
				t.Fatalf("%s: %+v", name, e.at(2))
			}
		}
		if e.report.Asked != 0 {
			t.Errorf("%s: a relay was asked", name)
		}
		now = now.Add(c.then)
		e.Start(now, out, make([]int64, 4))
		if p := e.at(2); p.slow != c.slow {
			t.Errorf("%s: slow is %v, at %.0f of %.0f bytes a second", name, p.slow, p.rate, e.rate)
		}
	}
}

// TestLearnRelayed: a path whose slice went through relays is slow for the next operation, unless that comes a minute
// later.
func TestLearnRelayed(t *testing.T) {
	for _, c := range []struct {
		then time.Duration
		slow bool
	}{{time.Second, true}, {remembers - time.Second, true}, {remembers + time.Second, false}} {
		e, now := withRelays(t, func(*Config) {})
		out := []int64{10 << 10, 10 << 10, 1 << 20, 10 << 10}
		e.Start(now, out, make([]int64, 4))
		now = now.Add(2 * remembers) // it takes long
		p := e.at(2)
		p.tail, p.rate, e.rate = e.cfg.Piece, 1e5, 1e8
		e.OnWord(now, 2, Word{}) // the last, which acknowledges nothing
		e.Start(now.Add(c.then), out, make([]int64, 4))
		if p = e.at(2); p.slow != c.slow {
			t.Errorf("after %v: slow is %v", c.then, p.slow)
		}
	}
}

// TestLearnWaits: what a pair waits for at its own host makes no path slow, although its target's link idles all the
// time: before its first chunk, after it gave way to others, and in pauses.
func TestLearnWaits(t *testing.T) {
	const slow, long = 2, 4 * time.Second
	for name, c := range map[string]struct {
		percent int
		others  int64 // bytes of their slices
		waits   func(p *peer) bool
	}{
		"before its turn": {100, 1 << 20, func(p *peer) bool { return p.sent == 0 }},
		"gave way":        {100, 1 << 20, func(p *peer) bool { return p.sent != 0 && !p.counted && p.left() != 0 }},
		"pauses":          {1, 10 << 10, func(*peer) bool { return false }},
	} {
		e, now := withRelays(t, func(cfg *Config) { cfg.Most, cfg.Percent = 1, c.percent })
		out := []int64{c.others, c.others, 1 << 20, c.others}
		e.Start(now, out, make([]int64, 4))
		for i := range e.cfg.Peers {
			e.Arrived(now, i, &Chunk{}, 0, 0, true)
			e.OnWord(now, i, Word{Idle: true})
		}
		waited := false
		for n := 0; e.outOver != len(out) && n < 1000; n++ {
			drain(e, now)
			if p := e.at(slow); !waited && c.waits(p) {
				waited, now = true, now.Add(long)
			}
			if e.flying == 0 {
				if at, ok := e.Wake(); ok {
					now = max(now, at)
				}
				e.Tick(now)
				continue
			}
			now = now.Add(5 * time.Millisecond)
			for i := range e.cfg.Peers {
				if p := e.at(int32(i)); p.flying != 0 {
					e.OnWord(now, i, Word{Got: p.flight[0].end, Idle: true})
				}
			}
		}
		if e.outOver != len(out) || waited != (c.percent == 100) {
			t.Fatalf("%s: %d of %d slices have arrived, waited %v", name, e.outOver, len(out), waited)
		}
		e.Start(now, out, make([]int64, 4))
		if p := e.at(slow); p.slow || p.learnt != 0 {
			t.Errorf("%s: slow at %.0f of %.0f bytes a second", name, p.rate, e.rate)
		}
	}
}

// TestLags: a path that counts as slow from the start is sent to as others are once its target says that its own link
// takes as long, and stays slow where it does not.
func TestLags(t *testing.T) {
	for name, c := range map[string]struct {
		rest time.Duration // that the target's link needs
		slow bool
	}{
		"a slow path":      {100 * time.Millisecond, true},
		"a slow target":    {time.Second, false},
		"a slower target":  {2 * time.Second, false},
		"a target at rest": {0, true},
	} {
		e, now := withRelays(t, func(*Config) {})
		const slow = 2
		p := e.at(slow)
		p.rate, p.learnt = 1e6, now
		e.Start(now, []int64{10 << 10, 10 << 10, 1 << 20, 10 << 10}, make([]int64, 4))
		if p = e.at(slow); !p.slow {
			t.Fatalf("%s: the path does not count as slow", name)
		}
		drain(e, now)
		before := p.flying
		e.OnWord(now, slow, Word{Rested: true, Rest: c.rest})
		drain(e, now)
		if p.slow != c.slow || p.flying > before == c.slow {
			t.Errorf("%s: slow is %v, %d chunks on their way after %d", name, p.slow, p.flying, before)
		}
	}
}

// TestBeginsInOrder: an operation begins in the shifted order although pairs had different rates in the one before,
// where they shared the link, and first with a path that was slow by itself.
func TestBeginsInOrder(t *testing.T) {
	for _, policy := range []Policy{Adaptive, Balanced} {
		e, now := withRelays(t, func(c *Config) { c.Policy = policy })
		out := []int64{1 << 20, 1 << 20, 1 << 20, 1 << 20}
		e.Start(now, out, make([]int64, 4))
		e.rate, e.relays.most = 1e8, 4
		for i, share := range []float64{1.4, 0.6, 1, 0.1} {
			e.at(int32(i)).rate = share * e.rate / 4
		}
		now = now.Add(time.Second)
		e.Start(now, out, make([]int64, 4))
		e.acked = 1 << 10 // by another pair
		for i, want := range []bool{false, false, false, true} {
			if got := e.slowness(e.at(int32(i))); (got != 0) != want {
				t.Errorf("%v: peer %d is slower by %d halvings, slow: %t", policy, i, got, want)
			}
		}
		if e.key(0) >= e.key(1) || e.key(1) >= e.key(2) || e.key(3) >= e.key(0) {
			t.Errorf("%v: keys %x %x %x %x", policy, e.key(0), e.key(1), e.key(2), e.key(3))
		}
	}
}

// TestBalancedSlow: under Balanced a pair on a slow path that has no time to give way comes before all others, whatever
// its delay, and goes on although another such one waits. One that has time, or whose path is not slow, has the place
// that its delay gives, as all have where no other pair may begin.
func TestBalancedSlow(t *testing.T) {
	e, now := withRelays(t, func(c *Config) { c.Policy = Balanced })
	e.Start(now, []int64{1 << 20, 1 << 20, 1 << 20, 1 << 20}, make([]int64, 4))
	e.rate, e.active = 1e8, 4
	for i := range int32(4) {
		e.at(i).rate = e.rate / 5
	}
	slow := e.at(3)
	slow.queue = time.Second
	for _, c := range []struct {
		name   string
		rate   float64
		acked  int64
		most   int
		before bool
	}{
		{"not slow", e.rate / 5, 0, 0, false},
		{"not slow, at its end", e.rate / 5, 1<<20 - 1<<10, 0, false},
		{"more than half of its part", e.rate / 9, 1 << 10, 0, false},
		{"slow, no time", e.rate / 100, 0, 0, true},
		{"slow, no time, no other may begin", e.rate / 100, 0, 1, false},
		{"slow, time", e.rate / 100, 1<<20 - 1<<10, 0, false},
	} {
		slow.rate, slow.sent, slow.acked, e.cfg.Most = c.rate, c.acked, c.acked, c.most
		e.others.pairs = c.most
		if before := e.key(3) < e.key(0); before != c.before {
			t.Errorf("%s: before others: %t", c.name, before)
		}
		if !e.waiting.has(0) {
			e.wait(0)
		}
		e.waiting.set(0, 0) // the least key
		if keeps := e.keeps(3); keeps != c.before {
			t.Errorf("%s: keeps its place: %t", c.name, keeps)
		}
	}
}

// TestBalancedNoTime: under Balanced the delay of a pair that would not end in time if it waited does not count. That
// of one that has time, or whose rate is not known, does.
func TestBalancedNoTime(t *testing.T) {
	e, now := withRelays(t, func(c *Config) { c.Policy = Balanced })
	e.Start(now, []int64{1 << 20, 1 << 20, 1 << 20, 1 << 20}, make([]int64, 4))
	e.rate = 1e8
	for i := range int32(4) {
		e.at(i).rate = e.rate / 2
	}
	p := e.at(1)
	p.queue = time.Second
	for share, inOrder := range map[float64]bool{0: false, 0.4: true, 0.6: false} {
		if p.rate = share * e.rate; (e.key(1) < e.key(2)) != inOrder {
			t.Errorf("%v of the link's rate: in order: %t", share, !inOrder)
		}
	}
}

// TestTwoAlike: of two pairs alike that share the link none is slow, nor the one that waits while the other has it.
func TestTwoAlike(t *testing.T) {
	e, now := withRelays(t, func(c *Config) { c.Policy = Balanced })
	e.Start(now, []int64{1 << 20, 1 << 20, 0, 0}, make([]int64, 4))
	e.rate = 1e8
	p := e.at(0)
	p.sent, p.acked = 1<<10, 1<<10
	for p.flying = range 2 {
		e.active = 1 + int(p.flying)
		for share, slow := range []bool{2: false, 3: false, 4: true, 5: true} {
			if p.rate = e.rate / float64(share); share >= 2 && (e.slowness(p) != 0) != slow {
				t.Errorf("%d chunks on their way, 1/%d of the link: slow: %t", p.flying, share, !slow)
			}
		}
	}
}
