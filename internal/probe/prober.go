package probe

import (
	"iter"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
)

// Interface is what an interface of a transport implements that sends probes.
type Interface interface {
	// SetProbes gives p the results of probes from now on.
	SetProbes(p congestion.Probes)
	// Now reads the clock that round-trip times are measured with.
	Now() congestion.Time
}

// Target is what such an interface's endpoints implement. Its values are comparable: they are keys of maps.
type Target interface {
	// Probe sends a probe and returns when it left.
	Probe(m congestion.ProbeMessage) (congestion.Time, error)
	// ProbeLost takes in that a probe was not answered in time.
	ProbeLost()
	// Stats is what is known about the path to the peer.
	Stats() *congestion.Stats
}

// Peer is what probes say about one peer. Its words are written under Prober.mu and read by the sampling thread,
// relaxed.
type Peer struct {
	target Target

	// sent and lost count probes: added to by the thread that probes, loaded by that which shows counters; relaxed.
	sent, lost  atomic.Uint64
	rtt         atomic.Int64 // ns, of the latest
	forth, back atomic.Int64 // ns, of the latest with synchronised clocks
}

// Peers are the targets that an endpoint is connected to over one interface, each with the place that gets what probes
// say about it. A target that comes twice is probed once, for its first place. The prober stores into the places; any
// thread loads them.
type Peers = iter.Seq2[Target, *atomic.Pointer[Peer]]

// Prober probes the peers over one interface:
//
//	step (the thread of every, see Start): poll → send → next time
//	echoed (the thread that reads the interface): the round-trip time
type Prober struct {
	name      string // of the endpoint, in the log
	iface     Interface
	peersNow  func() Peers
	cfg       congestion.ProbeConfig
	clock     *Clock
	maxOffset time.Duration // what the clock of a peer may be off by that does not say so
	stop      func()
	started   congestion.Time
	refreshed congestion.Time // step's: when it last read the peers

	// mu is taken for each probe and echo: some ten times a second.
	mu    sync.Mutex
	core  *congestion.Prober
	peers []*Peer
	index map[any]int
	lost  []*Peer
	done  congestion.ProbeCount // of cores before
}

// probeConfig is how the configuration says to probe.
func probeConfig(c *config.Config) (congestion.ProbeConfig, error) {
	cfg := congestion.DefaultProbeConfig()
	cfg.Interval, cfg.Size, cfg.StartupDelay = c.ProbeInterval, c.ProbeSize, c.ProbeDelay
	var err error
	if cfg.Strategy, err = congestion.ParseStrategy(c.ProbeStrategy); err != nil {
		return cfg, err
	}
	return cfg, cfg.Validate()
}

// Start begins to probe, if the configuration asks for that (FI_WEFT_RTT_PROBE_ENABLE); else the prober is nil, and the
// clock's time goes with the answers to peers' probes if there is a clock. every calls a function again and again,
// after the time that the function returns, on one thread at a time, until stop. Errors: the configuration is invalid.
func Start(i Interface, name string, cfg *config.Config, clock *Clock, peers func() Peers,
	every func(func() time.Duration) (stop func())) (*Prober, error) {
	if !cfg.Probe {
		if clock != nil {
			i.SetProbes(congestion.Probes{Clock: clock.Time})
		}
		return nil, nil
	}
	p, err := newProber(i, name, cfg, clock, peers)
	if err != nil {
		return nil, err
	}
	i.SetProbes(congestion.Probes{Echoed: p.echoed, Clock: clock.Time})
	p.stop = every(p.step)
	return p, nil
}

func newProber(i Interface, name string, cfg *config.Config, clock *Clock, peers func() Peers) (*Prober, error) {
	c, err := probeConfig(cfg)
	if err != nil {
		return nil, err
	}
	return &Prober{
		name: name, iface: i, peersNow: peers, cfg: c, clock: clock,
		maxOffset: time.Duration(cfg.PTPMaxOffset), started: i.Now(),
	}, nil
}

// Stop ends the probes, before the interface closes.
func (p *Prober) Stop() {
	p.stop()
	p.iface.SetProbes(congestion.Probes{})
}

// refreshEvery is how often a prober finds peers that came or went.
const refreshEvery = 100 * time.Millisecond

// step sends the probes that are due and returns the time to the next step.
func (p *Prober) step() time.Duration {
	now := p.iface.Now()
	if p.refreshed == 0 || now.Sub(p.refreshed) >= refreshEvery {
		p.refreshed = now
		p.refresh(now)
	}
	for {
		p.mu.Lock()
		if p.core == nil {
			p.mu.Unlock()
			return refreshEvery
		}
		probe, ok := p.core.Poll(now)
		var to *Peer
		if ok {
			to = p.peers[probe.Peer]
		}
		lost, next := p.lost, p.core.Next()
		p.lost = nil
		p.mu.Unlock()
		for _, l := range lost {
			l.lost.Add(1)
			l.target.ProbeLost()
		}
		if !ok {
			return min(max(next.Sub(now), 0), refreshEvery)
		}
		p.send(now, to, probe)
	}
}

// send sends a probe, or cancels it.
func (p *Prober) send(now congestion.Time, to *Peer, probe congestion.Probe) {
	at, err := to.target.Probe(probe.Message)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.core.Cancel(now, probe)
		return
	}
	p.core.SentAt(probe, at)
	to.sent.Add(1)
}

// refresh takes in which peers there are. If others than before, probes in flight are forgotten, and turns and the
// limit of bytes begin anew.
func (p *Prober) refresh(now congestion.Time) {
	var targets []Target
	places := map[Target]*atomic.Pointer[Peer]{}
	for t, place := range p.peersNow() {
		if places[t] == nil {
			targets = append(targets, t)
			places[t] = place
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	same := len(targets) == len(p.peers)
	for i := 0; same && i < len(targets); i++ {
		same = targets[i] == p.peers[i].target
	}
	if same {
		return
	}
	if p.core != nil {
		p.done = sum(p.done, p.core.Count())
		p.core = nil
	}
	before := p.index
	old := p.peers
	p.peers, p.index, p.lost = nil, map[any]int{}, nil
	var all []*congestion.Stats
	for i, t := range targets {
		x := &Peer{target: t}
		if at, ok := before[t]; ok {
			x = old[at]
		}
		places[t].Store(x)
		p.peers = append(p.peers, x)
		p.index[t] = i
		all = append(all, t.Stats())
	}
	p.renew(now, all)
}

// renew makes a prober of the peers that there are now. The caller has mu.
func (p *Prober) renew(now congestion.Time, all []*congestion.Stats) {
	if len(all) == 0 {
		return
	}
	cfg := p.cfg
	cfg.StartupDelay = max(p.started.Add(cfg.StartupDelay).Sub(now), 0)
	rnd := rand.NewPCG(rand.Uint64(), rand.Uint64())
	core, err := congestion.NewProber(cfg, congestion.TableOf(all), -1, now, rnd)
	if err != nil {
		log.Warnf(log.EPCtrl, "%s: no probes: %v", p.name, err) // the configuration was checked
		return
	}
	core.OnLost(func(peer int) { p.lost = append(p.lost, p.peers[peer]) })
	p.core = core
}

// echoed takes in an echo; see congestion.Probes.
func (p *Prober) echoed(from any, at congestion.Time, m congestion.ProbeMessage) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	i, ok := p.index[from]
	if !ok || p.core == nil {
		return 0
	}
	rtt, ok := p.core.OnEcho(at, i, m)
	if !ok || rtt <= 0 {
		return 0
	}
	x := p.peers[i]
	x.rtt.Store(int64(rtt))
	// When the probe left is counted back from now, so that what it waited for before does not count as its way.
	sent := p.clock.Time(p.iface.Now().Sub(at) + rtt + m.Residence)
	if forth, back, ok := congestion.OneWay(sent, m.ArrivedAt(p.maxOffset), rtt); ok {
		x.forth.Store(int64(forth))
		x.back.Store(int64(back))
	}
	return rtt
}

// Count returns what became of the probes so far.
func (p *Prober) Count() congestion.ProbeCount {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.core == nil {
		return p.done
	}
	return sum(p.done, p.core.Count())
}

func sum(a, b congestion.ProbeCount) congestion.ProbeCount {
	return congestion.ProbeCount{
		Sent: a.Sent + b.Sent, Echoed: a.Echoed + b.Echoed, Lost: a.Lost + b.Lost, Stray: a.Stray + b.Stray,
		Cancelled: a.Cancelled + b.Cancelled, Bytes: a.Bytes + b.Bytes,
	}
}

// Sample writes what became of the probes of an endpoint's probers to its page.
func Sample(probers []*Prober, e *stats.Endpoint) {
	var c congestion.ProbeCount
	for _, p := range probers {
		c = sum(c, p.Count())
	}
	e.RxSet(stats.RxProbes, c.Sent)
	e.RxSet(stats.RxProbesEchoed, c.Echoed)
	e.RxSet(stats.RxProbesLost, c.Lost)
	e.RxSet(stats.RxProbesStray, c.Stray)
}

// Sample writes what probes say about a peer to its line; the nil Peer writes nothing.
func (x *Peer) Sample(line *stats.PeerLine) {
	if x == nil {
		return
	}
	line.Set(stats.PeerProbes, x.sent.Load())
	line.Set(stats.PeerProbesLost, x.lost.Load())
	line.Set(stats.PeerProbeRTT, uint64(x.rtt.Load()))
	line.Set(stats.PeerForth, uint64(x.forth.Load()))
	line.Set(stats.PeerBack, uint64(x.back.Load()))
}
