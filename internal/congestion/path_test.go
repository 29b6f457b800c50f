package congestion

import (
	"math/rand/v2"
	"testing"
	"time"
)

func newPath(t *testing.T, cfg Config, stats *Stats) *Path {
	t.Helper()
	p, err := NewPath(cfg, rand.NewPCG(1, 2), stats)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestDelivery computes rates by hand: over sending if that took longer, over
// acknowledging otherwise, and never over less than the least RTT.
func TestDelivery(t *testing.T) {
	var d Delivery
	a := d.OnSend(1000, 0)
	b := d.OnSend(2000, 500)
	d.OnAck(11000, &a, 500, 1)
	if r, newest := d.Rate(11000, 0); r != 500*1e9/10000 || newest.Sent != 1000 {
		t.Errorf("first: %d, %+v", r, newest)
	}
	c := d.OnSend(11500, 500)
	d.OnAck(12000, &b, 500, 1)
	// b left when nothing was delivered: 1000 bytes since 1000
	if r, _ := d.Rate(12000, 0); r != int64(1000*1e9)/11000 {
		t.Errorf("second: %d", r)
	}
	d.OnAck(12100, &c, 500, 1)
	// acknowledged in 1100 ns, but sent over 10500: a burst is not believed
	if r, _ := d.Rate(12100, 0); r != int64(1000*1e9)/10500 {
		t.Errorf("third: %d", r)
	}
	e := d.OnSend(20000, 0)
	d.OnAck(20100, &e, 500, 1)
	if r, _ := d.Rate(20100, 5000); r != 0 {
		t.Errorf("a flight shorter than the least RTT gives %d", r)
	}
	if d.Delivered() != 2000 {
		t.Errorf("delivered %d", d.Delivered())
	}
}

// TestDeliveryLimited marks what is sent while the sender has nothing more, and
// ends when that is delivered.
func TestDeliveryLimited(t *testing.T) {
	var d Delivery
	a := d.OnSend(1000, 0)
	d.Limited(500)
	b := d.OnSend(2000, 500)
	if a.appLimited || !b.appLimited {
		t.Errorf("%v, %v", a.appLimited, b.appLimited)
	}
	d.OnAck(3000, &a, 500, 1)
	d.OnAck(3000, &b, 500, 1)
	d.Rate(3000, 0)
	if c := d.OnSend(4000, 0); c.appLimited {
		t.Error("still limited after everything was delivered")
	}
}

// TestPacer spaces packets, and lets a late sender catch up by the burst only.
func TestPacer(t *testing.T) {
	p := Pacer{Burst: 2000}
	now := Time(10000)
	p.OnSend(now, 1000, 1e9) // 1 us each
	if p.Next() != 9000 {
		t.Errorf("after an idle time the next may leave at %d", p.Next())
	}
	sent := 1
	for p.Next() <= now {
		p.OnSend(now, 1000, 1e9)
		sent++
	}
	if sent != 3 || p.Next() != 11000 {
		t.Errorf("%d at once, the next at %d", sent, p.Next())
	}
	p.OnSend(11000, 1000, 0)
	if p.Next() != 11000 {
		t.Errorf("without a rate the next may leave at %d", p.Next())
	}
}

// TestPacerQuickens: a packet that was to wait at a low rate waits for as long as is left of
// it at a higher one, and no longer at none.
func TestPacerQuickens(t *testing.T) {
	p := Pacer{}
	p.OnSend(1000, 4000, 1e6) // 4 ms
	p.Quicken(1000+1e6, 1e6)
	p.Quicken(1000+1e6, 5e5) // the wait was for a packet that has left
	if p.Next() != 1000+4e6 {
		t.Errorf("at the same rate, and at a lower one, the next may leave at %d", p.Next())
	}
	p.Quicken(1000+1e6, 3e6) // 3 ms are left
	if p.Next() != 1000+2e6 {
		t.Errorf("at three times the rate the next may leave at %d", p.Next())
	}
	p.Quicken(1000+1.5e6, 6e6)
	if p.Next() != 1000+1.75e6 {
		t.Errorf("at twice that rate the next may leave at %d", p.Next())
	}
	p.Quicken(1000+1.6e6, 0)
	if p.Next() != 1000+1.6e6 {
		t.Errorf("without a rate the next may leave at %d", p.Next())
	}
	p.Quicken(1e9, 1) // nothing waits
	if p.Next() != 1000+1.6e6 {
		t.Errorf("a packet that need not wait may leave at %d", p.Next())
	}
}

// TestPathRecovers: a window far below a packet, in round trips of 40 ms that busy hosts
// make, does not hold packets back for seconds, and no longer once a round trip is short.
func TestPathRecovers(t *testing.T) {
	p := newPath(t, DefaultConfig(1000), nil)
	now := Time(time.Second)
	p.RTT().Add(now, 50*us, 0)
	turn := func(rtt time.Duration) time.Duration {
		now = max(now, p.Next())
		state := p.OnSend(now, 1000)
		now = now.Add(rtt)
		p.OnAck(now, &state, 1000, false)
		p.EndAck(now, rtt)
		return max(p.Next().Sub(now), 0)
	}
	worst := time.Duration(0)
	for range 40 {
		worst = max(worst, turn(40*ms))
	}
	if w := p.Control().Window(); w >= 500 || worst > delayLongest {
		t.Fatalf("a queue of 40 ms leaves a window of %d, and packets wait for %v", w, worst)
	}
	if wait := turn(50 * us); wait > longWait {
		t.Errorf("after a round trip without a queue the next packet waits for %v", wait)
	}
}

// TestPath follows bytes in flight through acknowledgement, loss and discard,
// reports to the statistics, and takes no sample that Karn's rule forbids.
func TestPath(t *testing.T) {
	var stats Stats
	cfg := DefaultConfig(1000)
	cfg.Algorithm = Fixed
	p := newPath(t, cfg, &stats)
	var states []PacketState
	now := Time(1000)
	for p.May(now) {
		states = append(states, p.OnSend(now, 1000))
	}
	if len(states) != 10 || p.Inflight() != 10000 || p.Open() {
		t.Fatalf("%d packets in a window of 10, %d bytes", len(states), p.Inflight())
	}
	now = now.Add(100 * us)
	p.OnAck(now, &states[0], 1000, false)
	p.OnAck(now, &states[2], 1000, true)
	p.EndAck(now, 100*us)
	p.OnLoss(now, &states[1], 1000)
	p.EndLoss(now)
	p.EndLoss(now)
	p.Discard(1000)
	if p.Inflight() != 6000 || p.RTT().SRTT() != 100*us {
		t.Errorf("%d bytes in flight, SRTT %v", p.Inflight(), p.RTT().SRTT())
	}
	p.OnAck(now, &states[3], 1000, false)
	p.EndAck(now, 0)
	p.EndAck(now, 500*us) // nothing newly acknowledged
	if p.RTT().Samples() != 1 {
		t.Errorf("%d samples", p.RTT().Samples())
	}
	if s := stats.Read(); s.Samples != 1 || s.Lost != 1 || s.Window != 10000 || s.SRTT != 100*us {
		t.Errorf("%+v", s)
	}
	rto := p.RTT().RTO()
	p.OnTimeout(now)
	if p.RTT().RTO() != 2*rto {
		t.Errorf("RTO %v after %v", p.RTT().RTO(), rto)
	}
	p.Discard(1 << 40)
	if p.Inflight() != 0 {
		t.Errorf("%d bytes in flight", p.Inflight())
	}
}

// TestPathAllocations: nothing on a packet's way allocates, whatever the
// algorithm, nor does a flow's.
func TestPathAllocations(t *testing.T) {
	for a := Fixed; a <= BBR; a++ {
		cfg := DefaultConfig(1000)
		cfg.Algorithm = a
		p := newPath(t, cfg, new(Stats))
		flow := newFlow(t, a, DefaultSegmentConfig())
		var op Operation
		now := Time(1000)
		if n := testing.AllocsPerRun(1000, func() {
			now += 1e5
			one, two := p.OnSend(now, 1000), p.OnSend(now, 1000)
			p.OnAck(now+5e4, &one, 1000, true)
			p.EndAck(now+5e4, 50*us)
			p.OnLoss(now+6e4, &two, 1000)
			p.EndLoss(now + 6e4)
			p.OnTimeout(now + 7e4)
			p.OnProbe(now+8e4, 60*us)
			p.Limited()
			if op.Ended() {
				flow.Start(&op, 300<<10)
			}
			for o, seg, ok := flow.Next(now); ok; o, seg, ok = flow.Next(now) {
				flow.Done(now+9e4, o, seg, 0)
			}
		}); n != 0 {
			t.Errorf("%v: %v allocations", a, n)
		}
	}
}

// TestConfig refuses what is out of range, and makes what is named.
func TestConfig(t *testing.T) {
	nan := 0.0
	nan /= nan
	for i, change := range []func(c *Config){
		func(c *Config) { c.Unit = 0 },
		func(c *Config) { c.Initial = 0 },
		func(c *Config) { c.Max = -1 },
		func(c *Config) { c.Initial, c.Max = 4, 3 },
		func(c *Config) { c.Algorithm = 4 },
		func(c *Config) { c.Alpha = 0 },
		func(c *Config) { c.Beta = 1.1 },
		func(c *Config) { c.Beta = nan },
		func(c *Config) { c.Rate = -1 },
		func(c *Config) { c.BaseWindow = 0 },
		func(c *Config) { c.Target = 0 },
		func(c *Config) { c.Granularity = -1 },
		func(c *Config) { c.MinRTO = 0 },
		func(c *Config) { c.MaxRTO = c.MinRTO - 1 },
	} {
		cfg := DefaultConfig(1500)
		change(&cfg)
		if _, err := NewPath(cfg, rand.NewPCG(1, 2), nil); err == nil {
			t.Errorf("change %d is accepted: %+v", i, cfg)
		}
	}
	for a := Fixed; a <= BBR; a++ {
		if got, err := ParseAlgorithm(a.String()); err != nil || got != a {
			t.Errorf("%v: %v, %v", a, got, err)
		}
	}
	if _, err := ParseAlgorithm("cubic"); err == nil {
		t.Error("an unknown algorithm is accepted")
	}
	if cfg := DefaultSegmentConfig().PathConfig(1e9); cfg.Validate() != nil || cfg.Initial != 4 || cfg.Max != 128 ||
		cfg.Unit != 256<<10 {
		t.Errorf("%+v", cfg)
	}
}

// BenchmarkPath is a packet's whole way through the congestion control.
func BenchmarkPath(b *testing.B) {
	for a := Fixed; a <= BBR; a++ {
		b.Run(a.String(), func(b *testing.B) {
			cfg := DefaultConfig(1500)
			cfg.Algorithm = a
			p, err := NewPath(cfg, rand.NewPCG(1, 2), new(Stats))
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			now := Time(time.Second)
			for b.Loop() {
				now += 1000
				s := p.OnSend(now, 1500)
				p.OnAck(now+50000, &s, 1500, false)
				p.EndAck(now+50000, 50*us)
			}
		})
	}
}

// TestHold has hosts hold acknowledgements up: meanwhile packets leave beyond the
// window, as fast as the path delivers, as far as the peer has room; and no longer
// when hosts are quick again.
func TestHold(t *testing.T) {
	p, err := NewPath(DefaultConfig(1000), rand.New(rand.NewPCG(1, 2)), nil)
	if err != nil {
		t.Fatal(err)
	}
	now := Time(1)
	const rtt = 100 * time.Microsecond
	round := func(kept time.Duration) { // 1000 bytes each 100 us: 10^7 bytes/s
		state := p.OnSend(now, 1000)
		now = now.Add(rtt)
		p.OnAck(now, &state, 1000, false)
		p.Hold(now, kept)
		p.EndAck(now, rtt)
	}
	beyond := func() int64 { return p.Window() - p.Control().Window() }
	last := func(kept time.Duration, d time.Duration) {
		for end := now.Add(d); now < end; {
			round(kept)
		}
	}
	const kept = 5 * time.Millisecond
	last(kept, 100*time.Millisecond)
	if got := beyond(); got != 0 {
		t.Errorf("without room at the peer the window is larger by %d", got)
	}
	p.SetSpare(20000)
	round(kept)
	if got := beyond(); got != 20000 {
		t.Errorf("delayed for %v: the window is larger by %d, want all that the peer has room for", kept, got)
	}
	p.SetSpare(1 << 20)
	round(kept)
	if got, want := beyond(), int64(62500); got < want*95/100 || got > want*105/100 {
		t.Errorf("delayed for %v at 10^7 bytes/s: the window is larger by %d, want %d", kept, got, want)
	}
	if p.AckDelay() != kept {
		t.Errorf("kept for %v", p.AckDelay())
	}

	// Without acknowledgements: what leaves in a time, by the pace of the window
	// first, then by the path's.
	start, window := now, p.Control().Window()
	many := *p // its controller's window does not move without acknowledgements
	for n := int64(0); p.Open(); n += 1000 {
		now = max(now, p.Next())
		if !p.May(now) {
			t.Fatalf("open, and it may not at %v, as said", now)
		}
		if d := now.Sub(start); n > window+product(12_500_000, d)+2000 {
			t.Fatalf("%d bytes have left within %v, beyond a window of %d", n, d, window)
		}
		p.OnSend(now, 1000)
	}
	if d := now.Sub(start); d < kept*9/10 || d > kept*11/10 {
		t.Errorf("packets left for %v without an acknowledgement, want %v", d, kept)
	}
	at, single := start, many // the same by trains, and again one by one, every 100 us
	left, alone := 0, 0
	for many.Open() && at < start.Add(2*kept) {
		at = at.Add(rtt)
		if n := many.Room(at, 1000, 1000); n > 0 {
			many.OnSendMany(at, 1000, n)
			left += n
		}
		for single.May(at) {
			single.OnSend(at, 1000)
			alone++
		}
		if left < alone-1 || left > alone+1 {
			t.Fatalf("after %v %d packets have left by trains, %d one by one", at.Sub(start), left, alone)
		}
	}
	if many.Open() {
		t.Error("trains do not use up the window")
	}

	p.Discard(p.Inflight())
	last(0, 3*ackDelayWindow)
	if got := beyond(); got != 0 || p.AckDelay() != 0 {
		t.Errorf("no longer delayed: the window is larger by %d, kept for %v", got, p.AckDelay())
	}
}

// TestLately: neither what a token bucket lets through after a pause counts as the
// path's rate, nor acknowledgements that come in a heap, nor the time in which
// nothing came.
func TestLately(t *testing.T) {
	for _, away := range []time.Duration{0, 2 * time.Millisecond, 30 * time.Millisecond} {
		var l lately
		delivered := int64(0)
		resumes := Time(1)
		for now := Time(1); now < Time(time.Second); now = now.Add(100 * time.Microsecond) {
			n := now.Sub(1) / (100 * time.Microsecond) // 1000 bytes each 100 us: 10^7 bytes/s
			delivered += 1000
			if n%1000 < 8 {
				delivered += 2000 // 16 KB within a millisecond beside
			}
			if n%500 == 0 {
				resumes = now.Add(away)
			}
			if d := resumes.Sub(now); d >= 0 && d < 100*time.Microsecond {
				l.add(now, delivered, away, away)
			} else if d < 0 {
				l.add(now, delivered, 0, away)
			}
		}
		if got := l.get(); got < 9_500_000 || got > 12_000_000 {
			t.Errorf("away for %v at a time: %d bytes/s, want 10^7", away, got)
		}
	}
}

// TestLatelyFollows: a flow that has had a link for itself and shares it now has the rate of its share soon.
func TestLatelyFollows(t *testing.T) {
	var l lately
	const alone = Time(400 * time.Millisecond)
	delivered := int64(0)
	for now := Time(1); now < alone.Add(350*time.Millisecond); now = now.Add(time.Millisecond) {
		if delivered += 1_000; now < alone {
			delivered += 9_000
		}
		l.add(now, delivered, 0, 0)
		if got := l.get(); now == alone+1-Time(time.Millisecond) && got < 9_900_000 {
			t.Errorf("alone: %d bytes/s, want 10^7", got)
		}
	}
	if got := l.get(); got > 1_100_000 {
		t.Errorf("beside others: %d bytes/s, want 10^6", got)
	}
}

// TestRoom sends as many packets at once as Room says, and one by one as many as May
// says: both come to the same, but for what is rounded.
func TestRoom(t *testing.T) {
	for name, change := range map[string]func(*Config){
		"fixed": func(c *Config) { c.Algorithm = Fixed }, "delay": func(*Config) {},
		"bbr": func(c *Config) { c.Algorithm = BBR },
	} {
		cfg := DefaultConfig(1000)
		change(&cfg)
		many, single := newPath(t, cfg, nil), newPath(t, cfg, nil)
		now := Time(1000)
		var states []PacketState
		for step := range 200 {
			size := int64(900 + step%3*50)
			n := many.Room(now, size, 1000)
			if k := many.Room(now, size, n/2); k != n/2 {
				t.Fatalf("%s: room for %d of %d", name, k, n/2)
			}
			sent := 0
			var one PacketState
			for sent < n && single.May(now) && single.Inflight() < single.Control().Window() {
				one = single.OnSend(now, size)
				sent++
			}
			if more := single.Room(now, size, 2); sent != n || more > 1 {
				t.Fatalf("%s, step %d: room for %d, %d and %d may leave", name, step, n, sent, more)
			}
			if n > 0 {
				if state := many.OnSendMany(now, size, n); state != one {
					t.Fatalf("%s, step %d: state %+v, %+v", name, step, state, one)
				}
				for range n {
					states = append(states, one)
				}
			}
			if many.Inflight() != single.Inflight() ||
				max(many.Next()-single.Next(), single.Next()-many.Next()) > 1000 {
				t.Fatalf("%s, step %d: %d and %d in flight, next at %d and %d", name, step, many.Inflight(),
					single.Inflight(), many.Next(), single.Next())
			}
			now = now.Add(40 * us)
			for k := range min(len(states), 7) {
				for _, p := range []*Path{many, single} {
					p.OnAck(now, &states[k], min(size, p.Inflight()), false)
				}
			}
			states = states[min(len(states), 7):]
			many.EndAck(now, 120*us)
			single.EndAck(now, 120*us)
		}
	}
}
