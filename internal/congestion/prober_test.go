package congestion

import (
	"math/rand/v2"
	"testing"
	"time"
)

const ms = time.Millisecond

func newProber(t *testing.T, cfg ProbeConfig, peers, self int) (*Prober, *Table) {
	t.Helper()
	table := NewTable(peers)
	p, err := NewProber(cfg, table, self, 1000, rand.NewPCG(1, 2))
	if err != nil {
		t.Fatal(err)
	}
	return p, table
}

// drive polls the prober for d as its Next asks for, answers after what rtt
// returns for a peer (0: never), and returns the probes of each peer.
func drive(p *Prober, now Time, d time.Duration, rtt func(peer int, now Time) time.Duration) (sent []int, end Time) {
	type answer struct {
		at   Time
		peer int
		m    ProbeMessage
	}
	var answers []answer
	sent = make([]int, len(p.peers))
	end = now.Add(d)
	for {
		next, which := p.Next(), -1
		for i, a := range answers {
			if a.at <= next {
				next, which = a.at, i
			}
		}
		if next > end {
			return sent, end
		}
		now = max(now, next)
		if which >= 0 {
			a := answers[which]
			answers = append(answers[:which], answers[which+1:]...)
			p.OnEcho(now, a.peer, a.m.Reply(PTPTime{}, 0))
			continue
		}
		for probe, ok := p.Poll(now); ok; probe, ok = p.Poll(now) {
			sent[probe.Peer]++
			if r := rtt(probe.Peer, now); r > 0 {
				answers = append(answers, answer{now.Add(r), probe.Peer, probe.Message})
			}
		}
	}
}

func steady(int, Time) time.Duration { return 100 * us }

// TestRoundRobin probes every peer but itself in turn, after the delay.
func TestRoundRobin(t *testing.T) {
	p, table := newProber(t, DefaultProbeConfig(), 5, 2)
	if first := p.Next(); first < Time(1000).Add(500*ms) || first > Time(1000).Add(600*ms) {
		t.Errorf("the first probe is at %v", first)
	}
	sent, _ := drive(p, 0, 500*ms+100*time.Second, steady)
	for peer, n := range sent {
		if want := 250; peer == 2 && n != 0 || peer != 2 && (n < want-1 || n > want+1) {
			t.Errorf("peer %d was probed %d times", peer, n)
		}
	}
	if s := table.Peer(3).Read(); s.SRTT != 100*us || s.Samples < 249 || s.Lost != 0 {
		t.Errorf("peer 3: %+v", s)
	}
	if c := p.Count(); c.Echoed != c.Sent || c.Bytes != 64*c.Sent {
		t.Errorf("%+v", c)
	}
}

// TestAllPairs probes every peer in each interval, evenly spread.
func TestAllPairs(t *testing.T) {
	cfg := DefaultProbeConfig()
	cfg.Strategy = AllPairs
	p, _ := newProber(t, cfg, 100, 0)
	var last Time
	sent, _ := drive(p, 0, 500*ms+10*time.Second, func(_ int, now Time) time.Duration {
		if last != 0 && now.Sub(last) < ms {
			t.Errorf("probes %v apart", now.Sub(last))
		}
		last = now
		return 100 * us
	})
	for peer, n := range sent[1:] {
		if n < 98 || n > 101 {
			t.Errorf("peer %d was probed %d times in 10 s", peer+1, n)
		}
	}
}

// TestRandom reaches everybody.
func TestRandom(t *testing.T) {
	cfg := DefaultProbeConfig()
	cfg.Strategy, cfg.Interval = Random, ms
	p, _ := newProber(t, cfg, 11, 10)
	sent, _ := drive(p, 0, 500*ms+10*time.Second, steady)
	for peer, n := range sent[:10] {
		if n < 900 || n > 1100 {
			t.Errorf("peer %d was probed %d times of 10000", peer, n)
		}
	}
	if sent[10] != 0 {
		t.Errorf("it probed itself")
	}
}

// TestByteLimit holds every strategy to the limit, and starves nothing.
func TestByteLimit(t *testing.T) {
	for s := RoundRobin; s <= Adaptive; s++ {
		cfg := DefaultProbeConfig()
		cfg.Strategy, cfg.Interval, cfg.MaxBytes = s, ms, 6400
		p, _ := newProber(t, cfg, 50, -1)
		sent, _ := drive(p, 0, 500*ms+20*time.Second, steady)
		total := 0
		for peer, n := range sent {
			total += n
			if n < 10 {
				t.Errorf("%v: peer %d was probed %d times", s, peer, n)
			}
		}
		if total > 2001 || total < 1900 {
			t.Errorf("%v: %d probes in 20 s with a limit of 100 a second", s, total)
		}
	}
}

// TestAdaptive: a congested peer is probed in each interval, a quiet one in 16,
// one whose probes are lost as often as they time out, one that data reports of
// hardly at all; under a limit in the same proportions.
func TestAdaptive(t *testing.T) {
	for _, limit := range []int64{64000, 640} {
		cfg := DefaultProbeConfig()
		cfg.Strategy, cfg.MaxBytes, cfg.Timeout = Adaptive, limit, 100*ms
		p, table := newProber(t, cfg, 40, 39)
		rtt := func(peer int, now Time) time.Duration {
			table.Peer(7).Add(now, 100*us, 10000)
			switch {
			case peer == 5:
				return 0
			case peer == 6 && p.count.Echoed > 100:
				return ms
			}
			return 100 * us
		}
		_, now := drive(p, 0, 60*time.Second, rtt)
		sent, _ := drive(p, now, 160*time.Second, rtt)
		quiet, congested := sent[0], sent[6]
		if congested < 12*quiet || congested > 20*quiet {
			t.Errorf("limit %d: quiet %d, congested %d", limit, quiet, congested)
		}
		if lost := sent[5]; lost < 5*quiet || lost > 12*quiet {
			t.Errorf("limit %d: quiet %d, lost %d", limit, quiet, lost)
		}
		if quiet < 10 || limit == 64000 && (quiet < 90 || quiet > 110) {
			t.Errorf("limit %d: quiet %d", limit, quiet)
		}
		if sent[7] > quiet/4 {
			t.Errorf("limit %d: quiet %d, known from data %d", limit, quiet, sent[7])
		}
	}
}

// TestProbeLoss: a lost probe is counted once and does not keep its peer from
// being probed again; a late echo measures nothing.
func TestProbeLoss(t *testing.T) {
	cfg := DefaultProbeConfig()
	cfg.Interval, cfg.Timeout, cfg.StartupDelay = 10*ms, 50*ms, 0
	p, table := newProber(t, cfg, 2, 0)
	now := p.Next()
	first, ok := p.Poll(now)
	if !ok || first.Peer != 1 {
		t.Fatalf("%+v, %v", first, ok)
	}
	if _, ok := p.Poll(now.Add(20 * ms)); ok {
		t.Errorf("a second probe is in flight to one peer")
	}
	second, ok := p.Poll(now.Add(60 * ms))
	if !ok {
		t.Fatalf("a lost probe keeps the peer from being probed")
	}
	if c := p.Count(); c.Lost != 1 || table.Peer(1).Read().Lost != 1 {
		t.Errorf("%+v", c)
	}
	if _, ok := p.OnEcho(now.Add(61*ms), 1, first.Message.Reply(PTPTime{}, 0)); ok {
		t.Errorf("a late echo measures")
	}
	if rtt, ok := p.OnEcho(now.Add(61*ms), 1, second.Message.Reply(PTPTime{}, 200*us)); !ok || rtt != 800*us {
		t.Errorf("RTT %v, %v", rtt, ok)
	}
	if c := p.Count(); c.Stray != 1 || c.Echoed != 1 {
		t.Errorf("%+v", c)
	}
}

// TestProbeForged: echoes that do not repeat what was sent are counted and
// change nothing.
func TestProbeForged(t *testing.T) {
	cfg := DefaultProbeConfig()
	cfg.StartupDelay = 0
	p, table := newProber(t, cfg, 3, 0)
	now := p.Next()
	probe, _ := p.Poll(now)
	for i, forge := range []func(m *ProbeMessage, peer *int){
		func(m *ProbeMessage, _ *int) { m.Token++ },
		func(m *ProbeMessage, _ *int) { m.Sequence++ },
		func(m *ProbeMessage, _ *int) { m.Sequence += uint32(len(p.inflight)) },
		func(m *ProbeMessage, _ *int) { m.Echo = false },
		func(_ *ProbeMessage, peer *int) { *peer = 2 },
	} {
		m, peer := probe.Message.Reply(PTPTime{}, 0), 1
		forge(&m, &peer)
		if _, ok := p.OnEcho(now+100, peer, m); ok {
			t.Errorf("forgery %d was accepted", i)
		}
	}
	if c := p.Count(); c.Stray != 5 || table.Peer(1).Read().Samples != 0 {
		t.Errorf("%+v", c)
	}
	if rtt, ok := p.OnEcho(now+100, 1, probe.Message.Reply(PTPTime{}, 200)); !ok || rtt != 0 {
		t.Errorf("an echo kept for longer than it was under way: %v, %v", rtt, ok)
	}
	if _, ok := p.OnEcho(now+100, 1, probe.Message.Reply(PTPTime{}, 0)); ok {
		t.Errorf("an echo counts twice")
	}
}

// TestProbeCancel gives the peer free again.
func TestProbeCancel(t *testing.T) {
	for _, s := range []Strategy{RoundRobin, Adaptive} {
		cfg := DefaultProbeConfig()
		cfg.StartupDelay, cfg.Strategy = 0, s
		p, table := newProber(t, cfg, 2, 0)
		now := p.Next()
		probe, _ := p.Poll(now)
		p.Cancel(now, probe)
		p.Cancel(now, probe)
		if c := p.Count(); c != (ProbeCount{Cancelled: 1}) {
			t.Errorf("%v: %+v", s, c)
		}
		sent, _ := drive(p, now, 10*time.Second, steady)
		if sent[1] == 0 || table.Peer(1).Read().Lost != 0 {
			t.Errorf("%v: never probed again", s)
		}
	}
}

// TestProberAlone: without peers nothing is ever due.
func TestProberAlone(t *testing.T) {
	for s := RoundRobin; s <= Adaptive; s++ {
		cfg := DefaultProbeConfig()
		cfg.Strategy = s
		p, _ := newProber(t, cfg, 1, 0)
		if p.Next() != forever {
			t.Errorf("%v: something is due at %v", s, p.Next())
		}
		if probe, ok := p.Poll(p.Next()); ok {
			t.Errorf("%v: %+v", s, probe)
		}
	}
}

// TestProbeConfig refuses what is out of range, by name.
func TestProbeConfig(t *testing.T) {
	for _, c := range []func(*ProbeConfig){
		func(c *ProbeConfig) { c.Strategy = 4 },
		func(c *ProbeConfig) { c.Interval = 0 },
		func(c *ProbeConfig) { c.Size = 31 },
		func(c *ProbeConfig) { c.Size = 5000 },
		func(c *ProbeConfig) { c.StartupDelay = -1 },
		func(c *ProbeConfig) { c.Timeout = 0 },
		func(c *ProbeConfig) { c.MaxBytes = 63 },
		func(c *ProbeConfig) { c.PeerGap = -1 },
		func(c *ProbeConfig) { c.Excess = 0 },
	} {
		cfg := DefaultProbeConfig()
		c(&cfg)
		if _, err := NewProber(cfg, NewTable(2), 0, 0, rand.NewPCG(1, 2)); err == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
	if _, err := NewProber(DefaultProbeConfig(), NewTable(2), 2, 0, rand.NewPCG(1, 2)); err == nil {
		t.Errorf("a number beyond the table is accepted")
	}
	for s := RoundRobin; s <= Adaptive; s++ {
		if got, err := ParseStrategy(s.String()); err != nil || got != s {
			t.Errorf("%v: %v, %v", s, got, err)
		}
	}
	if _, err := ParseStrategy("fast"); err == nil {
		t.Errorf("an unknown strategy is accepted")
	}
}

// FuzzProbe: what parses comes out again as it went in, and nothing panics.
func FuzzProbe(f *testing.F) {
	m := ProbeMessage{Size: 64, Sequence: 3, Token: 4, Residence: 5}
	f.Add(m.Append(nil))
	m = m.Reply(PTPTime{Domain: 9, At: 77}, 6)
	f.Add(m.Append(nil))
	f.Add([]byte{1, 2, 3})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseProbe(b)
		if err != nil {
			return
		}
		again, err := ParseProbe(m.Append(nil))
		if err != nil || again != m {
			t.Fatalf("%+v became %+v, %v", m, again, err)
		}
	})
}

// TestProbeMessage goes through the wire format.
func TestProbeMessage(t *testing.T) {
	m := ProbeMessage{Echo: true, Size: 48, Sequence: 0x01020304, Token: 0x05060708090a0b0c, Arrived: 99, Domain: 5,
		Residence: 2 * time.Second}
	b := m.Append([]byte("x"))[1:]
	if len(b) != 48 {
		t.Fatalf("%d bytes", len(b))
	}
	if got, err := ParseProbe(b); err != nil || got != m {
		t.Errorf("%+v, %v", got, err)
	}
	for i, change := range []func(b []byte) []byte{
		func(b []byte) []byte { return b[:31] },
		func(b []byte) []byte { return b[:47] },
		func(b []byte) []byte { b[0] = 2; return b },
		func(b []byte) []byte { b[1] = 0; return b },
		func(b []byte) []byte { b[23] = 0x80; return b },
	} {
		if got, err := ParseProbe(change(append([]byte{}, b...))); err == nil {
			t.Errorf("change %d is accepted: %+v", i, got)
		}
	}
}
