package netsim

import (
	"fmt"
	"testing"
	"time"

	"github.com/weft-fabric/weft/internal/congestion"
)

// budget is what probes may cost a rank: the 64 KB/s that 100 peers probed every
// 100 ms with 64 bytes come to.
const budget = 64000

// TestProbeOverhead measures what probing costs a rank among 100, 1,000 and
// 10,000, with every strategy. All hosts answer; a few probe.
func TestProbeOverhead(t *testing.T) {
	for _, hosts := range []int{100, 1000, 10000} {
		for s := congestion.RoundRobin; s <= congestion.Adaptive; s++ {
			cfg := congestion.DefaultProbeConfig()
			cfg.Strategy = s
			const length = 10 * time.Second
			n := New(1)
			star := n.Star(hosts, Link{Rate: 10 * gigabit, Delay: 2 * us, Limit: 1 << 20})
			var probers []*ProbeHost
			for i := range 4 {
				probers = append(probers, n.ProbeHost(cfg, star, i*hosts/4))
			}
			n.Run(cfg.StartupDelay + length)
			worst, reached := 0.0, hosts
			for _, p := range probers {
				c := p.Prober.Count()
				worst = max(worst, float64(c.Bytes)/length.Seconds())
				known := 0
				for i := range hosts {
					if p.Table.Peer(i).Read().Samples > 0 {
						known++
					}
				}
				reached = min(reached, known)
				if c.Lost != 0 || c.Stray != 0 {
					t.Errorf("%d hosts, %v: %+v", hosts, s, c)
				}
			}
			t.Logf("%5d hosts, %-11v: %5.0f bytes/s for a rank, %d of %d peers known after 10 s", hosts, s, worst,
				reached, hosts-1)
			if worst > budget*1.01 {
				t.Errorf("%d hosts, %v: %.0f bytes/s are over the budget of %d", hosts, s, worst, budget)
			}
			want := map[congestion.Strategy]int{
				congestion.RoundRobin: min(hosts-1, 99), congestion.AllPairs: min(hosts-1, 9900),
				congestion.Random: min(hosts-1, 100) / 2, congestion.Adaptive: min(hosts-1, 9900),
			}[s]
			if reached < want {
				t.Errorf("%d hosts, %v: only %d peers are known after 10 s", hosts, s, reached)
			}
		}
	}
}

// TestProbeEveryHost has all of 100 hosts probe each other, and adds up what
// crosses their links: probes and echoes, with headers.
func TestProbeEveryHost(t *testing.T) {
	cfg := congestion.DefaultProbeConfig()
	cfg.Strategy = congestion.AllPairs
	n := New(1)
	star := n.Star(100, Link{Rate: gigabit, Delay: 2 * us})
	var probers []*ProbeHost
	for i := range star.Up {
		probers = append(probers, n.ProbeHost(cfg, star, i))
	}
	n.Run(cfg.StartupDelay + time.Second)
	share := float64(star.Up[7].Bytes) / float64(gigabit)
	t.Logf("%d probes; a host's link carries %.0f bytes/s, %.2f %% of 1 Gbit/s; %d events",
		probers[7].Prober.Count().Sent, float64(star.Up[7].Bytes), 100*share, n.Events())
	if share > 0.003 {
		t.Errorf("probing takes %.2f %% of the link", 100*share)
	}
}

// TestProbeFindsCongestion: the adaptive prober probes the peer behind a queue
// more often than the others, and its statistics show the queue.
func TestProbeFindsCongestion(t *testing.T) {
	cfg := congestion.DefaultProbeConfig()
	cfg.Strategy = congestion.Adaptive
	n := New(1)
	star := n.Star(20, Link{Rate: 100 * megabit, Delay: 2 * us, Limit: 1 << 20})
	h := n.ProbeHost(cfg, star, 0)
	sent := make([]int, 20)
	h.OnRTT = func(_ congestion.Time, peer int, _ time.Duration) { sent[peer]++ }
	n.Run(5 * time.Second)
	fixed := config(congestion.Fixed)
	fixed.Initial = 100
	for from := 3; from < 5; from++ { // their own links are no bottleneck together
		n.Flow(fixed, star.Route(from, 7), star.Route(7, from), -1)
	}
	n.Run(5 * time.Second)
	clear(sent)
	n.Run(10 * time.Second)
	queued, idle := h.Table.Peer(7).Read(), h.Table.Peer(8).Read()
	t.Logf("congested: %d probes, SRTT %v; idle: %d probes, SRTT %v", sent[7], queued.SRTT, sent[8], idle.SRTT)
	if sent[7] < 8*sent[8] || queued.SRTT < 10*idle.SRTT {
		t.Errorf("congested: %d probes, SRTT %v; idle: %d probes, SRTT %v", sent[7], queued.SRTT, sent[8], idle.SRTT)
	}
}

// TestEstimatorError compares the base RTT with what the links alone take, and
// what a sample has above it with the queue that its packet met, while another
// sender's bursts come and go.
func TestEstimatorError(t *testing.T) {
	n := New(1)
	d := n.Dumbbell(Link{Rate: gigabit, Delay: 50 * us, Limit: 1 << 20}, Link{Rate: 10 * gigabit, Delay: 5 * us})
	forth, back := d.Pair(0)
	f := n.Flow(config(congestion.Delay), forth, back, -1)
	burst, answer := d.Pair(0)
	n.Every(7*ms, func(congestion.Time) { n.Flow(config(congestion.Fixed), burst, answer, 15000) })
	links := 2 * (50 + 5 + 5) * us
	for _, size := range []int64{1500, ackSize} { // on the bottleneck and two links ten times as fast
		links += time.Duration(float64(size) / gigabit * 1.2 * float64(time.Second))
	}
	// the queue when a packet reached the bottleneck, by the time it did
	met := map[congestion.Time]time.Duration{}
	d.Bottleneck.OnQueue = func(now congestion.Time, wait time.Duration) { met[now] = wait }
	var off []time.Duration
	f.OnRTT = func(now congestion.Time, rtt time.Duration) {
		reached := now.Add(-rtt).Add(5*us + 1200*time.Nanosecond)
		if wait, ok := met[reached]; ok {
			off = append(off, (rtt - f.Path.RTT().Base() - wait).Abs())
		}
	}
	n.Run(time.Second)
	base := f.Path.RTT().Base()
	t.Logf("base %v, the links alone take %v; the queue is off by %v (median), %v (p99) in %d samples", base, links,
		Quantile(off, 0.5), Quantile(off, 0.99), len(off))
	if e := (base - links).Abs(); e > us {
		t.Errorf("the base RTT is %v, the links take %v", base, links)
	}
	if m := Quantile(off, 0.5); m > us || len(off) < 10000 {
		t.Errorf("the queue is off by %v in %d samples", m, len(off))
	}
}

// TestPuts: flows of segments on one link are fair, fill it, and keep the queue
// within some segments; a short operation beside long ones does not wait for
// them.
func TestPuts(t *testing.T) {
	for _, a := range []congestion.Algorithm{congestion.Delay, congestion.AIMD, congestion.BBR} {
		for _, known := range []bool{true, false} {
			n := New(1)
			d := n.Dumbbell(Link{Rate: 100 * gigabit, Delay: us}, Link{Rate: 100 * gigabit, Delay: us})
			seg := congestion.DefaultSegmentConfig()
			cfg := seg.PathConfig(0)
			if known {
				cfg.Rate = 100 * gigabit
			}
			cfg.Algorithm = a
			var flows []*Puts
			for range 4 {
				forth, back := d.Pair(0)
				p := n.Puts(seg, cfg, forth, back)
				p.Keep(2, 64<<20)
				flows = append(flows, p)
				n.Run(5 * ms)
			}
			n.Run(500 * ms)
			var before []int64
			for _, p := range flows {
				before = append(before, p.Bytes)
			}
			var waits []time.Duration
			n.Every(20*us, func(congestion.Time) { waits = append(waits, d.Bottleneck.Wait()) })
			n.Run(time.Second)
			var shares []float64
			total := 0.0
			for i, p := range flows {
				shares = append(shares, float64(p.Bytes-before[i]))
				total += shares[i]
			}
			used := total / float64(100*gigabit)
			name := fmt.Sprintf("%v, rate known %v", a, known)
			t.Logf("%s: Jain %.3f, utilisation %.3f, queue p99 %v, segments of %d", name,
				Jain(shares), used, Quantile(waits, 0.99), flows[0].Flow.SegmentSize())
			if used < 0.9 || Quantile(waits, 0.99) > 2*ms {
				t.Errorf("%s: utilisation %.3f, queue p99 %v", name, used, Quantile(waits, 0.99))
			}
			if a == congestion.Delay && Jain(shares) < 0.9 {
				t.Errorf("%s: Jain's index %.3f", name, Jain(shares))
			}
		}
	}
}

// TestTenThousandHosts sends from each of 10,000 hosts to another, in pairs
// that chance makes, so that some targets have several senders.
func TestTenThousandHosts(t *testing.T) {
	const hosts = 10000
	n := New(1)
	star := n.Star(hosts, Link{Rate: 10 * gigabit, Delay: 2 * us, Limit: 1 << 20, Mark: 200000})
	var flows []*Flow
	for i := range hosts {
		to := n.Rand.IntN(hosts)
		flows = append(flows, n.Flow(config(congestion.Delay), star.Route(i, to), star.Route(to, i), 64<<10))
	}
	n.Run(20 * ms)
	var times []time.Duration
	for _, f := range flows {
		if f.Ended() == 0 {
			t.Fatal("a flow of 64 KiB is not completed after 20 ms")
		}
		times = append(times, f.Ended().Sub(congestion.Time(time.Second)))
	}
	dropped := int64(0)
	for _, l := range star.Down {
		dropped += l.Dropped
	}
	t.Logf("64 KiB from each of %d hosts: p50 %v, p99 %v, last %v; %d dropped, %d events", hosts, Quantile(times, 0.5),
		Quantile(times, 0.99), Quantile(times, 1), dropped, n.Events())
	if p99 := Quantile(times, 0.99); p99 > 5*ms || dropped > 100 {
		t.Errorf("p99 %v, %d dropped", p99, dropped)
	}
}
