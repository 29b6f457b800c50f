package congestion

import (
	"math/rand/v2"
	"testing"
	"time"
)

// ways is a path with a base RTT of 200 us, half of it each way, whose ends have clocks of their own.
type ways struct {
	o      oneway
	base   filter
	now    Time
	later  time.Duration // of the receiver's clock
	faster float64       // parts of a million
}

// sample takes in a packet that waits so long there and back, 100 us after the one before, and returns what counts as
// that of the way back.
func (w *ways) sample(there, back time.Duration) time.Duration {
	w.now += Time(100 * us)
	rtt := 200*us + there + back
	sent := w.now.Add(-rtt)
	arrived := sent.Add(100*us + there)
	clock := arrived.Add(w.later + time.Duration(float64(arrived)*w.faster/1e6))
	base := time.Duration(w.base.add(w.now, 10*time.Second, int64(rtt)))
	return w.o.add(w.now, uint32(clock)-uint32(sent), rtt, base)
}

// TestOneway: the queues of both ways are distinguished, whatever the clocks are, to what these drift apart in the time
// since both ways were last without a queue.
func TestOneway(t *testing.T) {
	for _, w := range []*ways{
		{}, {later: time.Hour}, {later: -3 * time.Second}, {faster: 100}, {faster: -100, later: 2147483600},
	} {
		w.now = Time(time.Second)
		slack := 20 * us
		for range 20 { // seconds: at 100 parts of a million the clocks drift 2 ms apart
			w.sample(0, 0)
			for range 200 {
				for _, q := range [][2]time.Duration{{3 * ms, 0}, {0, 5 * ms}, {2 * ms, 4 * ms}, {700 * us, 100 * us}} {
					if got := w.sample(q[0], q[1]); got < q[1]-slack || got > q[1]+slack {
						t.Fatalf("clock %v later, %v faster: of queues of %v %v are on the way back",
							w.later, w.faster, q, got)
					}
				}
			}
			w.now += Time(time.Second)
		}
	}
}

// TestOnewayStanding: a queue on the way there that stands for longer than onewayWindow is none of the way back,
// although the receiver's clock runs slow and makes it seem to shorten; where queues stand on both ways nothing counts
// as that of the way back that is not there.
func TestOnewayStanding(t *testing.T) {
	w := &ways{now: Time(time.Second), faster: -100}
	w.sample(0, 0)
	for range 50_000 { // 5 s
		if got := w.sample(2*ms, 0); got > 150*us {
			t.Fatalf("after %v %v of a queue on the way there are said to be of the way back", w.now, got)
		}
	}
	w = &ways{now: Time(time.Second)}
	w.sample(0, 0)
	for range 50_000 {
		if got := w.sample(2*ms, 3*ms); got > 3*ms {
			t.Fatalf("after %v %v are said to be of the way back", w.now, got)
		}
	}
}

// TestOnewayHostile: whatever a peer says of its clock, the way back has between none and all of the queue.
func TestOnewayHostile(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var o oneway
	now := Time(time.Second)
	for range 100_000 {
		now += Time(r.Int64N(int64(ms)))
		base := time.Duration(1 + r.Int64N(int64(ms)))
		rtt := base + time.Duration(r.Int64N(int64(10*ms)))
		if got := o.add(now, r.Uint32(), rtt, base); got < 0 || got > rtt-base {
			t.Fatalf("%v of a queue of %v", got, rtt-base)
		}
	}
}

// TestPathReverse: an acknowledgement that waits behind other data makes no sender slower, as long as its packet's
// arrival is known; without it does.
func TestPathReverse(t *testing.T) {
	for _, timed := range []bool{true, false} {
		cfg := DefaultConfig(1000)
		p, err := NewPath(cfg, rand.NewPCG(1, 2), nil)
		if err != nil {
			t.Fatal(err)
		}
		now := Time(time.Second)
		trip := func(back time.Duration) {
			state := p.OnSend(now, 1000)
			now = now.Add(200*us + back)
			p.OnAck(now, &state, 1000, false)
			if timed {
				p.Arrival(uint32(100 * us))
			}
			p.EndAck(now, 200*us+back)
		}
		for range 10 {
			trip(0)
		}
		before := p.Control().Inspect().Cuts
		for range 40 { // less than onewayWindow
			trip(20 * ms)
		}
		if cuts := p.Control().Inspect().Cuts - before; (cuts == 0) != timed {
			t.Errorf("arrivals known %v: %d cuts", timed, cuts)
		}
	}
}
