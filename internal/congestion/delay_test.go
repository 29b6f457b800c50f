package congestion

import (
	"math/rand/v2"
	"testing"
	"time"
)

// pipe acknowledges packet after packet of a path with a base RTT of 100 us and
// a queueing delay.
type pipe struct {
	c         Controller
	now       Time
	queue     time.Duration
	delivered int64
	loss      bool // of every packet a second one is lost
	marked    bool
}

const pipeUnit, pipeBase = 1000, 100 * us

func (p *pipe) run(packets int) {
	for range packets {
		p.now += 1000
		sent := p.now.Add(-pipeBase - p.queue)
		if p.loss {
			p.c.OnLoss(p.now, &Loss{Bytes: pipeUnit, Sent: sent, Delivered: p.delivered})
		}
		p.delivered += pipeUnit
		s := Sample{
			RTT: pipeBase + p.queue, SRTT: pipeBase + p.queue, RTTVAR: us, Base: pipeBase, Sent: sent,
			Bytes: pipeUnit, Inflight: p.c.Window(), Delivered: p.delivered,
			PriorDelivered: max(p.delivered-p.c.Window(), 0), Rate: 1e9,
		}
		if p.marked {
			s.Marked = s.Bytes
		}
		p.c.OnAck(p.now, &s)
	}
}

func newPipe(a Algorithm) *pipe {
	cfg := DefaultConfig(pipeUnit)
	cfg.Algorithm, cfg.Max = a, 1000
	c, err := New(cfg, rand.NewPCG(1, 2))
	if err != nil {
		panic(err)
	}
	return &pipe{c: c, now: Time(time.Second)}
}

// TestDelayTarget grows without a queue, and shrinks in proportion to what
// exceeds the target, once in a round trip.
func TestDelayTarget(t *testing.T) {
	p := newPipe(Delay)
	p.run(10)
	if w := p.c.Window(); w != 20*pipeUnit || p.c.Inspect().Phase != "slow start" {
		t.Fatalf("after a round trip of slow start %d, %+v", w, p.c.Inspect())
	}
	p.run(5000)
	if w := p.c.Window(); w != 1000*pipeUnit {
		t.Fatalf("slow start passes the largest window or ends below: %d", w)
	}
	d := p.c.(*delayTarget)
	d.slow, d.drain.seen = false, p.now
	d.window = 100 * pipeUnit
	p.queue = 300 * us // the target at 100 units is 200 us
	p.run(1)
	before := d.window
	p.run(200)
	// 0.8 * (300-200)/400
	if got := d.window / before; got > 0.83 || got < 0.79 {
		t.Errorf("a queue of 300 us cuts to %.3f, want 0.8", got)
	}
	d.window = 100 * pipeUnit
	p.queue = 100 * ms
	p.run(350)
	before = d.window
	p.run(1)
	if got := d.window / before; got < 0.5 {
		t.Errorf("one cut takes %.3f", 1-got)
	}
}

// TestDelayOthersQueue: a flow that has less than a unit in the queue leaves its window
// alone, until the queue is longer than any number of flows may make it.
func TestDelayOthersQueue(t *testing.T) {
	p := newPipe(Delay)
	d := p.c.(*delayTarget)
	for _, c := range []struct {
		units float64 // in the window
		queue time.Duration
		cut   bool
	}{
		{1, 3 * ms, false},   // 0.97 units of its own
		{0.5, 8 * ms, false}, // below 30 targets, times the root of two
		{0.5, 9 * ms, true},
		{0.25, 11 * ms, false},
		{1, 6500 * us, true},    // above 30 targets
		{1.5, 3 * ms, true},     // 1.45 units
		{1.5, 150 * us, false},  // 0.9 units
		{50, 300 * us, true},    // 37 units
		{100, 100 * us, false},  // below the target
		{0.05, 700 * us, false}, // above the target for a small window, but of others
	} {
		d.slow, d.drain, d.window, d.standing = false, drain{seen: p.now}, c.units*pipeUnit, filter{}
		d.queue = c.queue // so that the first sample is not taken with the one before
		before := d.cuts
		p.queue = c.queue
		p.run(1)
		if cut := d.cuts != before; cut != c.cut {
			t.Errorf("a window of %.2f units in a queue of %v: cut is %v, want %v; aim %v", c.units, c.queue, cut,
				c.cut, d.aim)
		}
		p.now += Time(time.Second)
	}
	// After a loss the buffer has no room for it.
	d.slow, d.drain, d.window, d.standing = false, drain{seen: p.now}, pipeUnit, filter{}
	p.queue = 3 * ms
	p.c.OnLoss(p.now, &Loss{Bytes: pipeUnit, Sent: p.now})
	before := d.cuts
	if p.run(1); d.cuts == before {
		t.Errorf("a queue of %v after a loss is not answered; aim %v", p.queue, d.aim)
	}
}

// TestDelaySpike: one late acknowledgement among others is no standing queue.
func TestDelaySpike(t *testing.T) {
	p := newPipe(Delay)
	d := p.c.(*delayTarget)
	d.slow, d.window = false, 100*pipeUnit
	p.run(100)
	before := d.window
	for range 20 {
		p.queue = 0
		p.run(10)
		p.queue = 5 * ms
		p.run(1)
	}
	if d.window < before || d.cuts != 0 {
		t.Errorf("late acknowledgements cut the window from %.0f to %.0f", before, d.window)
	}
}

// TestDelayLoss: losses without a queue do nothing until they are many, with a
// queue they bring the window down to what the path holds.
func TestDelayLoss(t *testing.T) {
	p := newPipe(Delay)
	d := p.c.(*delayTarget)
	d.slow, d.window = false, 100*pipeUnit
	p.run(300)
	before, at := d.window, p.now
	p.c.OnLoss(p.now, &Loss{Bytes: pipeUnit, Sent: at})
	if d.window != before {
		t.Errorf("a loss without a queue leaves %.0f of %.0f", d.window, before)
	}
	p.queue = 50 * us
	p.run(100)
	before = d.window
	p.c.OnLoss(p.now, &Loss{Bytes: pipeUnit, Sent: p.now})
	// 1e9 bytes/s for 100 us
	if d.window != max(100000, before/2) {
		t.Errorf("a loss with a queue leaves %.0f of %.0f", d.window, before)
	}
	p.queue, p.loss = 0, true
	p.run(1000)
	if d.window > 20*pipeUnit {
		t.Errorf("losing every second packet leaves %.0f", d.window)
	}
	low := d.window
	p.c.OnTimeout(p.now)
	p.c.OnTimeout(p.now)
	if d.window != min(pipeUnit, low/2) && d.window != pipeUnit || !d.slow {
		t.Errorf("two timeouts leave %.0f", d.window)
	}
}

// TestDelayMarks: marks on everything halve the window in a round trip.
func TestDelayMarks(t *testing.T) {
	p := newPipe(Delay)
	d := p.c.(*delayTarget)
	d.slow, d.window, p.marked = false, 100*pipeUnit, true
	p.run(1) // ends a round of nothing before
	before := d.window
	p.run(60)
	if got := d.window / before; got > 0.6 || got < 0.4 {
		t.Errorf("marks leave %.2f", got)
	}
}

// TestBBR finds rate and window of the path, and asks for more now and then.
func TestBBR(t *testing.T) {
	p := newPipe(BBR)
	b := p.c.(*bbr)
	if p.c.PacingRate() != 0 || p.c.Window() != 10*pipeUnit {
		t.Fatalf("at first %d bytes/s, %d bytes", p.c.PacingRate(), p.c.Window())
	}
	p.run(2000)
	if b.bandwidth() != 1e9 || b.phase == bbrStartup {
		t.Fatalf("%d bytes/s, %+v", b.bandwidth(), p.c.Inspect())
	}
	b.phase, b.cycle, b.drain = bbrProbeRate, 2, drain{seen: p.now}
	if w := p.c.Window(); w != 2*100000+3*pipeUnit {
		t.Errorf("window %d", w)
	}
	rates := map[int64]bool{}
	for range 2000 {
		p.run(1)
		rates[p.c.PacingRate()] = true
	}
	if !rates[1.25e9] || !rates[0.75e9] || !rates[1e9] {
		t.Errorf("rates %v", rates)
	}
	p.loss = true
	p.run(2000)
	if p.c.Inspect().Threshold == 0 || p.c.Window() >= 200000 {
		t.Errorf("losing every second packet leaves %d, %+v", p.c.Window(), p.c.Inspect())
	}
	p.loss = false
	p.run(5000)
	if b.bound != 0 {
		t.Errorf("the bound stays at %d", b.bound)
	}
	p.c.OnTimeout(p.now)
	if p.c.PacingRate() != 0 || p.c.Inspect().Phase != "startup" {
		t.Errorf("after a timeout %+v", p.c.Inspect())
	}
}

// TestDrain: a flow that never sees its base stops for a round trip, four times
// in quick succession, then seldom; one that sees it does not.
func TestDrain(t *testing.T) {
	d := drain{slack: 10 * us}
	now, drains, on := Time(time.Second), 0, 0
	s := Sample{RTT: 300 * us, SRTT: 300 * us, Base: 100 * us}
	step := func(n int) {
		for range n {
			now = now.Add(10 * us)
			was := d.on
			s.Inflight = 100000
			if d.on {
				s.Inflight = 1000
				on++
			}
			d.update(now, &s, 1000)
			if d.on && !was {
				drains++
			}
		}
	}
	d.soon(now)
	step(64 * 30)
	if drains != 3 {
		t.Errorf("%d drains in the first 64 round trips", drains)
	}
	step(100 * 1000)
	if drains < 11 || drains > 13 {
		t.Errorf("%d drains in a second more", drains-3)
	}
	if per := on / drains; per < 25 || per > 70 {
		t.Errorf("a drain takes %d round trips of 30", per)
	}
	before := drains
	s.RTT = 105 * us
	step(100 * 1000)
	if drains > before+1 {
		t.Errorf("%d drains while the base shows", drains-before)
	}
}

// TestBBRMarks: marks in more than half of a round shorten the window, and it recovers when
// they cease.
func TestBBRMarks(t *testing.T) {
	p := newPipe(BBR)
	p.run(5000)
	whole, cuts := p.c.Window(), p.c.Inspect().Cuts
	p.marked = true
	p.run(1000)
	marked := p.c.Window()
	if marked >= whole || p.c.Inspect().Cuts == cuts {
		t.Errorf("with marks a window of %d, %d before, %d cuts", marked, whole, p.c.Inspect().Cuts-cuts)
	}
	p.marked = false
	p.run(500) // of which a round began with marks
	cuts = p.c.Inspect().Cuts
	p.run(20000)
	if w := p.c.Window(); w <= marked || p.c.Inspect().Cuts != cuts {
		t.Errorf("without marks a window of %d, %d with them, %d cuts", w, marked, p.c.Inspect().Cuts-cuts)
	}
}
