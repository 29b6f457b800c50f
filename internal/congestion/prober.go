package congestion

import (
	"fmt"
	"math/bits"
	"time"
)

// Probe is a probe to send.
type Probe struct {
	Peer    int
	Message ProbeMessage
}

// ProbeCount counts what became of probes.
type ProbeCount struct {
	Sent      uint64 // handed out and not cancelled
	Echoed    uint64 // answered in time
	Lost      uint64 // not answered in time
	Stray     uint64 // echoes of no probe in flight: late, doubled or forged
	Cancelled uint64 // could not be sent
	Bytes     uint64 // of Sent
}

// Prober decides when to probe which peer, and keeps account of the echoes. It
// sends nothing itself:
//
//	for probe, ok := prober.Poll(now); ok; probe, ok = prober.Poll(now) { send }
//
// at [Prober.Next], and OnEcho for each echo that arrives. A peer has one probe
// in flight at most. RTTs and losses are reported to the table, where data's
// samples come together with them. A prober belongs to one thread; it does not
// allocate after [NewProber].
type Prober struct {
	cfg   ProbeConfig
	self  int
	rnd   Rand
	table *Table
	count ProbeCount
	lost  func(peer int)

	next     Time // when pace and limits let the next probe leave
	credit   Time // when the byte limit lets the next probe leave
	cursor   int  // last peer in order
	peers    []probedPeer
	sequence uint32
	oldest   uint32
	inflight []pending // by sequence & mask
	mask     uint32
	agenda   agenda // for Adaptive
}

// probedPeer is the prober's view of a peer.
type probedPeer struct {
	last  Time // when it was last probed, 0 for never
	heard Time // when that probe came to its end
	quiet int8 // probes in a row without congestion
	busy  bool // a probe is in flight
}

// pending is a probe in flight, or none if live is false.
type pending struct {
	live     bool
	peer     int32
	sequence uint32
	token    uint64
	sent     Time
}

// mostProbes is how many probes a prober keeps in flight at most, whatever its
// configuration: more than the 1000 that 64 KB/s in probes of 64 bytes and a
// timeout of 1 s can reach.
const mostProbes = 4096

// capacity is how many probes can be in flight, rounded up to a power of two:
// one for each peer, and what pace and limit let out within the timeout.
func (c *ProbeConfig) capacity(targets int, gap time.Duration) int {
	n := int64(min(targets, mostProbes))
	if gap > 0 {
		n = min(n, int64(c.Timeout/gap)+2)
	}
	if c.MaxBytes > 0 {
		n = min(n, int64(float64(c.MaxBytes)*c.Timeout.Seconds())/int64(c.Size)+2)
	}
	return 1 << bits.Len64(uint64(max(n, 1)-1))
}

// NewProber returns a prober of the peers in table other than self, which may
// be none of them (-1). It begins cfg.StartupDelay after now; rnd spreads the
// probers of many hosts over the first interval and makes the tokens.
func NewProber(cfg ProbeConfig, table *Table, self int, now Time, rnd Rand) (*Prober, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	if self >= table.Len() || self < -1 {
		return nil, fmt.Errorf("prober's own number %d is not below %d", self, table.Len())
	}
	p := &Prober{
		cfg: cfg, self: self, rnd: rnd, table: table, cursor: max(self, 0),
		peers: make([]probedPeer, table.Len()),
	}
	p.inflight = make([]pending, cfg.capacity(p.targets(), p.gap()))
	p.mask = uint32(len(p.inflight) - 1)
	p.next = now.Add(cfg.StartupDelay)
	if cfg.Strategy == Adaptive {
		p.agenda.init(p.next, cfg.Interval, p.peers, self, rnd)
	} else {
		p.next += Time(rnd.Uint64() % uint64(p.gap()+1))
	}
	return p, nil
}

// targets is how many peers there are to probe.
func (p *Prober) targets() int {
	if p.self < 0 {
		return len(p.peers)
	}
	return len(p.peers) - 1
}

// gap is the time between two probes in the strategy's own pace.
func (p *Prober) gap() time.Duration {
	switch p.cfg.Strategy {
	case AllPairs:
		return p.cfg.Interval / time.Duration(max(p.targets(), 1))
	case Adaptive:
		return 0
	default:
		return p.cfg.Interval
	}
}

// full reports whether as many probes are in flight as can be.
func (p *Prober) full() bool { return int(p.sequence-p.oldest) >= len(p.inflight) }

// forever is a time that does not come.
const forever = Time(1<<63 - 1)

// Next returns when Poll should be called: earlier it finds nothing.
func (p *Prober) Next() Time {
	next := forever
	if p.targets() > 0 && !p.full() {
		next = max(p.next, p.credit)
		if p.cfg.Strategy == Adaptive {
			next = max(p.credit, p.agenda.next())
		}
	}
	if p.oldest != p.sequence {
		next = min(next, p.inflight[p.oldest&p.mask].sent.Add(p.cfg.Timeout))
	}
	return next
}

// Poll counts probes as lost when their time is up, and returns a probe to send now,
// or false if none is due.
func (p *Prober) Poll(now Time) (Probe, bool) {
	p.expire(now)
	if p.full() || p.targets() == 0 || now < p.credit || now < p.next {
		return Probe{}, false
	}
	peer, ok := p.choose(now)
	if gap := p.gap(); gap > 0 {
		// A prober that was not polled for long does not catch up in a burst.
		p.next = max(p.next, now.Add(-gap)).Add(gap)
	}
	if !ok {
		return Probe{}, false
	}
	if p.cfg.MaxBytes > 0 {
		p.credit = max(p.credit, now).Add(airtime(int64(p.cfg.Size), p.cfg.MaxBytes))
	}
	return p.launch(now, peer), true
}

// launch notes a probe in flight.
func (p *Prober) launch(now Time, peer int) Probe {
	m := ProbeMessage{Size: p.cfg.Size, Sequence: p.sequence, Token: p.rnd.Uint64()}
	p.inflight[p.sequence&p.mask] = pending{true, int32(peer), p.sequence, m.Token, now}
	p.sequence++
	p.peers[peer].busy, p.peers[peer].last = true, now
	p.count.Sent++
	p.count.Bytes += uint64(m.Size)
	return Probe{peer, m}
}

// eligible reports whether a peer may be probed now.
func (p *Prober) eligible(now Time, peer int) bool {
	s := &p.peers[peer]
	return peer != p.self && !s.busy && (s.last == 0 || now.Sub(s.last) >= p.cfg.PeerGap)
}

// choose picks the peer to probe.
func (p *Prober) choose(now Time) (peer int, ok bool) {
	switch p.cfg.Strategy {
	case Random:
		peer = below(p.rnd, p.targets())
		if p.self >= 0 && peer >= p.self {
			peer++
		}
		return peer, p.eligible(now, peer)
	case Adaptive:
		return p.due(now)
	default:
		for range p.peers {
			p.cursor = (p.cursor + 1) % len(p.peers)
			if p.eligible(now, p.cursor) {
				return p.cursor, true
			}
		}
		return 0, false
	}
}

// settle takes a probe out of flight.
func (p *Prober) settle(slot *pending) {
	slot.live = false
	p.peers[slot.peer].busy = false
	for p.oldest != p.sequence && !p.inflight[p.oldest&p.mask].live {
		p.oldest++
	}
}

// expire counts probes as lost that were not answered in time. They are in the
// order in which they were sent.
func (p *Prober) expire(now Time) {
	for p.oldest != p.sequence {
		slot := &p.inflight[p.oldest&p.mask]
		if now.Sub(slot.sent) < p.cfg.Timeout {
			return
		}
		peer := int(slot.peer)
		p.settle(slot)
		p.count.Lost++
		p.table.Peer(peer).Lose(now)
		p.reschedule(now, peer, true)
		if p.lost != nil {
			p.lost(peer)
		}
	}
}

// OnLost has f called, by Poll, for each probe that is counted as lost.
func (p *Prober) OnLost(f func(peer int)) { p.lost = f }

// find returns the slot of a probe in flight to peer, nil if there is none with
// that sequence and token.
func (p *Prober) find(peer int, m *ProbeMessage) *pending {
	slot := &p.inflight[m.Sequence&p.mask]
	if !slot.live || slot.sequence != m.Sequence || slot.token != m.Token || int(slot.peer) != peer {
		return nil
	}
	return slot
}

// OnEcho takes in an echo that peer sent and that arrived now. It returns the
// RTT, or false for an echo of no probe in flight. An echo that claims to have
// been at the responder for longer than it was under way counts as an answer that measures
// nothing: then the RTT is 0.
func (p *Prober) OnEcho(now Time, peer int, m ProbeMessage) (time.Duration, bool) {
	slot := p.find(peer, &m)
	if slot == nil || !m.Echo || now.Sub(slot.sent) >= p.cfg.Timeout {
		p.count.Stray++
		return 0, false
	}
	rtt := max(now.Sub(slot.sent)-m.Residence, 0)
	p.settle(slot)
	p.count.Echoed++
	if rtt > 0 {
		p.table.Peer(peer).Add(now, rtt, 0)
	}
	p.reschedule(now, peer, false)
	return rtt, true
}

// SentAt corrects when a probe left, from a time stamp of the interface.
func (p *Prober) SentAt(probe Probe, at Time) {
	if slot := p.find(probe.Peer, &probe.Message); slot != nil {
		slot.sent = at
	}
}

// Cancel takes a probe back that could not be sent.
func (p *Prober) Cancel(now Time, probe Probe) {
	slot := p.find(probe.Peer, &probe.Message)
	if slot == nil {
		return
	}
	p.settle(slot)
	p.count.Cancelled++
	p.count.Sent--
	p.count.Bytes -= uint64(probe.Message.Size)
	if p.cfg.Strategy == Adaptive {
		p.agenda.add(now, p.interval(probe.Peer), probe.Peer)
	}
}

// Count returns what became of the probes so far.
func (p *Prober) Count() ProbeCount { return p.count }
