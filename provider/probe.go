package provider

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weft-fabric/weft/hw"
	"github.com/weft-fabric/weft/internal/config"
	"github.com/weft-fabric/weft/internal/congestion"
	"github.com/weft-fabric/weft/internal/log"
	"github.com/weft-fabric/weft/internal/stats"
)

// Probes to peers on other hosts. A prober belongs to an endpoint's port whose
// transport can send them; it exists only with FI_WEFT_RTT_PROBE_ENABLE. Which peers to
// probe when, and what became of it, is congestion.Prober's business:
//
//	step (the service thread or a goroutine): poll → send → next time
//	echoed (the holder of the transport's lease): the round-trip time
//
// The peers are those that the endpoint is connected to when step reads the links.

// probing is what an interface implements that sends probes.
type probing interface {
	SetProbes(p congestion.Probes)
	Now() congestion.Time
}

// probeTarget is what its endpoints implement.
type probeTarget interface {
	hw.Endpoint
	Probe(m congestion.ProbeMessage) (congestion.Time, error)
	ProbeLost()
	Stats() *congestion.Stats
}

// probed is what probes say about one peer. Written under prober.mu, read by
// the sampling thread; relaxed.
type probed struct {
	target probeTarget
	sentAt congestion.PTPTime // of the probe in flight; under prober.mu

	sent, lost  atomic.Uint64
	rtt         atomic.Int64 // ns, of the latest
	forth, back atomic.Int64 // ns, of the latest with synchronised clocks
}

// prober probes the peers over one port.
type prober struct {
	e         *peering
	port      *port
	iface     probing
	cfg       congestion.ProbeConfig
	clock     *clock
	stop      func()
	started   congestion.Time
	refreshed congestion.Time // step's: when it last read the links

	// mu is taken for each probe and echo: some ten times a second.
	mu    sync.Mutex
	core  *congestion.Prober
	peers []*probed
	index map[any]int
	lost  []*probed
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

// startProbers begins to probe, over the ports that can, if that is asked for.
// Over all of them the clock's time goes with the answers to peers' probes.
func (e *peering) startProbers() {
	for _, p := range e.ports {
		i, ok := p.Iface.(probing)
		if !ok {
			continue
		}
		if !e.domain.cfg.Probe {
			if e.domain.clock != nil {
				i.SetProbes(congestion.Probes{Clock: e.domain.clock.time})
			}
			continue
		}
		cfg, err := probeConfig(e.domain.cfg)
		if err != nil {
			log.Warnf(log.EPCtrl, "%s: no probes: %v", e.name, err)
			return
		}
		pr := &prober{e: e, port: p, iface: i, cfg: cfg, clock: e.domain.clock, started: i.Now()}
		i.SetProbes(congestion.Probes{Echoed: pr.echoed, Clock: pr.clock.time})
		pr.stop = e.domain.every(pr.step)
		e.probers = append(e.probers, pr)
	}
}

// stopProbers ends them, before their ports close.
func (e *portSet) stopProbers() {
	for _, pr := range e.probers {
		pr.stop()
		pr.iface.SetProbes(congestion.Probes{})
	}
	e.probers = nil
}

// refreshEvery is how often a prober finds peers that came or went.
const refreshEvery = 100 * time.Millisecond

// step sends the probes that are due and returns the time to the next step.
func (pr *prober) step() time.Duration {
	now := pr.iface.Now()
	if pr.refreshed == 0 || now.Sub(pr.refreshed) >= refreshEvery {
		pr.refreshed = now
		pr.refresh(now)
	}
	for {
		pr.mu.Lock()
		if pr.core == nil {
			pr.mu.Unlock()
			return refreshEvery
		}
		probe, ok := pr.core.Poll(now)
		var to *probed
		if ok {
			to = pr.peers[probe.Peer]
			to.sentAt = pr.clock.time(0)
		}
		lost, next := pr.lost, pr.core.Next()
		pr.lost = nil
		pr.mu.Unlock()
		for _, p := range lost {
			p.lost.Add(1)
			p.target.ProbeLost()
		}
		if !ok {
			return min(max(next.Sub(now), 0), refreshEvery)
		}
		pr.send(now, to, probe)
	}
}

// send sends a probe, or cancels it.
func (pr *prober) send(now congestion.Time, to *probed, probe congestion.Probe) {
	at, err := to.target.Probe(probe.Message)
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if err != nil {
		pr.core.Cancel(now, probe)
		return
	}
	pr.core.SentAt(probe, at)
	to.sent.Add(1)
}

// refresh takes in which peers there are. If others than before, probes in flight are
// forgotten, and turns and the limit of bytes begin anew.
func (pr *prober) refresh(now congestion.Time) {
	var targets []probeTarget
	links := map[probeTarget]*link{}
	for _, l := range *pr.e.links.Load() {
		if l == nil {
			continue
		}
		p, ready := l.ready()
		if !ready || p.port != pr.port {
			continue
		}
		if t, ok := p.Endpoint.(probeTarget); ok && links[t] == nil {
			targets = append(targets, t)
			links[t] = l
		}
	}
	pr.mu.Lock()
	defer pr.mu.Unlock()
	same := len(targets) == len(pr.peers)
	for i := 0; same && i < len(targets); i++ {
		same = targets[i] == pr.peers[i].target
	}
	if same {
		return
	}
	if pr.core != nil {
		pr.done = sumProbes(pr.done, pr.core.Count())
		pr.core = nil
	}
	before := pr.index
	old := pr.peers
	pr.peers, pr.index, pr.lost = nil, map[any]int{}, nil
	var all []*congestion.Stats
	for i, t := range targets {
		p := &probed{target: t}
		if at, ok := before[t]; ok {
			p = old[at]
		}
		links[t].probed.Store(p)
		pr.peers = append(pr.peers, p)
		pr.index[t] = i
		all = append(all, t.Stats())
	}
	pr.renew(now, all)
}

// renew makes a prober of the peers that there are now. The caller has mu.
func (pr *prober) renew(now congestion.Time, all []*congestion.Stats) {
	if len(all) == 0 {
		return
	}
	cfg := pr.cfg
	cfg.StartupDelay = max(pr.started.Add(cfg.StartupDelay).Sub(now), 0)
	core, err := congestion.NewProber(cfg, congestion.TableOf(all), -1, now, rand.NewPCG(rand.Uint64(), rand.Uint64()))
	if err != nil {
		log.Warnf(log.EPCtrl, "%s: no probes: %v", pr.e.name, err) // the configuration was checked
		return
	}
	core.OnLost(func(peer int) { pr.lost = append(pr.lost, pr.peers[peer]) })
	pr.core = core
}

// echoed takes in an echo; see congestion.Probes.
func (pr *prober) echoed(from any, at congestion.Time, m congestion.ProbeMessage) time.Duration {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	i, ok := pr.index[from]
	if !ok || pr.core == nil {
		return 0
	}
	rtt, ok := pr.core.OnEcho(at, i, m)
	if !ok || rtt <= 0 {
		return 0
	}
	p := pr.peers[i]
	p.rtt.Store(int64(rtt))
	assumed := time.Duration(pr.e.domain.cfg.PTPMaxOffset)
	if forth, back, ok := congestion.OneWay(p.sentAt, m.ArrivedAt(assumed), rtt); ok {
		p.forth.Store(int64(forth))
		p.back.Store(int64(back))
	}
	return rtt
}

// count returns what became of the probes so far.
func (pr *prober) count() congestion.ProbeCount {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	if pr.core == nil {
		return pr.done
	}
	return sumProbes(pr.done, pr.core.Count())
}

func sumProbes(a, b congestion.ProbeCount) congestion.ProbeCount {
	return congestion.ProbeCount{
		Sent: a.Sent + b.Sent, Echoed: a.Echoed + b.Echoed, Lost: a.Lost + b.Lost, Stray: a.Stray + b.Stray,
		Cancelled: a.Cancelled + b.Cancelled, Bytes: a.Bytes + b.Bytes,
	}
}

// sampleProbes shows what became of an endpoint's probes, and the clock.
func (e *peering) sampleProbes() {
	var c congestion.ProbeCount
	for _, pr := range e.probers {
		c = sumProbes(c, pr.count())
	}
	e.stats.RxSet(stats.RxProbes, c.Sent)
	e.stats.RxSet(stats.RxProbesEchoed, c.Echoed)
	e.stats.RxSet(stats.RxProbesLost, c.Lost)
	e.stats.RxSet(stats.RxProbesStray, c.Stray)
	if e.domain.clock != nil {
		e.domain.clock.sample(e.stats)
	}
}

// sample shows what probes say about a peer.
func (p *probed) sample(line *stats.PeerLine) {
	line.Set(stats.PeerProbes, p.sent.Load())
	line.Set(stats.PeerProbesLost, p.lost.Load())
	line.Set(stats.PeerProbeRTT, uint64(p.rtt.Load()))
	line.Set(stats.PeerForth, uint64(p.forth.Load()))
	line.Set(stats.PeerBack, uint64(p.back.Load()))
}

// every calls f again and again, after what it returns: on the service thread if
// the configuration wants that and there is one, else in a goroutine.
func (d *Domain) every(f func() time.Duration) (stop func()) {
	if d.cfg.ProbeService && d.served {
		service.Lock()
		s := service.running
		service.Unlock()
		if s != nil {
			return s.Tick(f)
		}
	}
	done := make(chan struct{})
	var over sync.WaitGroup
	over.Go(func() {
		timer := time.NewTimer(0)
		defer timer.Stop()
		for {
			select {
			case <-done:
				return
			case <-timer.C:
				timer.Reset(max(f(), time.Millisecond))
			}
		}
	})
	return func() { close(done); over.Wait() }
}
