package probe

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/ptp"
)

// transport is an interface whose time the test sets.
type transport struct {
	now    congestion.Time
	probes congestion.Probes
}

func (f *transport) SetProbes(p congestion.Probes) { f.probes = p }
func (f *transport) Now() congestion.Time          { return f.now }

// target is a peer whose probes the test sees.
type target struct {
	f     *transport
	stats congestion.Stats
	sent  []congestion.ProbeMessage
	err   error
	lost  int
	late  time.Duration // that a probe takes to leave
	place atomic.Pointer[Peer]
}

func (x *target) Probe(m congestion.ProbeMessage) (congestion.Time, error) {
	if x.err != nil {
		return 0, x.err
	}
	time.Sleep(x.late)
	x.sent = append(x.sent, m)
	return x.f.now, nil
}

func (x *target) ProbeLost()               { x.lost++ }
func (x *target) Stats() *congestion.Stats { return &x.stats }

// bench is a prober that the test steps.
type bench struct {
	*transport
	p     *Prober
	peers []*target
}

// often has every peer probed each 5 ms, from the beginning.
func often(c *config.Config) {
	c.Probe, c.ProbeStrategy, c.ProbeInterval, c.ProbeDelay = true, "all_pairs", 5*time.Millisecond, 0
}

func newBench(t *testing.T, n int, clock *Clock) *bench {
	t.Helper()
	b := &bench{transport: &transport{now: congestion.Time(time.Second)}}
	for range n {
		b.peers = append(b.peers, &target{f: b.transport})
	}
	peers := func() Peers {
		return func(yield func(Target, *atomic.Pointer[Peer]) bool) {
			for _, x := range b.peers {
				if !yield(x, &x.place) {
					return
				}
			}
		}
	}
	var err error
	every := func(func() time.Duration) func() { return func() {} }
	if b.p, err = Start(b.transport, "test", configured(often), clock, peers, every); err != nil {
		t.Fatal(err)
	}
	return b
}

// run steps the prober for a time.
func (b *bench) run(d time.Duration) {
	for end := b.now.Add(d); b.now < end; {
		b.now = b.now.Add(min(max(b.p.step(), time.Microsecond), time.Millisecond))
	}
}

// echo has the latest probe to a peer answered after rtt.
func (b *bench) echo(x *target, rtt time.Duration) time.Duration {
	return b.answer(x, x.sent[len(x.sent)-1], rtt)
}

// answer takes in an answer to a probe to a peer, after rtt.
func (b *bench) answer(x *target, m congestion.ProbeMessage, rtt time.Duration) time.Duration {
	m.Echo = true
	b.now = b.now.Add(rtt)
	return b.probes.Echoed(x, b.now, m)
}

// TestEcho measures a round trip, once.
func TestEcho(t *testing.T) {
	b := newBench(t, 1, nil)
	x := b.peers[0]
	for len(x.sent) == 0 {
		b.run(time.Millisecond)
	}
	at := b.now
	if rtt := b.echo(x, 70*time.Microsecond); rtt < 70*time.Microsecond || rtt > b.now.Sub(at)+2*time.Millisecond {
		t.Errorf("round trip of %v", rtt)
	}
	if x.place.Load().rtt.Load() == 0 || x.place.Load().forth.Load() != 0 {
		t.Errorf("%+v", x.place.Load())
	}
	if b.echo(x, 0) != 0 || b.probes.Echoed(&target{}, b.now, x.sent[0]) != 0 {
		t.Error("an echo of no probe in flight counts")
	}
	if c := b.p.Count(); c.Echoed != 1 || c.Stray != 1 || c.Sent == 0 {
		t.Errorf("%+v", c)
	}
}

// TestOneWay measures both ways with synchronised clocks: also of a probe that leaves long after it was due.
func TestOneWay(t *testing.T) {
	for _, late := range []time.Duration{0, 5 * time.Millisecond} {
		t.Run(late.String(), func(t *testing.T) { oneWay(t, late) })
	}
}

func oneWay(t *testing.T, late time.Duration) {
	clock, err := OpenClock(configured(often), "eth0", sources(slave, nil))
	if err != nil {
		t.Fatal(err)
	}
	defer clock.Close()
	b := newBench(t, 1, clock)
	x := b.peers[0]
	x.late = late
	for len(x.sent) == 0 {
		b.run(time.Millisecond)
	}
	m := x.sent[0].Reply(b.p.clock.Time(0), 0)
	if b.answer(x, m, 2*time.Millisecond) == 0 {
		t.Fatal("no round trip")
	}
	p := x.place.Load()
	if p.forth.Load() == 0 {
		t.Error("no delay of one way")
	}
	if p.forth.Load()+p.back.Load() != p.rtt.Load() {
		t.Errorf("%d ns there, %d back, %d in all", p.forth.Load(), p.back.Load(), p.rtt.Load())
	}
}

// TestLost counts what is not answered.
func TestLost(t *testing.T) {
	b := newBench(t, 1, nil)
	x := b.peers[0]
	b.run(5 * time.Second)
	if n := x.place.Load().lost.Load(); n == 0 || uint64(x.lost) != n || b.p.Count().Lost != n {
		t.Errorf("lost: %d, %d, %+v", n, x.lost, b.p.Count())
	}
}

// TestCancelled does not count a probe that cannot be sent.
func TestCancelled(t *testing.T) {
	b := newBench(t, 1, nil)
	b.peers[0].err = errors.New("no room")
	b.run(100 * time.Millisecond)
	if c := b.p.Count(); c.Sent != 0 || c.Cancelled == 0 || b.peers[0].place.Load().sent.Load() != 0 {
		t.Errorf("%+v", c)
	}
}

// TestPeersChange follows peers that come and go; counts do not fall.
func TestPeersChange(t *testing.T) {
	b := newBench(t, 0, nil)
	if b.run(time.Second); b.p.Count().Sent != 0 {
		t.Error("probes to no peer")
	}
	x, y := &target{f: b.transport}, &target{f: b.transport}
	b.peers = []*target{x, y, x} // two links to x
	b.run(time.Second)
	before, placed := b.p.Count().Sent, x.place.Load()
	if len(x.sent) == 0 || len(y.sent) == 0 || len(b.p.peers) != 2 {
		t.Fatalf("%d and %d probes, %d peers", len(x.sent), len(y.sent), len(b.p.peers))
	}
	b.peers = b.peers[:1]
	b.run(refreshEvery)
	n := len(y.sent)
	b.run(time.Second)
	if len(y.sent) != n || b.p.Count().Sent <= before || x.place.Load() != placed {
		t.Errorf("%d probes to a peer that is gone, %+v", len(y.sent)-n, b.p.Count())
	}
	b.p.Stop()
	if b.probes.Echoed != nil {
		t.Error("a prober that is stopped gets echoes")
	}
}

// TestStart starts nothing without being asked, and refuses an invalid configuration.
func TestStart(t *testing.T) {
	f := &transport{}
	if p, err := Start(f, "test", configured(nil), nil, nil, nil); p != nil || err != nil || f.probes.Clock != nil {
		t.Errorf("%v, %v", p, err)
	}
	clock, err := OpenClock(configured(often), "eth0", sources(ptp.Daemon{}, errors.New("no daemon")))
	if err != nil {
		t.Fatal(err)
	}
	defer clock.Close()
	p, err := Start(f, "test", configured(nil), clock, nil, nil)
	if p != nil || err != nil || f.probes.Clock == nil {
		t.Errorf("%v, %v: answers have no time", p, err)
	}
	strange := func(c *config.Config) { often(c); c.ProbeStrategy = "all_at_once" }
	if _, err := Start(f, "test", configured(strange), nil, nil, nil); err == nil ||
		!strings.Contains(err.Error(), "all_at_once") {
		t.Errorf("%v", err)
	}
}
